//! One pass over a verified session, in which everything that the report says is gathered. Nothing is
//! kept of an event beyond what is shown of it.

mod actions;
mod beliefs;
mod contained;
mod images;
mod notes;
mod people;
mod retained;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lodestar_core::chain::Axes;
use lodestar_core::event::{EventType, Writer};
use lodestar_core::id::{ActionId, BeliefId, ObservationId, RequestId};
use lodestar_core::merkle::Frontier;
use lodestar_core::name::SessionId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::terse;
use lodestar_log::verify::SessionReport;
use lodestar_log::{Event, Payload, SessionDir};
use lodestar_replay::{Recorded, Results, UnreadableBeliefs};
use serde::de::DeserializeOwned;

use crate::bounded::bounded;
use crate::model::{
    Action, Alert, Belief, Calibration, CalibrationInForce, Counts, Decision, Drift, Forged, Move,
    PolicyInForce, RefusedCall, Request, Said, ServerNote, Wary,
};

pub(crate) use beliefs::Changed;

/// An event whose payload was redacted.
pub(crate) struct Gone {
    pub(crate) seq: u64,
    pub(crate) kind: Option<EventType>,
    pub(crate) by: u64,
}

/// An event that this program does not understand.
pub(crate) struct Odd {
    pub(crate) seq: u64,
    pub(crate) kind: Option<EventType>,
}

impl Odd {
    fn of(event: &Event) -> Self {
        Self {
            seq: event.seq,
            kind: EventType::parse(event.kind.as_bytes()),
        }
    }
}

/// Where a belief stood when it was adopted, and its changes since, in the order of its revisions.
struct Moved {
    from: Axes,
    changes: Vec<(u64, Vec<Move>)>,
}

/// What a pass over a session gathers.
pub(crate) struct Fold<'a> {
    dir: &'a SessionDir,
    pub(crate) ceiling: Sensitivity,
    opening: Option<Opening>,
    /// How many events were verified.
    events: u64,
    tree: Frontier,
    pub(crate) counts: Counts,
    pub(crate) opened_at: Option<Timestamp>,
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) purpose: String,
    pub(crate) actor: String,
    pub(crate) policy: Option<PolicyInForce>,
    pub(crate) calibration: Option<CalibrationInForce>,
    pub(crate) tasks: Vec<Said>,
    pub(crate) halted: Vec<Said>,
    pub(crate) closed: Option<Said>,
    /// Whether the last event that is not the log's own closes the session.
    ends_closed: bool,
    pub(crate) actions: Vec<Action>,
    action_of: HashMap<ActionId, usize>,
    /// Actions, by the event that cleared them.
    cleared_of: HashMap<u64, usize>,
    pub(crate) requests: Vec<Request>,
    request_of: HashMap<RequestId, usize>,
    confirmed: HashMap<String, people::Confirmed>,
    pub(crate) refused_calls: Vec<RefusedCall>,
    pub(crate) forged: Vec<Forged>,
    observed: HashMap<ObservationId, u64>,
    pub(crate) beliefs: Vec<Belief>,
    belief_of: HashMap<BeliefId, usize>,
    /// Where beliefs stood when they were adopted, and what moved them since.
    moved: HashMap<usize, Moved>,
    /// Beliefs whose changes came in another order.
    unsettled: BTreeSet<usize>,
    /// Moves of beliefs that another session adopted, and promotions among them.
    pub(crate) promoted_elsewhere: Vec<(u64, BeliefId)>,
    pub(crate) decisions: Vec<Decision>,
    decision_of: HashMap<lodestar_core::id::DecisionId, usize>,
    /// Content to be wary of: the event that keeps it, and why.
    suspects: BTreeMap<u64, Vec<Wary>>,
    pub(crate) alerts: Vec<Alert>,
    pub(crate) drift: Vec<Drift>,
    pub(crate) servers: Vec<ServerNote>,
    pub(crate) calibrations: Vec<Calibration>,
    /// Redacted events: which, of what type, and by which event.
    pub(crate) redacted: Vec<Gone>,
    /// Events without which nobody can tell what was believed of a result: they were redacted, whatever they
    /// are.
    pub(crate) ungrounded: Vec<u64>,
    /// Events of other sessions that may have changed beliefs of this one, and that nobody can read any more.
    pub(crate) lost_elsewhere: Vec<(SessionId, u64)>,
    /// Events that say something that this program does not understand.
    pub(crate) odd: Vec<Odd>,
    /// Drifted tools, as they are called, beside `drift`: what is shown may be withheld.
    drifted: Vec<String>,
    /// Programs that calls started, by what they returned, and how those were contained.
    programs: HashMap<u64, contained::RanProgram>,
}

impl<'a> Fold<'a> {
    /// Takes in an event that was verified, while it is derived again.
    pub(crate) fn see(
        &mut self,
        event: &Event,
        recorded: Result<&Recorded, &UnreadableBeliefs>,
        results: &Results,
    ) {
        if event.seq >= self.events {
            return;
        }
        if event.seq == 0 {
            self.opening = results.opening().cloned();
        }
        self.tree.push(event.leaf_hash);
        self.take(event, recorded);
    }

    /// Whether all events were seen that were verified, and no others: somebody could have written another
    /// log while this one was looked at.
    pub(crate) fn has_seen(&self, verified: &SessionReport) -> bool {
        self.tree.size() == verified.events && self.tree.root() == verified.root
    }

    /// Whether something says that this is all there was: a closing that a signed checkpoint covers.
    pub(crate) fn is_closed(&self, verified: &SessionReport) -> bool {
        self.ends_closed && verified.proven == verified.events
    }

