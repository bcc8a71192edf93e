//! Group commit: the state behind the writer's lock, and the thread that syncs and signs.
//!
//! Appending threads encode into a buffer under the lock and write it out themselves when it is
//! full. One background thread writes what lies in the buffer after a moment, syncs when somebody
//! waits, and signs checkpoints; it holds the lock for none of the slow parts, so everybody who
//! appends during a sync is served by the next one.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::note::Checkpoint;

use super::receipt::{Barrier, Receipt};
use super::{After, WriterOptions};
use crate::chain::{NewEvent, Tip};
use crate::clock::{Clock, SaltPool};
use crate::disk;
use crate::error::{AppendError, Stopped};
use crate::layout::{CHECKPOINT, SessionDir};
use crate::line::payload_hash;

/// A batch that is worth a system call of its own.
const BATCH_BYTES: usize = 64 << 10;
/// How long an event may lie in the buffer: unnoticeable to a reader who follows, and long enough
/// that a burst goes out in few writes.
const FLUSH_AFTER: Duration = Duration::from_millis(5);
/// Checkpoints bound the unproven tail in events; the options bound it in time.
const CHECKPOINT_EVENTS: u64 = 1000;

/// The events file, as the writer needs it; tests put failing ones in its place.
pub(crate) trait EventSink: Send {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// A second handle that syncs without the writer's lock.
    fn syncer(&self) -> io::Result<Box<dyn FnMut() -> io::Result<()> + Send>>;
}

impl EventSink for File {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(self, bytes)
    }

    fn syncer(&self) -> io::Result<Box<dyn FnMut() -> io::Result<()> + Send>> {
        let file = self.try_clone()?;
        Ok(Box::new(move || file.sync_data()))
    }
}

/// What the writer's clones, its receipts and its thread share.
pub(crate) struct Shared {
    pub(super) dir: SessionDir,
    pub(super) blobs: PathBuf,
    pub(super) key: Arc<SecretKey>,
    pub(super) clock: Clock,
    checkpoint_after: Duration,
    salts: Mutex<SaltPool>,
    state: Mutex<State>,
    /// The thread waits here for something to do.
    work: Condvar,
    /// Everybody else waits here for barriers.
    progress: Condvar,
}

