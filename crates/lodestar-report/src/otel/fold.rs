//! Events to spans, in one pass and in memory that does not grow with the log.
//!
//! Every event that belongs to an action names, first among its parents, another that does; so what belongs
//! together is known even where payloads were redacted. Kept is what is in flight: actions until they are
//! over and what they returned is adopted, requests until they are closed, and the session's own span.

mod around;
mod calls;

use std::collections::{BTreeMap, VecDeque};

use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, ObservationId, RequestId};
use lodestar_core::ladder::Verdict;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_log::{Event, Reader};
use lodestar_policy::{Closed, Judgement};
use lodestar_replay::{Recorded, Results};
use opentelemetry::KeyValue;
use opentelemetry_sdk::trace::SpanData;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::action::{ActionSpan, End, Reached};
use super::admit::Admitted;
use super::attributes::Finished;
use super::content::Ceiling;
use super::hold::HoldSpan;
use super::ids::{Ids, Role};
use super::root::RootSpan;

/// Most actions that are over and wait for what is believed of them. What is adopted later than so many calls
/// is told by the session's span.
const MOST_WAITING: usize = 1024;

/// Why a log cannot be projected. One that was verified and derived again never gives this.
#[derive(Debug, Error)]
pub enum Unprojectable {
    /// An event does not say what its type says.
    #[error("#{seq} cannot be read: {problem}")]
    Event {
        /// Which.
        seq: u64,
        /// Why.
        problem: String,
    },
    /// The file cannot be read any more.
    #[error("the log cannot be read: {0}")]
    Log(String),
    /// It is shorter than when it was verified.
    #[error(
        "the log ends at #{found}, and {expected} events of it were proven: it was changed while it was exported"
    )]
    Shorter {
        /// How many were verified.
        expected: u64,
        /// How many are there.
        found: u64,
    },
}

/// How much was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Spans.
    pub spans: u64,
    /// Events that they come from.
    pub events: u64,
    /// Events that no checkpoint covers yet, and that are left out.
    pub unproven: u64,
}

/// Who an event belongs to.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// The action of this proposal.
    Action(u64),
    /// The request of this event.
    Hold(u64),
}

/// The fold over the events of one session.
pub struct Fold {
    admitted: Admitted,
    ceiling: Ceiling,
    results: Results,
    open: Option<(Ids, RootSpan)>,
    actions: BTreeMap<u64, ActionSpan>,
    by_id: BTreeMap<ActionId, u64>,
    by_observation: BTreeMap<ObservationId, u64>,
    /// Actions that are over, in the order in which they ended.
    waiting: VecDeque<u64>,
    holds: BTreeMap<u64, HoldSpan>,
    requests: BTreeMap<RequestId, u64>,
    owners: BTreeMap<u64, Owner>,
    servers: BTreeMap<String, Reached>,
    last: Option<Timestamp>,
    out: Vec<SpanData>,
}

impl Fold {
    /// Before the first event.
    pub fn new(admitted: Admitted, ceiling: Sensitivity) -> Self {
        Self {
            ceiling: Ceiling(ceiling),
            results: Results::new(&admitted.dir),
            admitted,
            open: None,
            actions: BTreeMap::new(),
            by_id: BTreeMap::new(),
            by_observation: BTreeMap::new(),
            waiting: VecDeque::new(),
            holds: BTreeMap::new(),
            requests: BTreeMap::new(),
            owners: BTreeMap::new(),
            servers: BTreeMap::new(),
            last: None,
            out: Vec::new(),
        }
    }

