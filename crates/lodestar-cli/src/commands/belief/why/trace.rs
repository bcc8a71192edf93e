//! One pass over the sessions that the ledger knows: where each observation and claim stands, and
//! what happened to one belief. Kept are places, not contents; those are read again when cited.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lodestar_core::chain::{Change as LinkChange, Decision, LinkRef, Revision};
use lodestar_core::event::EventType;
use lodestar_core::id::{BeliefId, ClaimId, DecisionId, ObservationId};
use lodestar_core::time::Timestamp;
use lodestar_firewall::Plain;
use lodestar_firewall::event::{Adopted, Change, FirewallEvent, PromotionGround};
use lodestar_firewall::fold;
use lodestar_log::{Event, Payload, Reader, SessionDir};
use lodestar_replay::{Recorded, Results};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::beliefs::Beliefs;
use crate::failure::Failure;
use crate::progress::Progress;

/// A place in the sessions of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    session: usize,
    seq: u64,
}

/// A place as it is cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct At {
    pub(super) session: String,
    pub(super) seq: u64,
}

/// A change of the belief, as the log has it.
pub(super) struct Changed {
    pub(super) spot: Spot,
    pub(super) change: Change,
    pub(super) ground: Option<PromotionGround>,
}

/// A decision that rests on the belief.
pub(super) struct Decided {
    pub(super) spot: Spot,
    pub(super) decision: Decision,
}

/// An event that is cited, read again.
pub(super) struct Cited {
    pub(super) event: Event,
    /// `None` where it was redacted or cannot be put together.
    pub(super) payload: Option<Value>,
    /// The adoptions that it records.
    adopted: Vec<Adopted>,
}

impl Cited {
    /// The redaction that took the payload.
    pub(super) fn redacted_by(&self) -> Option<u64> {
        match self.event.payload {
            Payload::Redacted { by } => Some(by),
            Payload::Present(_) => None,
        }
    }

    pub(super) fn time(&self) -> Timestamp {
        self.event.time
    }

    /// The adoption that it records and that this claim is part of.
    pub(super) fn adopted(&self, claim: ClaimId) -> Option<&Adopted> {
        let has_it = |adopted: &&Adopted| adopted.claims.iter().any(|one| one.id == claim);
        self.adopted.iter().find(has_it)
    }
}

/// Where everything stands.
pub(super) struct Trace {
    pub(super) belief: BeliefId,
    sessions: Vec<SessionDir>,
    observations: HashMap<ObservationId, Spot>,
    claims: HashMap<ClaimId, Spot>,
    pub(super) changes: Vec<Changed>,
    pub(super) decisions: Vec<Decided>,
    /// Decisions that a reflection flagged because of the belief.
    flags: Vec<(DecisionId, Spot)>,
}

impl Trace {
    pub(super) fn of(
        beliefs: &Beliefs,
        belief: BeliefId,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let ledger = beliefs.ledger()?;
        let sessions: Vec<SessionDir> = ledger
            .sessions()
            .into_iter()
            .map(|(session, _)| beliefs.log.session(session))
            .filter(|dir| dir.dir().is_dir())
            .collect();
        let mut trace = Self {
            belief,
            observations: HashMap::new(),
            claims: HashMap::new(),
            changes: Vec::new(),
            decisions: Vec::new(),
            flags: Vec::new(),
            sessions: Vec::new(),
        };
        for (session, dir) in sessions.iter().enumerate() {
            progress.at("reading", session as u64, sessions.len() as u64);
            trace.read(session, dir)?;
        }
        trace.sessions = sessions;
        trace.changes.sort_by_key(|changed| changed.change.revision);
        Ok(trace)
    }

    fn read(&mut self, session: usize, dir: &SessionDir) -> Result<(), Failure> {
        let reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
        let mut results = Results::new(dir);
        // What lies behind damage is not cited; verification names the damage.
        for event in reader.map_while(Result::ok) {
            let spot = Spot {
                session,
                seq: event.seq,
            };
            self.note(spot, &event, &mut results);
        }
        Ok(())
    }

