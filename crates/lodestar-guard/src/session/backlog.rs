//! What was read and is not yet believed: a bounded queue, and the thread that empties it.
//!
//! A call is over when what came back is in the log; what is believed of it follows a moment later, many
//! results in one transaction of the store. Whoever needs the beliefs of a result waits for them here.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lodestar_core::id::{BeliefId, ObservationId};
use tokio::sync::Notify;

use super::memory::Taken;
use crate::error::GuardError;

/// Most results that wait. With more the caller waits: memory is bounded, and nobody runs ahead of what
/// is known by more than a moment.
const MOST_WAITING: usize = 256;

/// Results in one transaction: most of what a transaction costs by itself is shared by then, and whoever
/// waits for the first of them does not wait long for the last.
const BATCH: usize = 64;

/// How long a result may wait for others to come along, if nobody asks for it. Results that come along
/// share a line of the log and a transaction, and whoever asks for one does not wait for this: so it is
/// as long as nobody who looks on from outside takes notice of.
const GATHER: Duration = Duration::from_millis(250);

/// How many observations' beliefs are kept at hand: as many as the provenance index names.
const REMEMBERED: usize = lodestar_firewall::provenance::OBSERVATIONS;

/// The queue, with the thread behind it. When the last handle goes, what waits is dealt with first.
#[derive(Debug)]
pub(super) struct Backlog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.shared.lock().ending = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was noted as a failure; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The thread waits here for something to do.
    work: Condvar,
    /// Everybody else waits at one of these two.
    progress: Condvar,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Taken>,
    /// How many results came, how many of them are done with, and up to which somebody waits.
    came: u64,
    done: u64,
    wanted: u64,
    /// The places of those that are not done with.
    places: HashMap<ObservationId, u64>,
    beliefs: HashMap<ObservationId, Box<[BeliefId]>>,
    order: VecDeque<ObservationId>,
    /// The thread sleeps without a deadline and has to be woken.
    idle: bool,
    ending: bool,
    failed: Option<Arc<str>>,
}

/// What somebody waits for.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// There is room.
    Room,
    /// So many are done with.
    Done(u64),
}

/// Takes in results in their order: the beliefs of each.
pub(super) type TakeIn =
    Box<dyn FnMut(&[Taken]) -> Result<Vec<Box<[BeliefId]>>, GuardError> + Send>;