    /// Takes the next event, and gives the spans that are over by it.
    pub fn take(&mut self, event: &Event) -> Result<Vec<SpanData>, Unprojectable> {
        let recorded = self.results.follow(event).map_err(|e| broken(event, &e))?;
        self.last = Some(event.time);
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            return Ok(Vec::new());
        };
        match recorded {
            Recorded::Event(said) => self.believed(event, &said),
            Recorded::Results(adoption) => {
                for (returned, plain) in &adoption.results {
                    let owner = self.owners.get(&returned.seq).copied();
                    self.adopted(event, owner, plain.adopted());
                }
            }
            Recorded::Redacted => self.note_root("lodestar.redacted", event, Vec::new()),
            Recorded::Other => self.other(kind, event)?,
        }
        Ok(std::mem::take(&mut self.out))
    }

    /// The spans of everything that is not over, and last of all the session's.
    pub fn finish(mut self) -> Vec<SpanData> {
        let Some(last) = self.last else {
            return Vec::new();
        };
        for seq in self.actions.keys().copied().collect::<Vec<_>>() {
            self.flush(seq);
        }
        for hold in std::mem::take(&mut self.holds).into_values() {
            self.emit(hold.left_open(last));
        }
        if let Some((ids, root)) = self.open.take() {
            self.out.push(root.ended(last).data(&ids));
        }
        self.out
    }

    fn other(&mut self, kind: EventType, event: &Event) -> Result<(), Unprojectable> {
        match kind {
            EventType::SESSION_OPENED => self.opened(event)?,
            EventType::ACTION_PROPOSED => self.proposed(event)?,
            EventType::ACTION_JUDGED => {
                let judgement: Option<Judgement> = self.read(event)?;
                let holds = judgement
                    .as_ref()
                    .is_some_and(|it| it.verdict == Verdict::Hold);
                if let Some((_, root)) = &mut self.open {
                    root.counts.held += u64::from(holds);
                }
                self.with_action(event, |action| action.judged(event, judgement.as_ref()));
            }
            EventType::ACTION_CLEARED => self.cleared(event)?,
            EventType::ACTION_NOTIFIED => {
                self.with_action(event, |it| it.note("lodestar.notified", event, Vec::new()));
            }
            EventType::OBSERVATION_RECORDED => {
                let (payload, ceiling) = (self.payload(event)?, self.ceiling);
                self.with_action(event, |action| action.observed(event, payload, ceiling));
            }
            EventType::ACTION_COMPLETED => self.finished(End::Completed, event)?,
            EventType::ACTION_FAILED => self.finished(End::Failed, event)?,
            EventType::ACTION_UNKNOWN => self.finished(End::Unknown, event)?,
            EventType::ACTION_REJECTED => self.rejected(event)?,
            EventType::APPROVAL_REQUESTED => self.requested(event)?,
            EventType::APPROVAL_GRANTED => self.answered("lodestar.approval.granted", event)?,
            EventType::APPROVAL_REFUSED => self.answered("lodestar.approval.refused", event)?,
            EventType::APPROVAL_DENIED => {
                self.answered("lodestar.approval.denied", event)?;
                self.close_hold(self.hold_of(event), "denied", event);
            }
            EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED => {
                let closed: Option<Closed> = self.read(event)?;
                let closing = closed.and_then(|it| serde_json::to_value(it.closing).ok());
                let closing = closing.as_ref().and_then(Value::as_str);
                let closing = closing.unwrap_or("redacted").to_owned();
                self.close_hold(self.hold_of(event), &closing, event);
            }
            _ => self.session_event(kind, event)?,
        }
        Ok(())
    }

    fn opened(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let ids = Ids::of(&self.admitted.dir, &event.leaf_hash);
        let span = ids.span(Role::Session, &event.leaf_hash);
        let root = RootSpan::open(
            event,
            payload.as_ref(),
            self.results.opening(),
            &self.admitted,
            (span, self.ceiling),
        );
        self.open = Some((ids, root));
        Ok(())
    }

    /// An action is over: it waits for what is believed of it, if it returned something.
    fn over(&mut self, seq: u64) {
        let waits = self
            .actions
            .get(&seq)
            .is_some_and(|it| it.observed.is_some());
        if !waits {
            return self.flush(seq);
        }
        self.waiting.push_back(seq);
        if self.waiting.len() > MOST_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.flush(oldest);
        }
    }

    fn flush(&mut self, seq: u64) {
        let (Some(action), Some((ids, root))) = (self.actions.remove(&seq), &self.open) else {
            return;
        };
        for seq in &action.seqs {
            self.owners.remove(seq);
        }
        if let Some(id) = action.id {
            self.by_id.remove(&id);
            self.by_observation.remove(&ObservationId::of_action(id));
        }
        let until = self.last.unwrap_or(Timestamp::MAX);
        let spans = action.spans(root.span, until).into_iter();
        self.out.extend(spans.map(|span| span.data(ids)));
    }

    fn close_hold(&mut self, hold: Option<u64>, closing: &str, event: &Event) {
        let Some((seq, hold)) = hold.and_then(|seq| Some((seq, self.holds.remove(&seq)?))) else {
            return;
        };
        self.owners.remove(&seq);
        if let Some(id) = hold.request {
            self.requests.remove(&id);
        }
        self.emit(hold.closed(closing, event));
    }

    fn emit(&mut self, finished: Finished) {
        if let Some((ids, _)) = &self.open {
            self.out.push(finished.data(ids));
        }
    }

    fn note_root(&mut self, name: &'static str, event: &Event, said: Vec<KeyValue>) {
        if let Some((_, root)) = &mut self.open {
            root.note(name, event, said);
        }
    }

    /// The action that an event belongs to.
    fn action_of(&self, event: &Event) -> Option<u64> {
        match self.owners.get(event.parents.first()?)? {
            Owner::Action(seq) => Some(*seq),
            Owner::Hold(_) => None,
        }
    }

    /// The request that an event belongs to.
    fn hold_of(&self, event: &Event) -> Option<u64> {
        match self.owners.get(event.parents.first()?)? {
            Owner::Hold(seq) => Some(*seq),
            Owner::Action(_) => None,
        }
    }

    /// Lets an event happen to the action it belongs to.
    fn with_action(&mut self, event: &Event, happens: impl FnOnce(&mut ActionSpan)) {
        let Some(seq) = self.action_of(event) else {
            return;
        };
        if let Some(action) = self.actions.get_mut(&seq) {
            action.seqs.push(event.seq);
            self.owners.insert(event.seq, Owner::Action(seq));
            happens(action);
        }
    }

    fn payload(&self, event: &Event) -> Result<Option<Value>, Unprojectable> {
        self.results.whole(event).map_err(|e| broken(event, &e))
    }

    fn read<T: DeserializeOwned>(&self, event: &Event) -> Result<Option<T>, Unprojectable> {
        let payload = self.payload(event)?.map(serde_json::from_value);
        payload.transpose().map_err(|e| broken(event, &e))
    }
}

