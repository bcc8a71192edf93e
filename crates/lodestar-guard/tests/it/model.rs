//! The model of holds and real sessions go the same random ways: calls, answers, callers that go away
//! in the middle, worlds that move, sessions that are closed or cut off and taken up again by another
//! process. The rules of the model are those of `lodestar-policy`, where every state is looked at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::ApprovalDecision;
use lodestar_guard::channel::Channel;
use lodestar_guard::{Holds, Outcome, Session};
use lodestar_kernel::record::Rejection;
use lodestar_kernel::step::{Step as Made, Steps};
use serde_json::{Value, json};

use crate::governed::{CountingTool, Project};
use crate::people::{Pigeon, config, gone, said};

#[path = "../../../lodestar-policy/tests/it/model/follow.rs"]
#[allow(dead_code, reason = "what is explored there is not explored here")]
mod follow;
#[path = "../../../lodestar-policy/tests/it/model/law.rs"]
#[allow(dead_code, reason = "what is explored there is not explored here")]
mod law;
#[path = "../../../lodestar-policy/tests/it/model/machine.rs"]
#[allow(dead_code, reason = "what is explored there is not explored here")]
mod machine;
#[path = "../../../lodestar-policy/tests/it/model/state.rs"]
#[allow(dead_code, reason = "what is explored there is not explored here")]
mod state;

use machine::{Configured, Machine, Post, Scenario, Step};
use state::{At, Budget, Closing, Said, Standing, State, Word};

/// Where a caller goes away.
const LEAVES: [Option<Made>; 10] = [
    None,
    None,
    None,
    None,
    None,
    None,
    Some(Made::MeasuredAgain),
    Some(Made::Cleared),
    Some(Made::Durable),
    Some(Made::Returned),
];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides as u64) as usize
    }
}

/// A project, the session in it, and the model's idea of both.
struct Both {
    project: Project,
    tool: CountingTool,
    pigeon: Arc<Pigeon>,
    quorum: u32,
    /// How often the configuration has changed.
    configured: u64,
    leaves_at: Arc<Mutex<Option<Made>>>,
    session: Option<Session>,
    id: SessionId,
    machine: Machine,
    state: State,
    /// The process of the model that is up.
    process: usize,
    requests: Vec<Option<RequestId>>,
    /// Denied requests that this process has told a call of.
    told: Vec<RequestId>,
    way: Vec<String>,
}

/// What is called: the letter is looked at when a card is made, and again before it is sent.
fn arguments(act: usize) -> Value {
    json!({"to": "anna@corp.example", "path": "letter.md", "text": format!("act {act}")})
}

impl Both {
    async fn new(quorum: u32, acts: [u8; 2]) -> Self {
        let scenario = Scenario {
            name: "random ways",
            acts,
            apart: false,
            quorum,
            calls: [100, 100],
            confirms: false,
            words: &[],
            post: Post::Swift,
            budget: Budget {
                stops: 100,
                words: 100,
                moves: 100,
                other: 100,
            },
        };
        let machine = Machine::right(scenario);
        let mut both = Self {
            project: Project::new(),
            tool: CountingTool::new("box.send"),
            pigeon: Arc::default(),
            quorum,
            configured: 0,
            leaves_at: Arc::default(),
            session: None,
            id: "none".parse().unwrap(),
            state: machine.start(),
            machine,
            process: 0,
            requests: vec![None; state::SLOTS],
            told: Vec::new(),
            way: Vec::new(),
        };
        both.write_letter();
        both.open().await;
        both
    }

    fn write_letter(&self) {
        let letter = ["as it was", "as it is now"][usize::from(self.state.world)];
        std::fs::write(self.project.root.join("letter.md"), letter).unwrap();
    }

    fn config(&self) -> String {
        let more = format!("[approvals.default]\nquorum = {}\n", self.quorum);
        let deadline = 60_000 + self.configured;
        let limits = format!("[limits]\ncall_deadline_ms = {deadline}\n");
        config(0, &format!("{more}{limits}"))
    }

