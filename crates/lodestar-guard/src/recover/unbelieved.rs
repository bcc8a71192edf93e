//! What a session read and had not taken in yet when it stopped: it is taken in now, into its own log.
//!
//! What came back of a call whose end nobody saw is left out: what is believed of a result says whether
//! the tool called it an error, and nobody knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lodestar_core::chain::{Observation, OutcomeResult};
use lodestar_core::event::EventType;
use lodestar_core::id::ObservationId;
use lodestar_firewall::Firewall;
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::store::Store;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::Proposal;
use lodestar_kernel::registry::GradedBy;
use lodestar_kernel::terse;
use lodestar_log::{Event, LogWriter, Reader, SessionDir};
use lodestar_replay::catch_up;
use serde::Deserialize;
use serde_json::{Value, json};

use super::past::unreadable;
use crate::error::GuardError;
use crate::keys::Keys;
use crate::recorder::SessionRecorder;
use crate::session::{Taken, outside, take_in};
use crate::surroundings::SystemSurroundings;

/// Results in one transaction.
const BATCH: usize = 64;

/// An observation without beliefs.
struct Pending {
    seq: u64,
    /// The clearance that it came of, and what was cleared; neither for what no tool returned.
    cleared: Option<u64>,
    proposed: Option<u64>,
    /// Whether the tool called it an error; unknown until its call ended.
    is_error: Option<bool>,
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

/// What of a log is looked at: heads tell most of it.
#[derive(Default)]
struct Sought {
    pending: BTreeMap<ObservationId, Pending>,
    /// The proposals behind clearances whose calls have not ended.
    proposed: BTreeMap<u64, u64>,
}

impl Sought {
    fn follow(&mut self, event: &Event, dir: &SessionDir) {
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            return;
        };
        let parent = event.parents.first().copied();
        match kind {
            EventType::ACTION_CLEARED => {
                self.proposed
                    .extend(parent.map(|proposed| (event.seq, proposed)));
            }
            EventType::OBSERVATION_RECORDED => {
                let pending = Pending {
                    seq: event.seq,
                    cleared: parent,
                    proposed: parent.and_then(|cleared| self.proposed.get(&cleared).copied()),
                    is_error: parent.is_none().then_some(false),
                };
                let named = read::<Named>(event, dir);
                self.pending.extend(named.map(|named| (named.id, pending)));
            }
            EventType::ACTION_COMPLETED => {
                let is_error =
                    read::<Ended>(event, dir).map(|end| end.result == OutcomeResult::Failure);
                let of_call = self.pending.values_mut();
                of_call
                    .filter(|pending| pending.cleared == parent)
                    .for_each(|pending| pending.is_error = is_error);
                parent.map(|cleared| self.proposed.remove(&cleared));
            }
            EventType::BELIEF_ADOPTED => {
                if let Some(of) = read::<Of>(event, dir) {
                    self.pending.remove(&of.observation);
                }
            }
            _ => {}
        }
    }

    /// In the order in which they were recorded.
    fn found(self) -> Vec<Pending> {
        let known = self.pending.into_values();
        let mut found: Vec<_> = known
            .filter(|one| one.is_error.is_some() && one.cleared.is_some() == one.proposed.is_some())
            .collect();
        found.sort_by_key(|pending| pending.seq);
        found
    }
}

fn read<T: for<'de> Deserialize<'de>>(event: &Event, dir: &SessionDir) -> Option<T> {
    serde_json::from_value(terse::inline(event, dir).ok()??).ok()
}

/// Takes in what the session had not come to, so that its log has it before it is closed or goes on.
pub(super) fn take_in_rest(
    writer: &LogWriter,
    keys: &Keys,
    opening: &Opening,
    open_store: &dyn Fn() -> Result<Box<dyn Store>, GuardError>,
) -> Result<(), GuardError> {
    let dir = writer.dir();
    let mut sought = Sought::default();
    for event in Reader::open(dir).map_err(unreadable)? {
        sought.follow(&event.map_err(unreadable)?, dir);
    }
    let taken = taken(dir, opening, &sought.found())?;
    if taken.is_empty() {
        return Ok(());
    }
    // What the log has already comes first.
    writer
        .hand_over()
        .map_err(lodestar_log::AppendError::from)?;
    let mut store = open_store()?;
    let log = dir.project_log();
    catch_up(store.as_mut(), &keys.keyring(), &log, &keys.trust())?;
    let surroundings = Box::new(SystemSurroundings::default());
    let (mut firewall, _seats) =
        Firewall::open(store, keys.keyring(), Extractors::built_in(), surroundings);
    let mut recorder = SessionRecorder::new(writer.clone(), super::actor());
    for batch in taken.chunks(BATCH) {
        take_in(&mut firewall, &mut recorder, batch)?;
    }
    Ok(())
}

/// What was returned, with the calls that it came of. What cannot be read any more is left out.
fn taken(
    dir: &SessionDir,
    opening: &Opening,
    pending: &[Pending],
) -> Result<Vec<Taken>, GuardError> {
    let mut wanted: BTreeSet<u64> = pending.iter().map(|one| one.seq).collect();
    wanted.extend(pending.iter().filter_map(|one| one.proposed));
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut payloads: BTreeMap<u64, Value> = BTreeMap::new();
    for event in Reader::open(dir).map_err(unreadable)? {
        let event = event.map_err(unreadable)?;
        if wanted.contains(&event.seq)
            && let Ok(Some(payload)) = terse::whole(&event, dir, Some(opening))
        {
            payloads.insert(event.seq, payload);
        }
    }
    let taken = pending.iter().filter_map(|one| {
        let observation = payloads.get(&one.seq)?.clone();
        let observation = serde_json::from_value::<Observation>(observation).ok()?;
        let is_error = one.is_error?;
        match one.proposed {
            Some(proposed) => {
                let proposal = payloads.get(&proposed)?.clone();
                let proposal = serde_json::from_value::<Proposal>(proposal).ok()?;
                Some(returned(observation, proposal, opening, is_error))
            }
            None => outside(Arc::new(observation), &opening.scope),
        }
    });
    Ok(taken.collect())
}

fn returned(
    observation: Observation,
    proposal: Proposal,
    opening: &Opening,
    is_error: bool,
) -> Taken {
    let mut tools = opening.tools.iter();
    let tool = tools.find(|tool| tool.shape.name == proposal.action.tool);
    Taken {
        observation: Arc::new(observation),
        server: proposal.action.server,
        arguments: json!(proposal.action.arguments),
        definition: proposal.definition,
        reviewed: tool.is_some_and(|tool| tool.graded_by != GradedBy::Nobody),
        is_error,
        scope: opening.scope.clone(),
    }
}
