//! Random ways through the model, gone step by step by the real desk, permits, statements and a log on
//! disk as well. What only the kernel or the session does is done here in their place: the world is
//! measured, the tool counts. Restarts are gone with real sessions, in `lodestar-guard`.

use std::collections::BTreeSet;
use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ProjectId};
use lodestar_core::statement::confirmation::MemoryLedger;
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_log::{LogRoot, LogWriter, WriterOptions};
use lodestar_policy::confirmation::{Mode, Settled, settle};
use lodestar_policy::{
    Agent, ApprovalRequest, Approver, Approvers, ArbiterRules, Book, Card, Desk, Facts, Gate,
    Heard, Held, NotSpendable, Permit, Requirement, Ruling, Signed, Trail,
};
use serde_json::json;

use super::machine::{Machine, Scenario, Step};
use super::state::{At, Closing, END, Said, Standing, State, TWO, Word};
use crate::confirmations::{card_of, confirmations, held, issued, key, later, session, signed};
use crate::world::{Dice, policy, tools};

/// How long a tick of the model's clock is.
const TICK: u64 = 900;

/// What all traces of one quorum share.
struct Stage {
    _scratch: tempfile::TempDir,
    log: LogWriter,
    actor: ActorId,
    gate: Gate,
    approvers: Approvers,
    cards: [Card; TWO],
}

impl Stage {
    fn new(quorum: u32) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let project = LogRoot::in_folder(scratch.path()).project(&ProjectId::new("web").unwrap());
        let actor = ActorId::new("agent").unwrap();
        let options = WriterOptions::new(Arc::new(SecretKey::from_seed([7; 32])));
        let log = LogWriter::create(&project, &session(), &actor, &json!({}), &options).unwrap();
        let requirement = Requirement {
            roles: BTreeSet::new(),
            quorum,
            expires_seconds: TICK,
        };
        let approver = |name: &str, seed| Approver {
            actor: name.parse().unwrap(),
            public_key: key(seed).public(),
            roles: BTreeSet::new(),
            clearance: Rung::L4,
            scope: lodestar_core::scope::Scope::global(),
            revoked_at: None,
        };
        let people = vec![approver("alice", 11), approver("bob", 12)];
        Self {
            _scratch: scratch,
            log,
            actor,
            gate: Gate::new(policy(""), tools(), ArbiterRules::none(), requirement).unwrap(),
            approvers: Approvers::new(people).unwrap(),
            cards: [0, 1].map(|act| {
                card_of(
                    Rung::L4,
                    json!({"path": "a", "content": format!("act {act}")}),
                )
            }),
        }
    }
}

/// A call in the real world.
#[derive(Default)]
struct Caller {
    held: Option<Held>,
    permit: Option<Permit>,
}

/// The real world, beside a state of the model.
struct Real<'a> {
    stage: &'a Stage,
    desk: Desk,
    ledger: MemoryLedger,
    callers: [Caller; TWO],
    requests: Vec<Option<ApprovalRequest>>,
    signed: Vec<(usize, usize, Word, Vec<u8>)>,
    ran: Vec<u8>,
    number: u64,
}

impl<'a> Real<'a> {
    fn new(stage: &'a Stage, number: u64) -> Self {
        Self {
            stage,
            desk: Desk::default(),
            ledger: MemoryLedger::default(),
            callers: Default::default(),
            requests: vec![None; super::state::SLOTS],
            signed: Vec::new(),
            ran: vec![0; super::state::SLOTS],
            number,
        }
    }