    /// Before the first of so many events.
    pub(crate) fn new(dir: &'a SessionDir, events: u64, ceiling: Sensitivity) -> Self {
        Self {
            dir,
            ceiling,
            opening: None,
            events,
            tree: Frontier::new(),
            counts: Counts {
                events,
                ..Counts::default()
            },
            opened_at: None,
            last_at: None,
            purpose: String::new(),
            actor: String::new(),
            policy: None,
            calibration: None,
            tasks: Vec::new(),
            halted: Vec::new(),
            closed: None,
            ends_closed: false,
            actions: Vec::new(),
            action_of: HashMap::new(),
            cleared_of: HashMap::new(),
            requests: Vec::new(),
            request_of: HashMap::new(),
            confirmed: HashMap::new(),
            refused_calls: Vec::new(),
            forged: Vec::new(),
            observed: HashMap::new(),
            beliefs: Vec::new(),
            belief_of: HashMap::new(),
            moved: HashMap::new(),
            unsettled: BTreeSet::new(),
            promoted_elsewhere: Vec::new(),
            decisions: Vec::new(),
            decision_of: HashMap::new(),
            suspects: BTreeMap::new(),
            alerts: Vec::new(),
            drift: Vec::new(),
            servers: Vec::new(),
            calibrations: Vec::new(),
            redacted: Vec::new(),
            ungrounded: Vec::new(),
            lost_elsewhere: Vec::new(),
            odd: Vec::new(),
            drifted: Vec::new(),
            programs: HashMap::new(),
        }
    }

    /// How the session was opened, if it was for calls.
    pub(crate) fn opening(&self) -> Option<&Opening> {
        self.opening.as_ref()
    }

    fn take(&mut self, event: &Event, recorded: Result<&Recorded, &UnreadableBeliefs>) {
        self.last_at = Some(event.time);
        let kind = EventType::parse(event.kind.as_bytes());
        if let Payload::Redacted { by } = event.payload {
            let seq = event.seq;
            self.redacted.push(Gone { seq, kind, by });
        }
        if kind.is_none_or(|kind| kind.writer() != Writer::Log) {
            self.ends_closed = kind == Some(EventType::SESSION_CLOSED);
        }
        self.take_beliefs(event, recorded);
        match kind {
            Some(EventType::SESSION_OPENED) => self.opened(event),
            Some(EventType::ACTION_PROPOSED) => self.proposed(event),
            Some(EventType::ACTION_JUDGED) => self.judged(event),
            Some(EventType::ACTION_CLEARED) => self.cleared(event),
            Some(EventType::ACTION_COMPLETED | EventType::ACTION_FAILED) => self.finished(event),
            Some(EventType::ACTION_UNKNOWN) => self.unknown(event),
            Some(EventType::ACTION_IMAGED) => self.imaged(event),
            Some(EventType::ACTION_REJECTED) => self.rejected(event),
            Some(EventType::APPROVAL_REQUESTED) => self.requested(event),
            Some(
                kind @ (EventType::APPROVAL_GRANTED
                | EventType::APPROVAL_DENIED
                | EventType::APPROVAL_REFUSED),
            ) => self.answered(kind, event),
            Some(EventType::APPROVAL_EXPIRED | EventType::APPROVAL_CONSUMED) => {
                self.request_closed(event);
            }
            Some(EventType::CONFIRMATION_CONSUMED) => self.confirmation_consumed(event),
            Some(EventType::CONFIRMATION_REFUSED) => self.confirmation_refused(event),
            Some(EventType::OBSERVATION_RECORDED) => self.observation(event),
            Some(EventType::DECISION_MADE) => self.decided(event),
            Some(EventType::SENTINEL_ALERTED) => self.alerted(event),
            Some(EventType::CALIBRATION_COMPUTED) => self.calibrated(event),
            Some(kind) => self.noted(kind, event),
            None => {}
        }
    }

    /// The payload of an event, whole; nothing where it was redacted or is of another shape.
    fn read<T: DeserializeOwned>(&mut self, event: &Event) -> Option<T> {
        let read = match terse::whole(event, self.dir, self.opening.as_ref()) {
            Ok(None) => return None,
            Ok(Some(payload)) => serde_json::from_value(payload).ok(),
            Err(_) => None,
        };
        if read.is_none() {
            self.odd.push(Odd::of(event));
        }
        read
    }

    /// A payload of which only what its line says itself matters.
    fn read_line<T: DeserializeOwned>(&mut self, event: &Event) -> Option<T> {
        let Payload::Present(bytes) = &event.payload else {
            return None;
        };
        match serde_json::from_slice(bytes) {
            Ok(read) => Some(read),
            // Some of it may lie in a blob.
            Err(_) => self.read(event),
        }
    }

    /// Text of others, if it may be shown.
    fn shown(&self, text: &str, most: usize, sensitivity: Sensitivity) -> Option<String> {
        (sensitivity <= self.ceiling).then(|| bounded(text, most))
    }

    /// A reason, or that it is withheld.
    fn reason(&self, text: &str, sensitivity: Sensitivity) -> String {
        let shown = self.shown(text, crate::bounded::TEXT, sensitivity);
        shown.unwrap_or_else(|| format!("(withheld: {sensitivity})"))
    }

    pub(crate) fn default_sensitivity(&self) -> Sensitivity {
        self.opening()
            .map_or(Sensitivity::Internal, |opening| opening.sensitivity)
    }

    fn action(&mut self, id: ActionId) -> Option<&mut Action> {
        let at = *self.action_of.get(&id)?;
        self.actions.get_mut(at)
    }

    fn request(&mut self, id: RequestId) -> Option<&mut Request> {
        let at = *self.request_of.get(&id)?;
        self.requests.get_mut(at)
    }
}