    /// Opens a session; true if it is the one from before.
    async fn open(&mut self) -> bool {
        let others = ["box.read", "box.write"].map(CountingTool::new);
        let leaves_at = Arc::clone(&self.leaves_at);
        let channel: Arc<dyn Channel> = self.pigeon.clone();
        let setup = self.project.setup(&self.config(), &others);
        let setup = setup
            .tool(self.tool.clone())
            .steps(Steps::tell(move |made| {
                let leaves = *leaves_at.lock().unwrap() == Some(made);
                if leaves {
                    // As if the future of the call were dropped here.
                    std::panic::resume_unwind(Box::new("gone"));
                }
            }));
        let session = setup
            .holds(Holds::Tell(vec![channel]))
            .open()
            .await
            .unwrap();
        let is_same = *session.id() == self.id;
        self.id = session.id().clone();
        self.session = Some(session);
        is_same
    }

    fn step(&mut self, step: Step) {
        self.state = self.machine.follow(&self.state, step);
        let broken = self.machine.broken(&self.state);
        assert_eq!(broken, 0, "{:?}", self.state);
    }

    fn at(&self, c: usize) -> At {
        self.state.calls[c].at
    }

    /// The model makes a whole call, up to where its caller goes away. Gives back the request that it
    /// was about, if it came to have one.
    fn model_call(&mut self, c: usize, leaves: Option<Made>) -> (Option<usize>, Expected) {
        self.step(Step::Call(c, self.process));
        if let At::Looked { .. } = self.at(c) {
            self.step(Step::Open(c));
            self.step(Step::Sync(0));
            if let At::Opened(_) = self.at(c) {
                self.step(Step::Announce(c));
            }
        }
        let At::Waiting(r) = self.at(c) else {
            return (None, Expected::Nothing);
        };
        self.step(Step::Look(c));
        if let At::Waiting(_) = self.at(c) {
            self.step(Step::Leave(c));
            return (Some(r), Expected::Waits);
        }
        if leaves == Some(Made::MeasuredAgain) {
            // Nobody is told what was measured.
            self.step(Step::Leave(c));
            return (Some(r), Expected::Gone);
        }
        self.step(Step::Measure(c));
        if let At::Moved(..) = self.at(c) {
            self.step(Step::CloseMoved(c));
            return (Some(r), Expected::Moved);
        }
        let rest: [(Made, &[Step]); 4] = [
            (Made::Cleared, &[Step::Clear(c)]),
            (Made::Durable, &[Step::Sync(0), Step::Secure(c)]),
            (Made::Returned, &[Step::Run(c)]),
            (Made::Finished, &[Step::End(c)]),
        ];
        for (made, steps) in rest {
            for step in steps {
                self.step(*step);
            }
            if leaves == Some(made) {
                self.step(Step::Leave(c));
                return (Some(r), Expected::Gone);
            }
        }
        (Some(r), Expected::Ran)
    }

    async fn call(&mut self, c: usize, leaves: Option<Made>) {
        *self.leaves_at.lock().unwrap() = leaves;
        let session = self.session.clone().unwrap();
        let arguments = arguments(usize::from(self.machine.scenario.acts[c]));
        let calling = tokio::spawn(async move { session.call("box.send", arguments).await });
        let reply = calling.await;
        *self.leaves_at.lock().unwrap() = None;
        if let Ok(Ok(reply)) = &reply
            && let Some(Rejection::ApprovalDenied { request, .. }) = reply.refusal()
        {
            return self.is_told(*request);
        }
        let (r, expected) = self.model_call(c, leaves);
        let way = &self.way;
        match (expected, reply) {
            (Expected::Gone, Err(gone)) => assert!(gone.is_panic(), "{way:#?}"),
            (Expected::Ran, Ok(Ok(reply))) => {
                assert!(matches!(reply.outcome, Outcome::Returned(_)), "{way:#?}");
            }
            (Expected::Moved, Ok(Ok(reply))) => {
                let why = reply.refusal();
                let moved = matches!(why, Some(Rejection::PreconditionFailed { .. }));
                assert!(moved, "{why:?} after {way:#?}");
            }
            (Expected::Waits, Ok(Ok(reply))) => {
                let Some(Rejection::ApprovalRequired { request }) = reply.refusal() else {
                    panic!("{:?} after {way:#?}", reply.refusal())
                };
                let known = self.requests[r.unwrap()].get_or_insert(*request);
                assert_eq!(known, request, "{way:#?}");
            }
            (expected, reply) => panic!("{expected:?}, and {reply:?} after {way:#?}"),
        }
    }

