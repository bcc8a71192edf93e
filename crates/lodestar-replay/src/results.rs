//! What the calls of a session returned, until it is adopted.
//!
//! `belief.adopted@2` names observations and nothing else. What is believed of them follows from the
//! observation, the proposal and the end of its call, and the opening of the session: whoever follows a
//! log lets every event of a session come by here, in its order, and asks for what an adoption means.
//! Kept is what is in flight, as it stands in the log; it is read when it is asked for.

mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::chain::{Decision, Observation, OutcomeResult};
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::id::ObservationId;
use lodestar_core::name::ServerIdentity;
use lodestar_core::scope::Scope;
use lodestar_firewall::event::{FirewallEvent, ResultsAdopted};
use lodestar_firewall::extract::{Extractors, ToolCall};
use lodestar_firewall::{Intake, Plain, Underivable};
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::Proposal;
use lodestar_kernel::registry::ToolRecord;
use lodestar_kernel::terse;
use lodestar_log::{Event, RestoreError, SessionDir};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use waiting::{Observed, Waiting};

/// What an event says of beliefs.
#[derive(Debug)]
pub enum Recorded {
    /// Nothing.
    Other,
    /// Something, and nobody can tell any more what.
    Redacted,
    /// It says itself what.
    Event(Box<FirewallEvent>),
    /// It names results.
    Results(Adoption),
}

/// What a `belief.adopted@2` adopted.
#[derive(Debug, Default)]
pub struct Adoption {
    /// The results, in their order, with what is believed of each.
    pub results: Vec<(Returned, Plain)>,
    /// Events that were redacted, so that nobody can tell any more what is believed of some results.
    pub redacted: Vec<u64>,
}

impl Adoption {
    /// What is believed of the results.
    pub fn plain(self) -> Vec<Plain> {
        self.results.into_iter().map(|(_, plain)| plain).collect()
    }
}

/// Why an event does not say what is believed.
#[derive(Debug, Error)]
pub enum UnreadableBeliefs {
    /// Its payload cannot be put together.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Its payload is none of its type.
    #[error("{0}")]
    Payload(#[from] serde_json::Error),
    /// It adopts something that is not there to be adopted.
    #[error(
        "it adopts #{0}, which is no result of a call that has completed, or was adopted before"
    )]
    NotOpen(u64),
    /// It adopts results in a session that has no calls.
    #[error("it adopts results of calls, and the session was not opened for any")]
    NoOpening,
    /// An event that it rests on says nothing.
    #[error("it rests on #{seq}, which cannot be read: {problem}")]
    Broken {
        /// Which.
        seq: u64,
        /// Why.
        problem: String,
    },
    /// Nothing follows from a result.
    #[error("nothing follows from #{seq}: {problem}")]
    Underivable {
        /// The observation.
        seq: u64,
        /// Why.
        problem: Underivable,
    },
}

/// Something that came back, with the call that it came of.
#[derive(Debug)]
pub struct Returned {
    /// The event that recorded it.
    pub seq: u64,
    /// What came back.
    pub observation: Observation,
    /// The call; none for what no tool returned.
    pub call: Option<Called>,
}

/// A call that completed.
#[derive(Debug)]
pub struct Called {
    /// Whose tool.
    pub server: ServerIdentity,
    /// The arguments.
    pub arguments: Value,
    /// The tool's definition, by digest.
    pub definition: Digest,
    /// Whether a person reviewed it.
    pub reviewed: bool,
    /// Whether the tool called its result an error.
    pub is_error: bool,
}

impl Returned {
    /// As the firewall takes it in; nothing for what no tool returned.
    pub fn intake<'a>(&'a self, scope: &'a Scope) -> Option<Intake<'a>> {
        let call = self.call.as_ref()?;
        Some(Intake {
            call: ToolCall {
                invocation: self.observation.invocation_id,
                server: &call.server,
                tool: &self.observation.tool,
                arguments: &call.arguments,
                definition: call.definition,
                reviewed: call.reviewed,
                is_error: call.is_error,
            },
            observation: &self.observation,
            scope,
            recorded: Some(self.seq),
        })
    }
}

/// The extractors of a session that was opened so.
pub fn extractors(opening: &Opening) -> Extractors {
    Extractors::built_in().without(&opening.missing())
}