struct State {
    sink: Box<dyn EventSink>,
    buffer: Vec<u8>,
    tip: Tip,
    /// Sizes: how many events are on disk, and under a checkpoint; and what is waited for.
    durable: u64,
    proven: u64,
    wanted_durable: u64,
    wanted_proven: u64,
    checkpoint: (Checkpoint, String),
    /// The thread sleeps without a deadline and has to be woken.
    idle: bool,
    phase: Phase,
    stopped: Option<Stopped>,
    wakers: Vec<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The closing event is in; nothing follows it.
    Closed,
    /// The last writer is gone; the thread finishes.
    Ending,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// `tip` is what the file holds already; all of it is on disk.
    pub(super) fn new(
        dir: SessionDir,
        options: &WriterOptions,
        sink: Box<dyn EventSink>,
        tip: Tip,
        proven: u64,
    ) -> Self {
        let checkpoint = Checkpoint {
            origin: dir.origin(),
            size: 0,
            root: tip.tree.root(),
        };
        Self {
            blobs: dir.blobs_dir(),
            dir,
            key: Arc::clone(&options.key),
            clock: options.clock.clone().never_before(tip.time),
            checkpoint_after: options.checkpoint_after,
            salts: Mutex::new(SaltPool::new()),
            state: Mutex::new(State {
                sink,
                buffer: Vec::with_capacity(2 * BATCH_BYTES),
                durable: tip.tree.size(),
                proven,
                tip,
                wanted_durable: 0,
                wanted_proven: 0,
                checkpoint: (checkpoint, String::new()),
                idle: false,
                phase: Phase::Open,
                stopped: None,
                wakers: Vec::new(),
            }),
            work: Condvar::new(),
            progress: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while it holds the writer's state")
    }

    pub(super) fn append(
        self: &Arc<Self>,
        kind: EventType,
        actor: &str,
        parents: &[u64],
        payload: &[u8],
        after: After,
    ) -> Result<Receipt, AppendError> {
        let salt = self
            .salts
            .lock()
            .expect("nothing panics while it takes a salt")
            .next()
            .map_err(|e| self.failure("take random bytes for", e))?;
        let payload_hash = payload_hash(&salt, payload);
        let now = self.clock.now();

        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(stopped) = &state.stopped {
            return Err(stopped.clone().into());
        }
        if state.phase != Phase::Open {
            return Err(AppendError::Closed);
        }
        let seq = state.tip.tree.size();
        if parents.last().is_some_and(|last| *last >= seq) {
            return Err(AppendError::BadParents);
        }
        let leaf = state.tip.append(
            &mut state.buffer,
            &NewEvent {
                actor,
                parents,
                project: self.dir.project().as_str(),
                session: self.dir.session().as_str(),
                kind,
                now,
                payload,
                payload_hash,
                salt: &salt,
            },
        );
        let time = state.tip.time;
        if after == After::Close {
            state.phase = Phase::Closed;
        }
        if state.buffer.len() >= BATCH_BYTES {
            self.flush(state)?;
        }
        let unproven = seq + 1 - state.proven;
        if state.idle || unproven.is_multiple_of(CHECKPOINT_EVENTS) {
            state.idle = false;
            self.work.notify_one();
        }
        Ok(Receipt {
            shared: Arc::clone(self),
            seq,
            leaf,
            time,
        })
    }

    pub(super) fn hand_over(&self) -> Result<(), Stopped> {
        let mut state = self.lock();
        match &state.stopped {
            Some(stopped) => Err(stopped.clone()),
            None => self.flush(&mut state),
        }
    }

    /// Hands the buffer to the operating system.
    fn flush(&self, state: &mut State) -> Result<(), Stopped> {
        if state.buffer.is_empty() {
            return Ok(());
        }
        if let Err(error) = state.sink.write_all(&state.buffer) {
            let stopped = self.failure("write", error);
            self.halt(state, stopped.clone());
            return Err(stopped);
        }
        state.buffer.clear();
        Ok(())
    }

    fn failure(&self, step: &'static str, error: io::Error) -> Stopped {
        Stopped {
            step,
            path: self.dir.events_path(),
            source: Arc::new(error),
        }
    }

    /// INVARIANT: once stopped, always stopped; everybody who waits is told.
    fn halt(&self, state: &mut State, stopped: Stopped) {
        state.stopped.get_or_insert(stopped);
        self.progress.notify_all();
        self.work.notify_one();
        state.wakers.drain(..).for_each(Waker::wake);
    }

    pub(super) fn wait(&self, seq: u64, barrier: Barrier) -> Result<(), Stopped> {
        let mut state = self.lock();
        loop {
            match self.outcome(&mut state, seq, barrier) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => {
                    state = self
                        .progress
                        .wait(state)
                        .expect("nothing panics while it holds the writer's state");
                }
            }
        }
    }