    /// A no that was said while no call waited: it is told once, asks nobody and moves nothing, so that the model
    /// does not know of it.
    fn is_told(&mut self, request: RequestId) {
        let way = &self.way;
        let mut known = self.requests.iter();
        let r = known.position(|known| *known == Some(request));
        let r = r.unwrap_or_else(|| panic!("{request} is unknown after {way:#?}"));
        let standing = self.machine.whole(&self.state, 0).heard[r].standing;
        assert_eq!(standing, Standing::Over(Closing::Denied), "{way:#?}");
        assert!(!self.told.contains(&request), "told twice after {way:#?}");
        self.told.push(request);
    }

    /// Whether a call would need one request more than the model has room for.
    fn is_full(&self) -> bool {
        self.state.asked.iter().all(Option::is_some)
    }

    async fn say(&mut self, r: usize, approver: usize, word: Word) {
        let id = self.requests[r].unwrap();
        let mut requests = self.pigeon.requests().into_iter();
        let request = requests.find(|request| request.id == id).unwrap();
        let decision = match word {
            Word::Deny => ApprovalDecision::Deny,
            Word::Grant | Word::Stray => ApprovalDecision::Grant,
        };
        let mut signed = request.clone();
        if word == Word::Stray {
            let other = self.pigeon.requests().into_iter();
            let own = request.card.action.fingerprint;
            let other = other.map(|request| request.card.action.fingerprint);
            let Some(other) = other.into_iter().find(|other| *other != own) else {
                return;
            };
            signed.card.action.fingerprint = other;
        }
        let heard = self.pigeon.recorded.lock().unwrap().len();
        let bytes = said(&signed, approver as u8 + 1, decision);
        self.pigeon.bring(id, bytes);
        self.pigeon.heard(heard + 1).await;
        self.step(Step::Sign(r, approver, word));
    }

    /// The session is closed, or cut off; another process goes on, perhaps configured otherwise.
    async fn stop(&mut self, crash: bool, configured: Configured) {
        let session = self.session.take().unwrap();
        self.told.clear();
        if crash {
            self.step(Step::Crash(self.process, self.state.logs[0].tail.len()));
        } else {
            session.close("client went away").await.unwrap();
            self.step(Step::Close(self.process));
        }
        gone(&self.project, session).await;
        self.compare();
        self.process = 1 - self.process;
        // What listened in the process that is gone does not take the words of the next.
        self.pigeon = Arc::default();
        self.configured += u64::from(configured == Configured::Otherwise);
        let before = self.state.logs[0].session;
        self.step(Step::Start(self.process, configured));
        let is_same = self.open().await;
        assert_eq!(
            is_same,
            self.state.logs[0].session == before,
            "{:#?}",
            self.way
        );
    }

    /// Another process tries while this one has the session: it gets one of its own.
    async fn intrude(&mut self) {
        let (own, session) = (self.id.clone(), self.session.take());
        let pigeon = std::mem::take(&mut self.pigeon);
        assert!(!self.open().await, "{:#?}", self.way);
        self.session.take().unwrap().close("done").await.unwrap();
        (self.id, self.session, self.pigeon) = (own, session, pigeon);
    }

    /// What the logs say of every request, now that nobody writes.
    fn compare(&self) {
        let mut told: BTreeMap<String, Standing> = BTreeMap::new();
        for session in self.project.log().sessions_on_disk().unwrap() {
            for (kind, payload) in self.project.events(&session) {
                follow_event(&mut told, &kind, &payload);
            }
        }
        let fold = self.machine.whole(&self.state, 0);
        for (r, id) in self.requests.iter().enumerate() {
            let Some(id) = id else { continue };
            let told = told.get(&id.to_string());
            let expected = fold.heard[r].standing;
            assert_eq!(told, Some(&expected), "request {r} after {:#?}", self.way);
        }
        let ran: u64 = self.state.ran.iter().map(|ran| u64::from(*ran)).sum();
        assert_eq!(self.tool.ran(), ran, "{:#?}", self.way);
    }
}