impl Backlog {
    /// Starts the thread.
    pub(super) fn start(take_in: TakeIn) -> Result<Self, GuardError> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("lodestar-beliefs".to_owned())
            .spawn(move || of_thread.run(take_in));
        Ok(Self {
            thread: Some(thread.map_err(GuardError::NoThread)?),
            shared,
        })
    }

    /// Resolves when there is room.
    pub(super) async fn room(&self) -> Result<(), GuardError> {
        self.shared.until(Until::Room).await
    }

    /// Adds a result. Those who waited for room at the same time all find some: calls are few beside what
    /// may wait.
    pub(super) fn put(&self, taken: Taken) {
        let mut state = self.shared.lock();
        state.came += 1;
        let place = state.came;
        state.places.insert(taken.observation.id, place);
        state.waiting.push_back(taken);
        if state.idle || state.waiting.len() == BATCH {
            state.idle = false;
            self.shared.work.notify_one();
        }
    }

    /// Resolves when everything that came so far is done with.
    pub(super) async fn settled(&self) -> Result<(), GuardError> {
        let came = self.shared.lock().came;
        self.shared.until(Until::Done(came)).await
    }

    /// The same, on a thread that may block.
    pub(super) fn settle(&self) -> Result<(), GuardError> {
        let mut state = self.shared.lock();
        let until = Until::Done(state.came);
        while !self.shared.is_reached(&mut state, until)? {
            let woken = self.shared.progress.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// The beliefs that came from these observations, as far as they are remembered.
    pub(super) async fn beliefs_of(
        &self,
        observations: &[ObservationId],
    ) -> Result<Vec<BeliefId>, GuardError> {
        if observations.is_empty() {
            return Ok(Vec::new());
        }
        let place = {
            let state = self.shared.lock();
            let places = observations.iter().filter_map(|one| state.places.get(one));
            places.max().copied().unwrap_or_default()
        };
        self.shared.until(Until::Done(place)).await?;
        let state = self.shared.lock();
        let known = observations.iter().filter_map(|one| state.beliefs.get(one));
        let mut found: Vec<BeliefId> = known.flatten().copied().collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Notes the beliefs of something that did not come this way.
    pub(super) fn remember(&self, observation: ObservationId, beliefs: Box<[BeliefId]>) {
        self.shared.lock().remember(observation, beliefs);
    }
}

impl State {
    fn remember(&mut self, observation: ObservationId, beliefs: Box<[BeliefId]>) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.beliefs.remove(&oldest);
        }
        self.order.push_back(observation);
        self.beliefs.insert(observation, beliefs);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until(&self, until: Until) -> Result<(), GuardError> {
        if self.is_reached(&mut self.lock(), until)? {
            return Ok(());
        }
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From here on nothing that happens is missed.
            news.as_mut().enable();
            if self.is_reached(&mut self.lock(), until)? {
                return Ok(());
            }
            news.await;
        }
    }

    /// Whether it is so by now; if not, the thread learns that somebody waits.
    fn is_reached(&self, state: &mut State, until: Until) -> Result<bool, GuardError> {
        if let Some(failed) = &state.failed {
            return Err(GuardError::NotTakenIn(failed.to_string()));
        }
        let wanted = match until {
            Until::Room if state.waiting.len() < MOST_WAITING => return Ok(true),
            Until::Room => state.done + 1,
            Until::Done(place) if state.done >= place => return Ok(true),
            Until::Done(place) => place,
        };
        if state.wanted < wanted {
            state.wanted = wanted;
            state.idle = false;
            self.work.notify_one();
        }
        Ok(false)
    }

    /// The thread.
    fn run(&self, mut take_in: TakeIn) {
        let _failing = FailsWhenGone(self);
        while let Some(batch) = self.next_batch() {
            match take_in(&batch) {
                Ok(beliefs) => self.pass(batch, beliefs),
                Err(problem) => return self.fail(&problem.to_string()),
            }
        }
    }

    fn pass(&self, batch: Vec<Taken>, beliefs: Vec<Box<[BeliefId]>>) {
        let mut state = self.lock();
        state.done += batch.len() as u64;
        for (taken, beliefs) in batch.iter().zip(beliefs) {
            state.places.remove(&taken.observation.id);
            state.remember(taken.observation.id, beliefs);
        }
        drop(state);
        self.tell();
    }

    fn fail(&self, problem: &str) {
        let mut state = self.lock();
        state.failed.get_or_insert_with(|| problem.into());
        drop(state);
        self.tell();
    }

    fn tell(&self) {
        self.progress.notify_all();
        self.news.notify_waiters();
    }

    /// Sleeps until it is worth it or somebody waits; nothing when nobody is left who could add more.
    fn next_batch(&self) -> Option<Vec<Taken>> {
        let mut state = self.lock();
        loop {
            if state.waiting.is_empty() {
                if state.ending {
                    return None;
                }
                state.idle = true;
                let woken = self.work.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                state.idle = false;
                continue;
            }
            let mut is_time =
                state.ending || state.wanted > state.done || state.waiting.len() >= BATCH;
            if !is_time {
                let woken = self.work.wait_timeout(state, GATHER);
                let (woken, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
                state = woken;
                is_time = timeout.timed_out();
            }
            if is_time {
                let size = state.waiting.len().min(BATCH);
                return Some(state.waiting.drain(..size).collect());
            }
        }
    }
}

/// A thread that panics has failed, and everybody who waits is told.
struct FailsWhenGone<'a>(&'a Shared);

