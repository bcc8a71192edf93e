//! Events to spans, in one pass and in memory that does not grow with the log.
//!
//! Every event that belongs to an action names, first among its parents, another that does; so what belongs
//! together is known even where payloads were redacted. Kept is what is in flight: actions until they are
//! over and what they returned is adopted, requests until they are closed, and the session's own span.

use std::collections::{BTreeMap, VecDeque};

use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, ObservationId, RequestId};
use lodestar_core::ladder::Verdict;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::FirewallEvent;
use lodestar_kernel::record::{Proposal, Rejected};
use lodestar_log::{Event, Reader};
use lodestar_policy::{Closed, Judgement};
use lodestar_replay::{Recorded, Results};
use opentelemetry::KeyValue;
use opentelemetry_sdk::trace::SpanData;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::action::{ActionSpan, End, Reached, rejected};
use super::admit::Admitted;
use super::attributes::{Finished, text, texts};
use super::content::Ceiling;
use super::hold::{HoldSpan, answer};
use super::ids::{Ids, Role};
use super::names;
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

    fn proposed(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let proposal: Option<Proposal> = self.read(event)?;
        let Some((ids, root)) = &mut self.open else {
            return Ok(());
        };
        root.counts.actions += 1;
        let server = proposal.as_ref().map(|it| it.action.server.as_str());
        let action = ActionSpan::open(
            event,
            proposal.as_ref(),
            self.results.opening(),
            server.and_then(|server| self.servers.get(server)),
            ids.span(Role::Action, &event.leaf_hash),
            self.ceiling,
        );
        self.by_id.extend(action.id.map(|id| (id, event.seq)));
        let returns = action.id.map(ObservationId::of_action);
        self.by_observation
            .extend(returns.map(|id| (id, event.seq)));
        self.owners.insert(event.seq, Owner::Action(event.seq));
        self.actions.insert(event.seq, action);
        Ok(())
    }

    fn cleared(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let request = payload.as_ref().and_then(|it| it["request"].as_str());
        let request = request.map(str::to_owned);
        let hold = request.as_ref().and_then(|it| it.parse().ok());
        let hold = hold.and_then(|id: RequestId| self.requests.get(&id).copied());
        let opened_by = hold.and_then(|seq| Some(self.holds.get(&seq)?.span));
        // Clearing and spending are one.
        self.close_hold(hold, "spent", event);
        let Some((ids, _)) = &self.open else {
            return Ok(());
        };
        let span = ids.span(Role::Execution, &event.leaf_hash);
        self.with_action(event, |action| {
            action.cleared(event, request, (span, opened_by));
        });
        Ok(())
    }

    fn finished(&mut self, end: End, event: &Event) -> Result<(), Unprojectable> {
        let (payload, ceiling) = (self.payload(event)?, self.ceiling);
        if let Some((_, root)) = &mut self.open {
            let failed = payload.as_ref().map(|it| it["result"] == "failure");
            match end {
                End::Failed => root.counts.failed += 1,
                End::Completed => root.counts.failed += u64::from(failed.unwrap_or_default()),
                End::Unknown => root.counts.unknown += 1,
                End::Rejected => root.counts.rejected += 1,
            }
        }
        let of = self.action_of(event);
        self.with_action(event, |action| {
            action.finished(end, event, payload, ceiling)
        });
        if let Some(seq) = of {
            self.over(seq);
        }
        Ok(())
    }

    fn rejected(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let spent: Option<Rejected> = self.read(event)?;
        if let Some(request) = spent.and_then(|it| it.spent_in_vain()) {
            self.close_hold(self.requests.get(&request).copied(), "world_moved", event);
        }
        if self.action_of(event).is_some() {
            return self.finished(End::Rejected, event);
        }
        // It did not become an action.
        let payload = self.payload(event)?;
        let ceiling = self.ceiling;
        if let Some((_, root)) = &mut self.open {
            root.counts.rejected += 1;
            let tool = payload.as_ref().and_then(|it| it["tool"].as_str());
            let mut said: Vec<KeyValue> = Vec::new();
            said.extend(tool.map(|tool| text(names::GEN_AI_TOOL_NAME, tool)));
            // What was called may hold anything.
            let level = Sensitivity::Secret;
            said.extend(
                payload
                    .map(|it| rejected(it, level, event, ceiling))
                    .unwrap_or_default(),
            );
            root.note("lodestar.rejected", event, said);
        }
        Ok(())
    }

    fn requested(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let asks = self.action_of(event).and_then(|seq| self.actions.get(&seq));
        let (Some((ids, _)), Some(action)) = (&self.open, asks) else {
            return Ok(());
        };
        let span = ids.span(Role::Hold, &event.leaf_hash);
        let hold = HoldSpan::open(event, payload, (span, action.span), &action.tool);
        self.requests.extend(hold.request.map(|id| (id, event.seq)));
        self.owners.insert(event.seq, Owner::Hold(event.seq));
        self.holds.insert(event.seq, hold);
        Ok(())
    }

    fn answered(&mut self, name: &'static str, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let hold = self.hold_of(event).and_then(|seq| self.holds.get_mut(&seq));
        match hold {
            Some(hold) => hold.answered(name, event, payload),
            None => {
                let said = payload.map(answer).unwrap_or_default();
                self.note_root(name, event, said);
            }
        }
        Ok(())
    }

    /// What concerns the session as a whole, or an action that it names.
    fn session_event(&mut self, kind: EventType, event: &Event) -> Result<(), Unprojectable> {
        let Some(name) = session_event_name(kind) else {
            if kind == EventType::SERVER_STARTED {
                self.server_started(event)?;
            }
            return Ok(());
        };
        let payload = self.payload(event)?.unwrap_or_default();
        let mut said = Vec::new();
        let named = |member: &str| payload[member].as_str().map(str::to_owned);
        said.extend(named("operator").map(|who| text(names::APPROVER, who)));
        said.extend(named("sentinel").map(|which| text(names::SENTINEL, which)));
        said.extend(named("severity").map(|how| text(names::SEVERITY, how)));
        let words = ["reason", "why", "what", "message"]
            .iter()
            .find_map(|it| named(it));
        let action: Option<ActionId> = named("action").and_then(|id| id.parse().ok());
        let Some((_, root)) = &mut self.open else {
            return Ok(());
        };
        said.extend(words.map(|it| self.ceiling.words(names::REASON, &it, root.level, event)));
        if kind == EventType::SESSION_HALTED {
            root.halted();
        }
        let action = action.and_then(|id| self.by_id.get(&id));
        match action.and_then(|seq| self.actions.get_mut(seq)) {
            Some(action) => action.note(name, event, said),
            None => root.note(name, event, said),
        }
        Ok(())
    }

    fn server_started(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?.unwrap_or_default();
        if let Some(identity) = payload["identity"].as_str() {
            let named = |member: &str| payload[member].as_str().map(str::to_owned);
            let reached = Reached {
                revision: named("revision"),
                transport: named("transport"),
            };
            self.servers.insert(identity.to_owned(), reached);
        }
        Ok(())
    }

    fn believed(&mut self, event: &Event, said: &FirewallEvent) {
        match said {
            FirewallEvent::Adopted(adopted) => {
                let of = self.by_observation.get(&adopted.observation);
                let owner = of.map(|seq| Owner::Action(*seq));
                self.adopted(event, owner, adopted);
            }
            FirewallEvent::Moved(moved) => {
                let said = moves(moved.changes.iter());
                self.note_root("lodestar.belief.moved", event, said);
            }
            FirewallEvent::Promoted(promoted) => {
                let said = moves(std::iter::once(&promoted.change));
                self.note_root("lodestar.belief.promoted", event, said);
            }
            _ => {}
        }
    }

    fn adopted(
        &mut self,
        event: &Event,
        owner: Option<Owner>,
        adopted: &lodestar_firewall::event::Adopted,
    ) {
        let ids = adopted.beliefs.iter().map(|belief| belief.id.to_string());
        let axes = adopted.beliefs.iter().map(|belief| {
            let axes = &belief.axes;
            format!(
                "truth={} retrieval={} security={} freshness={}",
                axes.truth, axes.retrieval, axes.security, axes.freshness
            )
        });
        let said = vec![texts(names::BELIEFS, ids), texts(names::BELIEFS_AXES, axes)];
        let seq = match owner {
            Some(Owner::Action(seq)) => Some(seq),
            _ => None,
        };
        match seq.and_then(|seq| self.actions.get_mut(&seq)) {
            Some(action) => {
                action.note("lodestar.belief.adopted", event, said);
                if let Some(seq) = seq.filter(|seq| self.actions[seq].is_over()) {
                    self.waiting.retain(|one| *one != seq);
                    self.flush(seq);
                }
            }
            None => self.note_root("lodestar.belief.adopted", event, said),
        }
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

fn moves<'a>(
    changes: impl Iterator<Item = &'a lodestar_firewall::event::Change> + Clone,
) -> Vec<KeyValue> {
    let beliefs = changes.clone().map(|change| change.belief.to_string());
    let moved = changes.clone().flat_map(|change| &change.moves);
    let authority = changes.map(|change| change.authority.to_string()).next();
    let mut said = vec![
        texts(names::BELIEFS, beliefs),
        texts(
            names::BELIEFS_AXES,
            moved.map(|one| {
                format!(
                    "{}: {} to {}",
                    one.axis(),
                    one.from().word(),
                    one.to().word()
                )
            }),
        ),
    ];
    said.extend(authority.map(|authority| text(names::AUTHORITY, authority)));
    said
}

fn session_event_name(kind: EventType) -> Option<&'static str> {
    Some(match kind {
        EventType::CONFIRMATION_CONSUMED => "lodestar.confirmation.consumed",
        EventType::CONFIRMATION_MATCHED => "lodestar.confirmation.matched",
        EventType::CONFIRMATION_REFUSED => "lodestar.confirmation.refused",
        EventType::BELIEF_READ_PRIVILEGED => "lodestar.belief.read_privileged",
        EventType::SENTINEL_ALERTED => "lodestar.sentinel.alerted",
        EventType::SERVER_FAILED => "lodestar.server.failed",
        EventType::TOOL_DRIFTED => "lodestar.tool.drifted",
        EventType::LOG_RECOVERED => "lodestar.log.recovered",
        EventType::LOG_REDACTED => "lodestar.log.redacted",
        EventType::SESSION_HALTED => "lodestar.halted",
        EventType::SESSION_CLOSED => "lodestar.closed",
        _ => return None,
    })
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