    fn book(&self) -> Book<'a> {
        Book {
            log: &self.stage.log,
            actor: &self.stage.actor,
        }
    }

    fn id(&self, r: usize) -> RequestId {
        self.requests[r].as_ref().unwrap().id
    }

    /// Judges a call; the hold is in the log.
    fn judge(&self, act: u8) -> Held {
        let card = &self.stage.cards[usize::from(act)];
        let agent = Agent {
            actor: self.stage.actor.clone(),
            device_trust: "none".to_owned(),
            execution: "test".to_owned(),
        };
        let facts = Facts {
            action: ActionId::from_parts(self.number, [act; 10]),
            fingerprint: card.action.fingerprint,
            agent: &agent,
            tool: &card.action.tool,
            contract: &card.action.contract,
            arguments: &card.action.arguments,
            paths: &card.paths,
            provenance: &[],
            dependencies: &[],
            trail: Trail::default(),
        };
        let (log, actor) = (&self.stage.log, &self.stage.actor);
        match self.stage.gate.rule(&facts, &[], log, actor, 0).unwrap() {
            Ruling::Held(held) => held,
            other => panic!("not held: {other:?}"),
        }
    }

    /// Sweeps and asks; what comes back is where the call has to be.
    fn ask(&mut self, c: usize, now: Timestamp) -> Option<RequestId> {
        self.desk.sweep(now, self.book()).unwrap();
        let held = self.callers[c].held.as_ref().unwrap();
        self.desk.asking_for(held, now)
    }

    fn agrees(&self, found: Option<RequestId>, at: At) {
        match (found, at) {
            (Some(id), At::Waiting(r)) => assert_eq!(id, self.id(r)),
            (None, At::Looked { .. }) => {}
            (found, at) => panic!("asked: {found:?}, and in the model {at:?}"),
        }
    }

    fn open(&mut self, c: usize, r: usize, now: Timestamp, expires: Timestamp) {
        let held = self.callers[c].held.as_ref().unwrap();
        let act = self.stage.cards.iter();
        let mut act = act.filter(|card| card.action.fingerprint == held.fingerprint());
        let card = act.next().unwrap().clone();
        let mut random = [0; 10];
        random[0] = r as u8;
        let id = RequestId::from_parts(self.number, random);
        let place = ("web".parse().unwrap(), session());
        let requirement = held.judgement().requirement.clone().unwrap();
        let policy = held.judgement().policy;
        let request = ApprovalRequest::new(id, place, card, requirement, policy, now);
        let mut request = request.unwrap();
        request.expires_at = expires;
        request.card_digest = request.digest().unwrap();
        let book = self.book();
        self.desk.open(held, request.clone(), book).unwrap();
        self.requests[r] = Some(request);
    }

    /// Takes the grants if they are enough, as a waiting call does.
    fn look(&mut self, c: usize, r: usize, now: Timestamp, after: At) {
        let (id, held) = (self.id(r), self.callers[c].held.take().unwrap());
        let expires = self.requests[r].as_ref().unwrap().expires_at;
        let refused = match self.desk.take(id, held, now) {
            Ok(permit) => {
                self.callers[c].permit = Some(permit);
                assert!(
                    matches!(after, At::Permitted(taken, _) if taken == r),
                    "{after:?}"
                );
                return;
            }
            Err((held, why)) => {
                self.callers[c].held = Some(*held);
                why
            }
        };
        use lodestar_policy::Closing as Real;
        match refused {
            NotSpendable::NotGranted | NotSpendable::Taken if now < expires => {
                assert_eq!(after, At::Waiting(r));
            }
            NotSpendable::Over(Real::Spent | Real::WorldMoved | Real::Abandoned) => {
                if now < later(TICK * u64::from(END)) {
                    let asked = self.ask(c, now);
                    self.agrees(asked, after);
                }
            }
            _ => assert_eq!(after, At::Idle, "{refused:?}"),
        }
    }

    fn sign(&mut self, r: usize, approver: usize, word: Word, now: Timestamp) {
        let mut request = self.requests[r].clone().unwrap();
        let decision = match word {
            Word::Deny => ApprovalDecision::Deny,
            Word::Grant | Word::Stray => ApprovalDecision::Grant,
        };
        if word == Word::Stray {
            let own = request.card.action.fingerprint;
            let mut cards = self.stage.cards.iter();
            let other = cards.find(|card| card.action.fingerprint != own).unwrap();
            request.card.action.fingerprint = other.action.fingerprint;
        }
        let mut nonce = [0; 16];
        nonce[..3].copy_from_slice(&[r as u8, approver as u8, word as u8]);
        let (name, seed) = [("alice", 11), ("bob", 12)][approver];
        let key = key(seed);
        let with = Signed {
            key: &key,
            at: now,
            nonce: Nonce::from_bytes(nonce),
        };
        let said = request.answer(&name.parse().unwrap(), decision, "", with);
        self.signed
            .push((r, approver, word, said.unwrap().to_json()));
    }

    fn hear(&mut self, r: usize, approver: usize, word: Word, now: Timestamp, after: &State) {
        let mut signed = self.signed.iter();
        let is_it =
            |one: &&(usize, usize, Word, Vec<u8>)| (one.0, one.1, one.2) == (r, approver, word);
        let sent = signed.find(is_it).unwrap().3.clone();
        let (id, book) = (self.id(r), self.book());
        let heard = self.desk.hear(id, &sent, &self.stage.approvers, now, book);
        let heard = heard.unwrap();
        let said = after.words[r][approver][word as usize];
        let counted = matches!(said, Said::Heard | Said::Kept { counted: true });
        let is_refused = matches!(heard, Heard::Refused(_));
        assert_eq!(is_refused, !counted, "{heard:?}");
    }

    fn consume(&mut self, r: usize, now: Timestamp) {
        let card = self.requests[r].as_ref().unwrap().card.clone();
        // Signed at the very first, whenever it is brought.
        let sent = signed(&issued(&card));
        let rules = confirmations(Mode::Enforce);
        let act = held(&card);
        let settled = settle(Some(&sent), &act, &rules, &mut self.ledger, now).unwrap();
        if let Settled::Confirmed(confirmed, consumed) = settled {
            let (log, actor) = (&self.stage.log, &self.stage.actor);
            let kind = EventType::CONFIRMATION_CONSUMED;
            let recorded = log.append(kind, actor, &[], &consumed).unwrap().seq();
            let (id, book) = (self.id(r), self.book());
            let approvers = &self.stage.approvers;
            self.desk
                .confirm(id, (&confirmed, recorded), approvers, now, book)
                .unwrap();
        }
    }

    /// Records the clearance, as the kernel does, if the permit is still good.
    fn clear(&mut self, c: usize, r: usize, after: At) {
        let permit = self.callers[c].permit.take().unwrap();
        let (log, actor) = (&self.stage.log, &self.stage.actor);
        let cleared = json!({"request": self.id(r), "grants": permit.grants()});
        let parents = [permit.judged()];
        let append = || log.append(EventType::ACTION_CLEARED, actor, &parents, &cleared);
        match permit.spend(|| Some(append().unwrap())) {
            Ok(receipt) => {
                assert!(receipt.is_some());
                assert_eq!(after, At::Cleared(r));
            }
            Err(_) => assert_eq!(after, At::Idle),
        }
    }

    /// Records that the world had moved, as the kernel does. That ends the request, before anybody says
    /// so in its own words.
    fn reject(&mut self, c: usize, r: usize) {
        let permit = self.callers[c].permit.take().unwrap();
        let (id, closing) = (self.id(r), lodestar_policy::Closing::WorldMoved);
        permit.spend_in_vain(|| {
            let (log, actor) = (&self.stage.log, &self.stage.actor);
            let rejected = json!({"granted": id, "kind": "precondition_failed"});
            log.append(EventType::ACTION_REJECTED, actor, &[], &rejected)
                .unwrap();
        });
        let standing = self.desk.requests().standing(id);
        assert!(matches!(standing, Some(lodestar_policy::Standing::Over(_))));
        drop(permit);
        self.desk.close(id, closing, self.book()).unwrap();
    }

    /// Does what a step of the model does.
    fn follow(&mut self, before: &State, step: Step, after: &State, machine: &Machine) {
        let now = at(before.clock);
        let to = |c: usize| after.calls[c].at;
        match step {
            Step::Call(c, _) => {
                self.callers[c].held = Some(self.judge(machine.scenario.acts[c]));
                let asked = self.ask(c, now);
                self.agrees(asked, to(c));
            }
            Step::Open(c) => {
                if let At::Opened(r) = to(c) {
                    self.open(c, r, now, at(before.clock + 1));
                }
            }
            Step::Look(c) => {
                if let At::Waiting(r) = before.calls[c].at {
                    self.look(c, r, now, to(c));
                }
            }
            Step::Consume(c) => {
                if let At::Weighed(r) = before.calls[c].at {
                    self.consume(r, now);
                }
            }
            Step::CloseMoved(c) => {
                if let At::Moved(r, _) = before.calls[c].at {
                    self.reject(c, r);
                }
            }
            Step::Clear(c) => {
                if let At::Measured(r, _) = before.calls[c].at {
                    self.clear(c, r, to(c));
                }
            }
            Step::Run(c) => {
                if let At::Safe(r) = before.calls[c].at {
                    self.ran[r] += 1;
                }
            }
            Step::Sign(r, approver, word) => {
                self.sign(r, approver, word, now);
            }
            Step::Hear(r, approver, word) => self.hear(r, approver, word, now, after),
            Step::Close(_) => {
                self.desk.sweep(now, self.book()).unwrap();
            }
            Step::Measure(_) | Step::Leave(_) | Step::End(_) => {}
            Step::Announce(_) | Step::Weigh(_) | Step::Secure(_) => {}
            Step::Confirm | Step::Sync(_) | Step::Tick | Step::WorldMoves => {}
            Step::Crash(..) | Step::Start(..) => unreachable!("nothing stops here"),
        }
        for (c, caller) in self.callers.iter_mut().enumerate() {
            if to(c).permit().is_none() {
                caller.permit = None;
            }
            if to(c) == At::Idle {
                caller.held = None;
            }
        }
    }

    /// Everything that both know is the same.
    fn compare(&mut self, state: &State, machine: &Machine) {
        let fold = machine.whole(state, 0);
        let now = at(state.clock);
        for (r, request) in self.requests.iter().enumerate() {
            let Some(request) = request else { continue };
            let heard = fold.heard[r];
            let requests = self.desk.requests();
            assert_eq!(
                requests.standing(request.id),
                real(heard.standing),
                "request {r}"
            );
            let people = requests
                .get(request.id)
                .unwrap()
                .granted_by(request.created_at)
                .len();
            let counted = (heard.answers | u8::from(heard.confirmed)).count_ones();
            assert_eq!(people, counted as usize, "who agreed to request {r}");
            let fingerprint = request.card.action.fingerprint;
            let spendable = requests.spendable(request.id, fingerprint, now).is_ok();
            let in_time = now < request.expires_at;
            assert_eq!(spendable, heard.standing == Standing::Granted && in_time);
        }
        assert_eq!(self.ran, state.ran);
    }
}