/// What a call has to come to.
#[derive(Debug)]
enum Expected {
    Nothing,
    Waits,
    Ran,
    Gone,
    Moved,
}

/// Where a request stands, by what the log says outright.
fn follow_event(told: &mut BTreeMap<String, Standing>, kind: &str, payload: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let request = text(&payload["request"]);
    match kind {
        "approval.requested@1" => {
            told.insert(text(&payload["id"]), Standing::Open);
        }
        "approval.granted@1" if payload["missing"] == 0 => {
            told.insert(request, Standing::Granted);
        }
        "approval.denied@1" => {
            told.insert(request, Standing::Over(Closing::Denied));
        }
        "action.cleared@1" if !request.is_empty() => {
            told.insert(request, Standing::Over(Closing::Spent));
        }
        "approval.consumed@1" | "approval.expired@1" => {
            let closing = match payload["closing"].as_str() {
                Some("world_moved") => Closing::WorldMoved,
                Some("abandoned") => Closing::Abandoned,
                _ => Closing::Expired,
            };
            told.insert(request, Standing::Over(closing));
        }
        _ => {}
    }
}

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Goes one random way; gives back how often the tool ran, and how often the session was stopped.
async fn go(number: u64) -> (u64, u64) {
    let mut dice = Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    let quorum = [1, 1, 2][dice.roll(3)];
    let acts = [[0, 0], [0, 1]][dice.roll(2)];
    let mut both = Both::new(quorum, acts).await;
    let mut stops = 0;
    for _ in 0..16 {
        STEPS.fetch_add(1, Ordering::Relaxed);
        let live: Vec<usize> = both.machine.whole(&both.state, 0).live().collect();
        let live: Vec<usize> = live
            .into_iter()
            .filter(|r| both.requests[*r].is_some())
            .collect();
        match dice.roll(14) {
            0..=5 => {
                if both.is_full() {
                    break;
                }
                let (c, leaves) = (dice.roll(2), LEAVES[dice.roll(LEAVES.len())]);
                both.way.push(format!("call {c}, leaves at {leaves:?}"));
                both.call(c, leaves).await;
            }
            6..=10 if !live.is_empty() => {
                let (r, approver) = (live[dice.roll(live.len())], dice.roll(2));
                let mut words = vec![Word::Grant; 6];
                words.extend([Word::Stray, Word::Deny]);
                let word = words[dice.roll(words.len())];
                if both.state.words[r][approver][word as usize] == Said::Nothing {
                    both.way.push(format!("{approver} says {word:?} to {r}"));
                    both.say(r, approver, word).await;
                }
            }
            11 if dice.roll(2) == 0 => {
                both.way.push("the world moves".to_owned());
                both.step(Step::WorldMoves);
                both.write_letter();
            }
            12 => {
                let crash = dice.roll(2) == 0;
                let configured = match dice.roll(5) {
                    0 => Configured::Otherwise,
                    _ => Configured::Same,
                };
                both.way
                    .push(format!("stops, crash: {crash}, then {configured:?}"));
                both.stop(crash, configured).await;
                stops += 1;
            }
            13 if dice.roll(3) == 0 => {
                both.way.push("another process tries".to_owned());
                both.intrude().await;
            }
            _ => {}
        }
    }
    both.stop(true, Configured::Same).await;
    both.stop(false, Configured::Same).await;
    both.session.take().unwrap().close("done").await.unwrap();
    (both.tool.ran(), stops + 2)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matrix_random_ways_of_real_sessions_are_those_of_the_model() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let traces = if full { 2_000 } else { 25 };
    let (mut ran, mut stops) = (0, 0);
    for number in 0..traces {
        let (one, two) = go(number).await;
        (ran, stops) = (ran + one, stops + two);
    }
    let steps = STEPS.load(Ordering::Relaxed);
    println!("{traces} traces, {steps} steps, {stops} restarts, {ran} executions");
    assert!(ran > 0 && stops > 0);
}