    pub(super) fn poll(
        &self,
        seq: u64,
        barrier: Barrier,
        waker: &Waker,
    ) -> Poll<Result<(), Stopped>> {
        let mut state = self.lock();
        let outcome = self.outcome(&mut state, seq, barrier);
        if outcome.is_pending() && !state.wakers.iter().any(|w| w.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        outcome
    }

    /// Whether the event is safe by now; if not, the thread learns that somebody waits.
    fn outcome(&self, state: &mut State, seq: u64, barrier: Barrier) -> Poll<Result<(), Stopped>> {
        let size = seq + 1;
        let (reached, wanted) = match barrier {
            Barrier::Disk => (state.durable, &mut state.wanted_durable),
            Barrier::Checkpoint => (state.proven, &mut state.wanted_proven),
        };
        if reached >= size {
            return Poll::Ready(Ok(()));
        }
        if let Some(stopped) = &state.stopped {
            return Poll::Ready(Err(stopped.clone()));
        }
        if *wanted < size {
            *wanted = size;
            state.idle = false;
            self.work.notify_one();
        }
        Poll::Pending
    }

    pub(super) fn latest_checkpoint(&self) -> (Checkpoint, String) {
        self.lock().checkpoint.clone()
    }

    pub(super) fn head(&self) -> (u64, Digest) {
        let state = self.lock();
        (state.tip.tree.size(), state.tip.tree.root())
    }

    pub(super) fn stop(&self) {
        self.lock().phase = Phase::Ending;
        self.work.notify_one();
    }

    /// The background thread.
    pub(super) fn run(&self, mut sync: Box<dyn FnMut() -> io::Result<()> + Send>) {
        let mut last_checkpoint = Instant::now();
        loop {
            let (mut state, ending) = self.wait_for_work(self.lock(), last_checkpoint);
            if state.stopped.is_some() || self.flush(&mut state).is_err() {
                return;
            }
            let size = state.tip.tree.size();
            let sign = state.wanted_proven > state.proven
                || size - state.proven >= CHECKPOINT_EVENTS
                || (size > state.proven
                    && (ending || last_checkpoint.elapsed() >= self.checkpoint_after));
            let needs_sync = state.durable < size;
            let root = sign.then(|| state.tip.tree.root());
            drop(state);

            if needs_sync && let Err(error) = sync() {
                return self.halt(&mut self.lock(), self.failure("sync", error));
            }
            // INVARIANT: a checkpoint reaches the disk after the events it covers, so that a
            // crash can never look like a truncation.
            let signed = match root.map(|root| self.sign_checkpoint(size, root)) {
                Some(Err(error)) => {
                    let mut stopped = self.failure("write the checkpoint of", error);
                    stopped.path = self.dir.checkpoint_path();
                    return self.halt(&mut self.lock(), stopped);
                }
                Some(Ok(signed)) => Some(signed),
                None => None,
            };

            let mut state = self.lock();
            state.durable = size;
            if let Some(signed) = signed {
                state.proven = size;
                state.checkpoint = signed;
                last_checkpoint = Instant::now();
            }
            self.progress.notify_all();
            let wakers = std::mem::take(&mut state.wakers);
            let done = ending && state.buffer.is_empty();
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            if done {
                return;
            }
        }
    }

    /// Sleeps until there is a reason to sync; writes out what lies around meanwhile. True when
    /// the last writer is gone.
    fn wait_for_work<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        last: Instant,
    ) -> (MutexGuard<'a, State>, bool) {
        loop {
            let unproven = state.tip.tree.size() - state.proven;
            let old = unproven > 0 && last.elapsed() >= self.checkpoint_after;
            let barrier =
                state.wanted_durable > state.durable || state.wanted_proven > state.proven;
            if state.phase == Phase::Ending {
                return (state, true);
            }
            if barrier || old || unproven >= CHECKPOINT_EVENTS || state.stopped.is_some() {
                return (state, false);
            }
            let wait = if !state.buffer.is_empty() {
                FLUSH_AFTER
            } else if unproven > 0 {
                self.checkpoint_after.saturating_sub(last.elapsed())
            } else {
                Duration::from_secs(3600)
            };
            state.idle = state.buffer.is_empty();
            let (woken, timeout) = self
                .work
                .wait_timeout(state, wait)
                .expect("nothing panics while it holds the writer's state");
            state = woken;
            state.idle = false;
            if timeout.timed_out() && self.flush(&mut state).is_err() {
                return (state, false);
            }
        }
    }

    fn sign_checkpoint(&self, size: u64, root: Digest) -> io::Result<(Checkpoint, String)> {
        let checkpoint = Checkpoint {
            origin: self.dir.origin(),
            size,
            root,
        };
        let note = checkpoint.sign(&self.key).to_string();
        disk::replace(self.dir.dir(), CHECKPOINT, note.as_bytes())?;
        Ok((checkpoint, note))
    }
}