fn at(clock: u8) -> Timestamp {
    later(TICK * u64::from(clock))
}

fn real(standing: Standing) -> Option<lodestar_policy::Standing> {
    use lodestar_policy::{Closing as Real, Standing as Stands};
    Some(match standing {
        Standing::Nothing => return None,
        Standing::Open => Stands::Open,
        Standing::Granted => Stands::Granted,
        Standing::Over(closing) => Stands::Over(match closing {
            Closing::Spent => Real::Spent,
            Closing::Denied => Real::Denied,
            Closing::Expired => Real::Expired,
            Closing::WorldMoved => Real::WorldMoved,
            Closing::Abandoned => Real::Abandoned,
        }),
    })
}

/// What random ways came to.
#[derive(Debug, Default)]
pub(super) struct Gone {
    pub(super) traces: u64,
    pub(super) steps: u64,
    pub(super) executions: u64,
    pub(super) granted: u64,
    pub(super) denied: u64,
    pub(super) moved: u64,
    pub(super) revoked: u64,
}

/// What ends a way, or a hold, is picked less often than what goes on.
fn pick(steps: &[Step], dice: &mut Dice) -> Step {
    for _ in 0..3 {
        let step = steps[dice.roll(steps.len())];
        let ends = match step {
            Step::Leave(_) | Step::Tick | Step::Close(_) => true,
            Step::Sign(_, _, word) => word != Word::Grant,
            Step::WorldMoves => true,
            _ => false,
        };
        if !ends || dice.roll(8) == 0 {
            return step;
        }
    }
    steps[dice.roll(steps.len())]
}