    fn note(&mut self, spot: Spot, event: &Event, results: &mut Results) {
        match results.follow(event) {
            Ok(Recorded::Event(recorded)) => self.note_beliefs(spot, *recorded),
            Ok(Recorded::Results(adoption)) => {
                let adopted = adoption.results.iter().map(|(_, plain)| plain.adopted());
                adopted.for_each(|adopted| self.note_claims(spot, adopted));
            }
            Ok(Recorded::Other | Recorded::Redacted) | Err(_) => {}
        }
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            return;
        };
        match kind {
            EventType::OBSERVATION_RECORDED => {
                if let Some(observed) = parsed::<Observed>(event, results) {
                    self.observations.entry(observed.id).or_insert(spot);
                }
            }
            EventType::DECISION_MADE | EventType::ACTION_PROPOSED => {
                let decision: Option<Decision> = match kind {
                    EventType::DECISION_MADE => parsed(event, results),
                    _ => results.synthesised(event).ok().flatten(),
                };
                let rests = |d: &Decision| d.belief_dependencies.contains(&self.belief);
                if let Some(decision) = decision.filter(rests) {
                    self.decisions.push(Decided { spot, decision });
                }
            }
            EventType::REVISION_MADE => {
                if let Some(revision) = parsed::<Revision>(event, results)
                    && let LinkRef::Decision(decision) = revision.link
                    && let LinkChange::Flagged { depends_on } = revision.change
                    && depends_on == self.belief.into()
                {
                    self.flags.push((decision, spot));
                }
            }
            _ => {}
        }
    }

    fn note_beliefs(&mut self, spot: Spot, recorded: FirewallEvent) {
        let change = fold::changes(&recorded)
            .iter()
            .find(|change| change.belief == self.belief)
            .cloned();
        if let FirewallEvent::Adopted(adopted) = &recorded {
            self.note_claims(spot, adopted);
        }
        if let Some(change) = change {
            let ground = match recorded {
                FirewallEvent::Promoted(promoted) => Some(promoted.ground),
                _ => None,
            };
            self.changes.push(Changed {
                spot,
                change,
                ground,
            });
        }
    }

    fn note_claims(&mut self, spot: Spot, adopted: &Adopted) {
        for claim in &adopted.claims {
            self.claims.entry(claim.id).or_insert(spot);
        }
    }

    pub(super) fn observation(&self, id: ObservationId) -> Option<Spot> {
        self.observations.get(&id).copied()
    }

    pub(super) fn claim(&self, id: ClaimId) -> Option<Spot> {
        self.claims.get(&id).copied()
    }

    pub(super) fn flag(&self, decision: DecisionId) -> Option<Spot> {
        let flag = self.flags.iter().find(|(flagged, _)| *flagged == decision);
        flag.map(|(_, spot)| *spot)
    }

    /// The place with this name, if the ledger knows the session.
    pub(super) fn spot(&self, session: &str, seq: u64) -> Option<Spot> {
        let session = self
            .sessions
            .iter()
            .position(|dir| dir.session().as_str() == session)?;
        Some(Spot { session, seq })
    }

    pub(super) fn at(&self, spot: Spot) -> At {
        At {
            session: self.sessions[spot.session].session().to_string(),
            seq: spot.seq,
        }
    }

    /// The sessions that these places are in, in the ledger's order.
    pub(super) fn sessions_of(&self, spots: &BTreeSet<Spot>) -> Vec<&SessionDir> {
        let cited: BTreeSet<usize> = spots.iter().map(|spot| spot.session).collect();
        cited.into_iter().map(|at| &self.sessions[at]).collect()
    }

    /// Reads events again, session by session.
    pub(super) fn fetch(&self, spots: &BTreeSet<Spot>) -> Result<BTreeMap<Spot, Cited>, Failure> {
        let mut cited = BTreeMap::new();
        for (session, dir) in self.sessions.iter().enumerate() {
            let mut wanted = spots.iter().filter(|spot| spot.session == session);
            let Some(last) = wanted.next_back() else {
                continue;
            };
            let reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
            let mut results = Results::new(dir);
            let events = reader.map_while(Result::ok);
            for event in events.take_while(|event| event.seq <= last.seq) {
                let spot = Spot {
                    session,
                    seq: event.seq,
                };
                if spots.contains(&spot) {
                    let payload = results.whole(&event).ok().flatten();
                    let adopted = adopted(&mut results, &event);
                    let one = Cited {
                        event,
                        payload,
                        adopted,
                    };
                    cited.insert(spot, one);
                } else {
                    results.pass(&event);
                }
            }
        }
        Ok(cited)
    }
}

fn adopted(results: &mut Results, event: &Event) -> Vec<Adopted> {
    match results.follow(event) {
        Ok(Recorded::Results(adoption)) => {
            let plain = adoption.plain().into_iter();
            plain.map(Plain::into_adopted).collect()
        }
        Ok(Recorded::Event(recorded)) => match *recorded {
            FirewallEvent::Adopted(adopted) => vec![adopted],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[derive(Deserialize)]
struct Observed {
    id: ObservationId,
}

fn parsed<T: serde::de::DeserializeOwned>(event: &Event, results: &Results) -> Option<T> {
    let payload = results.whole(event).ok().flatten()?;
    serde_json::from_value(payload).ok()
}
