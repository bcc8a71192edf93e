//! What the log says of the session. Nothing here comes from the agent, the proxy or the belief store: the
//! beliefs are folded out of the log once more.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestar_core::chain::Observation;
use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, BeliefId, ObservationId};
use lodestar_core::ladder::Verdict;
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{MemoryStore, Store as _};
use lodestar_firewall::{Context, ContextPolicy, Firewall};
use lodestar_guard::SystemSurroundings;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Cleared, Proposal};
use lodestar_kernel::terse;
use lodestar_log::{Event, Reader, SessionDir};
use lodestar_policy::{Answer, Judgement};
use lodestar_replay::follow_alone;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::installation::fresh_key;

/// More beliefs than the demonstration has.
const ALL: usize = 10_000;

/// A session, as its log tells it.
pub(super) struct Record {
    pub(super) opening: Opening,
    /// The actions, in the order in which they were proposed.
    pub(super) acts: Vec<Act>,
    /// What was read.
    pub(super) readings: Vec<Reading>,
    /// Answers to requests that counted.
    pub(super) granted: Vec<Answer>,
    /// Answers that did not.
    pub(super) refused: Vec<Answer>,
    /// All beliefs.
    pub(super) beliefs: Vec<StoredBelief>,
    /// What a planner would be given.
    pub(super) context: Context,
}

/// One action.
pub(super) struct Act {
    /// The event that proposed it.
    pub(super) seq: u64,
    pub(super) proposal: Proposal,
    pub(super) verdict: Option<Verdict>,
    pub(super) cleared: Option<Cleared>,
}

/// What one action brought to read.
pub(super) struct Reading {
    /// The event that recorded it.
    pub(super) seq: u64,
    pub(super) observation: Observation,
    /// The path among the action's arguments.
    pub(super) path: Option<String>,
}

impl Act {
    /// The tool, without its server.
    pub(super) fn tool(&self) -> &str {
        let name = self.proposal.action.tool.as_str();
        name.rsplit('.').next().unwrap_or(name)
    }

    /// The argument of this name, where it is a text.
    pub(super) fn argument(&self, name: &str) -> Option<&str> {
        self.proposal.action.arguments.get(name)?.as_str()
    }

    pub(super) fn ran(&self) -> bool {
        self.cleared.is_some()
    }
}

impl Record {
    /// Reads a session.
    pub(super) fn read(dir: &SessionDir) -> Result<Self, Failure> {
        let reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
        let mut told = Told::default();
        for event in reader {
            let event = event.map_err(|problem| Failure::check(problem.to_string()))?;
            told.take(&event, dir)?;
        }
        let keys = Keyring::new(Arc::new(fresh_key()?));
        let mut store = MemoryStore::new();
        follow_alone(&mut store, &keys, dir)?;
        let rows = store.scan(None, ALL)?;
        let beliefs: Result<_, _> = rows.iter().map(|row| row.open()).collect();
        let beliefs = beliefs.map_err(|problem| Failure::check(problem.to_string()))?;
        let opening = told
            .opening
            .ok_or_else(|| Failure::check("the log has no opening event"))?;
        let (mut firewall, _seats) = Firewall::open(
            Box::new(store),
            keys,
            Extractors::built_in(),
            Box::new(SystemSurroundings::default()),
        );
        let policy = ContextPolicy::default();
        let context = firewall.context(&policy, &opening.scope, None, ALL)?;
        Ok(Self {
            opening,
            acts: told.acts,
            readings: told.readings,
            granted: told.granted,
            refused: told.refused,
            beliefs,
            context,
        })
    }

    /// What was read of a file, by actions that only read.
    pub(super) fn readings_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Reading> {
        let is_it = move |reading: &&Reading| {
            reading.path.as_deref() == Some(path)
                && reading.observation.tool.as_str().ends_with("read_file")
        };
        self.readings.iter().filter(is_it)
    }

    /// Whether a belief came out of one of these readings.
    pub(super) fn is_from(&self, belief: BeliefId, path: &str) -> bool {
        let sources: Vec<ObservationId> = self
            .readings_of(path)
            .map(|reading| reading.observation.id)
            .collect();
        let found = self.beliefs.iter().find(|one| one.record.id == belief);
        found.is_some_and(|found| {
            let mut from = found.claim.source_observations.iter();
            from.any(|source| sources.contains(source))
        })
    }

    /// Whether an act names what was read of a file among what it rests on.
    pub(super) fn rests_on(&self, act: &Act, path: &str) -> bool {
        let mut dependencies = act.proposal.dependencies.iter();
        dependencies.any(|one| self.is_from(one.belief, path))
    }

    /// The act of this id.
    fn act(acts: &mut [Act], id: ActionId) -> Option<&mut Act> {
        acts.iter_mut().find(|act| act.proposal.action.id == id)
    }
}

/// A log, event by event.
#[derive(Default)]
struct Told {
    opening: Option<Opening>,
    acts: Vec<Act>,
    readings: Vec<Reading>,
    granted: Vec<Answer>,
    refused: Vec<Answer>,
    /// The paths of what was cleared, by the event that says so.
    cleared: BTreeMap<u64, Option<String>>,
}

impl Told {
    fn payload<T: DeserializeOwned>(&self, event: &Event, dir: &SessionDir) -> Result<T, Failure> {
        let unreadable =
            |problem: String| Failure::check(format!("event #{}: {problem}", event.seq));
        let whole = terse::whole(event, dir, self.opening.as_ref());
        let whole = whole.map_err(|problem| unreadable(problem.to_string()))?;
        let whole = whole.ok_or_else(|| unreadable("it was redacted".to_owned()))?;
        serde_json::from_value(whole).map_err(|problem| unreadable(problem.to_string()))
    }

    fn take(&mut self, event: &Event, dir: &SessionDir) -> Result<(), Failure> {
        let seq = event.seq;
        match EventType::parse(event.kind.as_bytes()) {
            Some(EventType::SESSION_OPENED) => self.opening = Some(self.payload(event, dir)?),
            Some(EventType::ACTION_PROPOSED) => self.acts.push(Act {
                seq,
                proposal: self.payload(event, dir)?,
                verdict: None,
                cleared: None,
            }),
            Some(EventType::ACTION_JUDGED) => {
                let judgement: Judgement = self.payload(event, dir)?;
                if let Some(act) = Record::act(&mut self.acts, judgement.action) {
                    act.verdict = Some(judgement.verdict);
                }
            }
            Some(EventType::ACTION_CLEARED) => {
                let cleared: Cleared = self.payload(event, dir)?;
                if let Some(act) = Record::act(&mut self.acts, cleared.action) {
                    self.cleared
                        .insert(seq, act.argument("path").map(str::to_owned));
                    act.cleared = Some(cleared);
                }
            }
            Some(EventType::OBSERVATION_RECORDED) => {
                let cause = event
                    .parents
                    .iter()
                    .find_map(|parent| self.cleared.get(parent));
                self.readings.push(Reading {
                    seq,
                    observation: self.payload(event, dir)?,
                    path: cause.cloned().flatten(),
                });
            }
            Some(EventType::APPROVAL_GRANTED) => self.granted.push(self.payload(event, dir)?),
            Some(EventType::APPROVAL_REFUSED) => self.refused.push(self.payload(event, dir)?),
            _ => {}
        }
        Ok(())
    }
}