/// Goes so many random ways.
pub(super) fn go(scenario: Scenario, traces: u64, seed: u64) -> Gone {
    let stage = Stage::new(scenario.quorum);
    let machine = Machine::right(scenario);
    let mut gone = Gone {
        traces,
        ..Gone::default()
    };
    for number in 0..traces {
        let mut dice = Dice(seed.wrapping_add(number.wrapping_mul(0x9e37_79b9)));
        let (mut real, mut state) = (Real::new(&stage, number + 1), machine.start());
        let mut way = Vec::new();
        loop {
            let mut steps = machine.steps(&state);
            steps.retain(|step| machine.follow(&state, *step) != state);
            if steps.is_empty() {
                break;
            }
            let step = pick(&steps, &mut dice);
            way.push(step);
            let after = machine.follow(&state, step);
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                real.follow(&state, step, &after, &machine);
                real.compare(&after, &machine);
            }));
            if checked.is_err() {
                panic!(
                    "trace {number} of {} goes apart at the end of {way:#?}",
                    scenario.name
                );
            }
            if let Step::Clear(c) = step {
                gone.revoked += u64::from(after.calls[c].at == At::Idle);
            }
            state = after;
            gone.steps += 1;
        }
        let fold = machine.whole(&state, 0);
        let ended = |closing| {
            let heard = fold.heard.iter();
            heard
                .filter(|heard| heard.standing == Standing::Over(closing))
                .count() as u64
        };
        gone.executions += state.ran.iter().map(|ran| u64::from(*ran)).sum::<u64>();
        gone.granted += ended(Closing::Spent);
        gone.denied += ended(Closing::Denied);
        gone.moved += ended(Closing::WorldMoved);
    }
    gone
}