/// The results of a session that are not adopted yet.
#[derive(Debug)]
pub struct Results {
    dir: SessionDir,
    opened: Opened,
    extractors: Extractors,
    /// Proposals that were neither cleared nor rejected.
    proposed: BTreeMap<u64, Event>,
    /// Calls, by their clearances, that have not ended or whose result is not adopted.
    calls: BTreeMap<u64, Call>,
    observed: Waiting,
}

/// How the session was opened.
#[derive(Debug)]
enum Opened {
    /// For no calls, as far as is known.
    Otherwise,
    Redacted(u64),
    With(Box<Opening>),
}

#[derive(Debug)]
struct Call {
    proposal: Event,
    end: Option<Event>,
}

#[derive(Deserialize)]
struct Named {
    id: ObservationId,
}

#[derive(Deserialize)]
struct Of {
    observation: ObservationId,
}

#[derive(Deserialize)]
struct Ended {
    result: OutcomeResult,
}

/// What stands in an event that something rests on.
enum Rests<T> {
    On(T),
    Redacted(u64),
}

impl Results {
    /// Before the first event of a session.
    pub fn new(dir: &SessionDir) -> Self {
        Self {
            dir: dir.clone(),
            opened: Opened::Otherwise,
            extractors: Extractors::built_in(),
            proposed: BTreeMap::new(),
            calls: BTreeMap::new(),
            observed: Waiting::default(),
        }
    }

    /// How the session was opened, if it was for calls.
    pub fn opening(&self) -> Option<&Opening> {
        match &self.opened {
            Opened::With(opening) => Some(opening),
            Opened::Otherwise | Opened::Redacted(_) => None,
        }
    }

    /// The decision that a proposal carries out, where nobody declared one.
    pub fn synthesised(&self, event: &Event) -> Result<Option<Decision>, RestoreError> {
        terse::synthesised(event, &self.dir)
    }

    /// The payload of an event of the session, with nothing left out; `None` where it was redacted.
    pub fn whole(&self, event: &Event) -> Result<Option<Value>, RestoreError> {
        terse::whole(event, &self.dir, self.opening())
    }

    /// Lets an event come by, and says what it says of beliefs.
    pub fn follow(&mut self, event: &Event) -> Result<Recorded, UnreadableBeliefs> {
        let kind = EventType::parse(event.kind.as_bytes());
        let Some(kind) = kind.filter(|kind| changes_beliefs(*kind)) else {
            self.note(event);
            return Ok(Recorded::Other);
        };
        let Some(payload) = self.whole(event)? else {
            self.note_redacted(kind);
            return Ok(Recorded::Redacted);
        };
        let Some(recorded) = FirewallEvent::read(kind, payload) else {
            return Ok(Recorded::Other);
        };
        match recorded? {
            FirewallEvent::ResultsAdopted(adopted) => Ok(Recorded::Results(self.adopt(&adopted)?)),
            recorded => {
                if let FirewallEvent::Adopted(adopted) = &recorded {
                    self.close(adopted.observation);
                }
                Ok(Recorded::Event(Box::new(recorded)))
            }
        }
    }

    /// Lets an event come by that nobody asks about.
    pub fn pass(&mut self, event: &Event) {
        match EventType::parse(event.kind.as_bytes()) {
            Some(kind @ EventType::BELIEF_ADOPTED) => match self.whole(event) {
                Ok(Some(payload)) => {
                    if let Ok(of) = serde_json::from_value::<Of>(payload) {
                        self.close(of.observation);
                    }
                }
                _ => self.note_redacted(kind),
            },
            Some(kind @ EventType::RESULTS_ADOPTED) => match self.whole(event) {
                Ok(Some(payload)) => {
                    if let Ok(adopted) = serde_json::from_value::<ResultsAdopted>(payload) {
                        // One that means nothing adopts nothing.
                        let _ = self.take_all(&adopted.results);
                    }
                }
                _ => self.note_redacted(kind),
            },
            _ => self.note(event),
        }
    }