impl Drop for FailsWhenGone<'_> {
    fn drop(&mut self) {
        self.0.fail("the session is over, or its thread panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
    use lodestar_core::id::InvocationId;
    use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, SessionId, ToolName};
    use lodestar_core::scope::Scope;
    use lodestar_core::sensitivity::Sensitivity;
    use lodestar_core::time::Timestamp;
    use serde_json::json;

    use super::*;

    fn result(number: u8) -> Taken {
        let random = [number; 10];
        Taken {
            observation: Arc::new(Observation {
                id: ObservationId::from_parts(1, random),
                tool: ToolName::new("echo").unwrap(),
                invocation_id: InvocationId::from_parts(1, random),
                captured_at: Timestamp::from_unix_micros(1).unwrap(),
                session: SessionId::new("s1").unwrap(),
                project: ProjectId::new("web").unwrap(),
                actor: ActorId::new("coder").unwrap(),
                trust: ObservationTrust::Raw,
                sensitivity: Sensitivity::Internal,
                rest: serde_json::Map::new(),
                content: vec![ContentBlock::Text {
                    text: "said".to_owned(),
                    rest: serde_json::Map::new(),
                }],
            }),
            server: ServerIdentity::new("bench").unwrap(),
            arguments: json!({}),
            definition: lodestar_core::digest::sha256(b"echo"),
            reviewed: true,
            is_error: false,
            scope: Scope::global(),
            recorded: None,
        }
    }

    async fn add(backlog: &Backlog, taken: Taken) -> Result<(), GuardError> {
        backlog.room().await?;
        backlog.put(taken);
        Ok(())
    }

    /// Each result has one belief, with the same random part.
    fn believed(taken: &[Taken]) -> Vec<Box<[BeliefId]>> {
        let one = |taken: &Taken| {
            let text = taken.observation.id.to_string();
            let belief = text.replace("obs_", "blf_").parse().unwrap();
            Box::from([belief])
        };
        taken.iter().map(one).collect()
    }

    #[tokio::test]
    async fn whoever_asks_for_the_beliefs_of_a_result_waits_until_they_are_there() {
        let (let_go, held) = mpsc::channel::<()>();
        let backlog = Backlog::start(Box::new(move |taken| {
            held.recv().unwrap();
            Ok(believed(taken))
        }));
        let backlog = Arc::new(backlog.unwrap());
        add(&backlog, result(1)).await.unwrap();
        let (asking, id) = (Arc::clone(&backlog), result(1).observation.id);
        let asked = tokio::spawn(async move { asking.beliefs_of(&[id]).await });
        tokio::time::sleep(2 * GATHER).await;
        assert!(!asked.is_finished());
        let unknown = ObservationId::from_parts(9, [9; 10]);
        assert!(backlog.beliefs_of(&[unknown]).await.unwrap().is_empty());
        let_go.send(()).unwrap();
        assert_eq!(asked.await.unwrap().unwrap().len(), 1);
        drop(let_go);
    }

    #[tokio::test]
    async fn results_are_taken_in_together_and_a_full_queue_is_waited_for() {
        let (let_go, held) = mpsc::channel::<()>();
        let batches = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&batches);
        let backlog = Backlog::start(Box::new(move |taken| {
            held.recv().unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            assert!(taken.len() <= BATCH);
            Ok(believed(taken))
        }));
        let backlog = Arc::new(backlog.unwrap());
        let adding = Arc::clone(&backlog);
        let all = MOST_WAITING + 2 * BATCH;
        let added = tokio::spawn(async move {
            for number in 0..all {
                add(&adding, result((number % 250) as u8)).await.unwrap();
            }
        });
        tokio::time::sleep(2 * GATHER).await;
        assert!(!added.is_finished(), "nobody runs ahead without a bound");
        for _ in 0..all {
            let_go.send(()).unwrap();
        }
        added.await.unwrap();
        backlog.settled().await.unwrap();
        assert!(batches.load(Ordering::SeqCst) <= 2 * all / BATCH);
    }

    #[tokio::test]
    async fn a_failure_is_told_to_everybody_who_comes_after_it() {
        let backlog = Backlog::start(Box::new(|_| Err(GuardError::NoBelief))).unwrap();
        add(&backlog, result(1)).await.unwrap();
        let told = backlog.settled().await.unwrap_err().to_string();
        assert!(told.contains("the assertion gave no belief"), "{told}");
        assert!(add(&backlog, result(2)).await.is_err());
        assert!(backlog.settle().is_err());
    }

    #[tokio::test]
    async fn what_waits_is_taken_in_before_the_last_handle_is_gone() {
        let taken_in = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken_in);
        let backlog = Backlog::start(Box::new(move |taken| {
            counted.fetch_add(taken.len(), Ordering::SeqCst);
            Ok(believed(taken))
        }));
        let backlog = backlog.unwrap();
        for number in 0..10 {
            add(&backlog, result(number)).await.unwrap();
        }
        drop(backlog);
        assert_eq!(taken_in.load(Ordering::SeqCst), 10);
    }
}