fn broken(event: &Event, problem: &dyn std::fmt::Display) -> Unprojectable {
    Unprojectable::Event {
        seq: event.seq,
        problem: problem.to_string(),
    }
}

/// Reads the proven events of a session and hands out its spans as they are over.
pub fn project<E: From<Unprojectable>>(
    admitted: Admitted,
    ceiling: Sensitivity,
    mut each: impl FnMut(SpanData) -> Result<(), E>,
) -> Result<Exported, E> {
    let unreadable = |problem: String| Unprojectable::Log(problem);
    let proven = admitted.proven;
    let mut exported = Exported {
        spans: 0,
        events: 0,
        unproven: admitted.events - proven.min(admitted.events),
    };
    let mut reader = Reader::open(&admitted.dir).map_err(|e| unreadable(e.to_string()))?;
    let mut fold = Fold::new(admitted, ceiling);
    let mut hand_out = |spans: Vec<SpanData>, exported: &mut Exported| {
        exported.spans += spans.len() as u64;
        spans.into_iter().try_for_each(&mut each)
    };
    while exported.events < proven {
        let event = reader.next_event().map_err(|e| unreadable(e.to_string()))?;
        let Some(event) = event else {
            let (expected, found) = (proven, exported.events);
            return Err(Unprojectable::Shorter { expected, found }.into());
        };
        exported.events += 1;
        hand_out(fold.take(&event)?, &mut exported)?;
    }
    hand_out(fold.finish(), &mut exported)?;
    Ok(exported)
}