    /// What came back and was never adopted, in its order. What came of a call whose end nobody saw is
    /// left out: what is believed of a result says whether the tool called it an error, and nobody knows.
    /// So is what cannot be read any more, and what an adoption that was redacted may have adopted.
    pub fn left(self) -> Vec<Returned> {
        let certain = self.observed.all.iter().filter(|(_, one)| !one.in_doubt);
        let read = certain.filter_map(|(_, observed)| match observed.cleared {
            Some(cleared) => match self.returned(observed, self.calls.get(&cleared)?) {
                Ok(Rests::On(returned)) => Some(returned),
                _ => None,
            },
            None => match self.read(&observed.event) {
                Ok(Rests::On(observation)) => Some(Returned {
                    seq: observed.event.seq,
                    observation,
                    call: None,
                }),
                _ => None,
            },
        });
        read.collect()
    }

    fn note(&mut self, event: &Event) {
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            return;
        };
        let parent = event.parents.first().copied();
        match (kind, parent) {
            (EventType::SESSION_OPENED, _) => self.note_opening(event),
            (EventType::ACTION_PROPOSED, _) => {
                self.proposed.insert(event.seq, event.clone());
            }
            (EventType::ACTION_REJECTED, Some(proposed)) => {
                self.proposed.remove(&proposed);
            }
            (EventType::ACTION_CLEARED, Some(proposed)) => {
                if let Some(proposal) = self.proposed.remove(&proposed) {
                    let end = None;
                    self.calls.insert(event.seq, Call { proposal, end });
                }
            }
            (EventType::OBSERVATION_RECORDED, cleared) => {
                let observed = Observed {
                    event: event.clone(),
                    cleared,
                    id: None,
                    in_doubt: false,
                };
                self.observed.insert(observed);
            }
            (EventType::ACTION_COMPLETED, Some(cleared)) => {
                if let Some(call) = self.calls.get_mut(&cleared) {
                    call.end = Some(event.clone());
                }
                self.forget(cleared);
            }
            (EventType::ACTION_FAILED | EventType::ACTION_UNKNOWN, Some(cleared)) => {
                self.calls.remove(&cleared);
                for seq in self.observed.of_call(cleared) {
                    self.observed.remove(seq);
                }
            }
            _ => {}
        }
    }

    fn note_opening(&mut self, event: &Event) {
        self.opened = match terse::whole(event, &self.dir, None) {
            Ok(None) => Opened::Redacted(event.seq),
            Ok(Some(payload)) => match serde_json::from_value(payload) {
                Ok(opening) => Opened::With(Box::new(opening)),
                Err(_) => Opened::Otherwise,
            },
            Err(_) => Opened::Otherwise,
        };
        if let Some(opening) = self.opening() {
            self.extractors = extractors(opening);
        }
    }

    fn note_redacted(&mut self, kind: EventType) {
        if [EventType::BELIEF_ADOPTED, EventType::RESULTS_ADOPTED].contains(&kind) {
            let waiting = self.observed.all.values_mut();
            waiting.for_each(|one| one.in_doubt = true);
        }
    }

    /// Forgets a call that has ended, once nothing of it waits.
    fn forget(&mut self, cleared: u64) {
        let waits = self.observed.has_of_call(cleared);
        let has_ended = |call: &Call| call.end.is_some();
        if !waits && self.calls.get(&cleared).is_some_and(has_ended) {
            self.calls.remove(&cleared);
        }
    }

    /// Forgets an observation that was adopted in words of its own.
    fn close(&mut self, id: ObservationId) {
        let found = loop {
            if let Some(found) = self.observed.of_id(id) {
                break Some(found);
            }
            let Some(next) = self.observed.next_unread() else {
                break None;
            };
            let event = self.observed.all.get(&next).map(|one| &one.event);
            let named = event.map(|event| self.read::<Named>(event));
            if let Some(Ok(Rests::On(named))) = named {
                self.observed.is_of(next, named.id);
            }
        };
        if let Some(observed) = found.and_then(|seq| self.observed.remove(seq))
            && let Some(cleared) = observed.cleared
        {
            self.forget(cleared);
        }
    }

    /// Takes out results whose calls have completed: all of them, or none.
    fn take_all(&mut self, results: &[u64]) -> Result<Vec<(Observed, Call)>, UnreadableBeliefs> {
        let mut named = BTreeSet::new();
        for &seq in results {
            if !named.insert(seq) || self.completed(seq).is_none() {
                return Err(UnreadableBeliefs::NotOpen(seq));
            }
        }
        let taken = results.iter().map(|seq| {
            let cleared = self.completed(*seq)?;
            // A call returns once.
            Some((self.observed.remove(*seq)?, self.calls.remove(&cleared)?))
        });
        Ok(taken.flatten().collect())
    }

    /// The clearance of the call that a result came of, if that has completed.
    fn completed(&self, seq: u64) -> Option<u64> {
        let cleared = self.observed.all.get(&seq)?.cleared?;
        self.calls.get(&cleared)?.end.as_ref()?;
        Some(cleared)
    }

    /// What an adoption means. One that names anything that is not there to be adopted means nothing.
    fn adopt(&mut self, adopted: &ResultsAdopted) -> Result<Adoption, UnreadableBeliefs> {
        let mut found = Adoption::default();
        let taken = self.take_all(&adopted.results)?;
        let scope = match &self.opened {
            Opened::With(opening) => &opening.scope,
            Opened::Redacted(seq) => {
                found.redacted.push(*seq);
                return Ok(found);
            }
            Opened::Otherwise => return Err(UnreadableBeliefs::NoOpening),
        };
        for (observed, call) in taken {
            let seq = observed.event.seq;
            let returned = match self.returned(&observed, &call)? {
                Rests::On(returned) => returned,
                Rests::Redacted(by) => {
                    found.redacted.push(by);
                    continue;
                }
            };
            let intake = returned.intake(scope);
            let intake = intake.expect("INVARIANT: a call was read beside it");
            let plain = Plain::of(&self.extractors, &intake, adopted.adopted_at);
            let plain = plain.map_err(|problem| UnreadableBeliefs::Underivable { seq, problem })?;
            found.results.push((returned, plain));
        }
        Ok(found)
    }

    /// Reads what came back of a call that completed.
    fn returned(
        &self,
        observed: &Observed,
        call: &Call,
    ) -> Result<Rests<Returned>, UnreadableBeliefs> {
        let seq = observed.event.seq;
        let (Some(end), Some(opening)) = (&call.end, self.opening()) else {
            return Err(UnreadableBeliefs::NotOpen(seq));
        };
        let observation: Observation = match self.read(&observed.event)? {
            Rests::On(observation) => observation,
            Rests::Redacted(seq) => return Ok(Rests::Redacted(seq)),
        };
        let proposal: Proposal = match self.read(&call.proposal)? {
            Rests::On(proposal) => proposal,
            Rests::Redacted(seq) => return Ok(Rests::Redacted(seq)),
        };
        let end: Ended = match self.read(end)? {
            Rests::On(end) => end,
            Rests::Redacted(seq) => return Ok(Rests::Redacted(seq)),
        };
        let mut tools = opening.tools.iter();
        let tool = tools.find(|tool| tool.shape.name == proposal.action.tool);
        Ok(Rests::On(Returned {
            seq,
            observation,
            call: Some(Called {
                server: proposal.action.server,
                arguments: Value::Object(proposal.action.arguments),
                definition: proposal.definition,
                reviewed: tool.is_some_and(ToolRecord::is_graded),
                is_error: end.result == OutcomeResult::Failure,
            }),
        }))
    }

    fn read<T: DeserializeOwned>(&self, event: &Event) -> Result<Rests<T>, UnreadableBeliefs> {
        let broken = |problem: String| UnreadableBeliefs::Broken {
            seq: event.seq,
            problem,
        };
        match self.whole(event).map_err(|e| broken(e.to_string()))? {
            Some(payload) => serde_json::from_value(payload)
                .map(Rests::On)
                .map_err(|e| broken(e.to_string())),
            None => Ok(Rests::Redacted(event.seq)),
        }
    }
}

/// Whether events of this type change beliefs.
pub(crate) fn changes_beliefs(kind: EventType) -> bool {
    [
        EventType::BELIEF_ADOPTED,
        EventType::RESULTS_ADOPTED,
        EventType::BELIEF_MOVED,
        EventType::BELIEF_PROMOTED,
    ]
    .contains(&kind)
}
