//! What came of the actions that rested on a belief.

use std::collections::HashMap;

use lodestar_core::calibration::Came;
use lodestar_core::chain::OutcomeResult;
use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, BeliefId};
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::{Finished, Proposal};
use lodestar_kernel::terse;
use lodestar_kernel::tool::{NATIVE_SERVER, ToolErrorKind};
use lodestar_log::{Event, Reader, SessionDir};
use serde::de::DeserializeOwned;

use crate::follow::ReplayError;

/// For each belief that an action rested on, whether all of them succeeded.
#[derive(Default)]
pub(super) struct Outcomes(HashMap<BeliefId, Came>);

impl Outcomes {
    pub(super) fn of(&self, belief: BeliefId) -> Option<Came> {
        self.0.get(&belief).copied()
    }

    /// Reads one session; one of a person has no actions.
    pub(super) fn follow(&mut self, dir: &SessionDir) -> Result<(), ReplayError> {
        let gone = |problem: String| ReplayError::Session {
            session: dir.session().clone(),
            problem,
        };
        let mut reader = Reader::open(dir)?;
        let mut next = || {
            reader
                .next_event()
                .map_err(|problem| gone(problem.to_string()))
        };
        let Some(first) = next()? else { return Ok(()) };
        let read = |event: &Event, opening| {
            let payload = terse::whole(event, dir, opening);
            payload.map_err(|problem| gone(format!("#{}: {problem}", event.seq)))
        };
        let Some(opening) = read(&first, None)?.and_then(parse::<Opening>) else {
            return Ok(());
        };
        let mut resting: HashMap<ActionId, Vec<BeliefId>> = HashMap::new();
        while let Some(event) = next()? {
            match EventType::parse(event.kind.as_bytes()) {
                Some(EventType::ACTION_PROPOSED) => {
                    let proposal = read(&event, Some(&opening))?.and_then(parse::<Proposal>);
                    if let Some((action, beliefs)) = proposal.and_then(rests_on) {
                        resting.insert(action, beliefs);
                    }
                }
                Some(EventType::ACTION_COMPLETED | EventType::ACTION_FAILED)
                    if !resting.is_empty() =>
                {
                    let finished = read(&event, Some(&opening))?.and_then(parse::<Finished>);
                    if let Some(finished) = finished
                        && let Some(beliefs) = resting.remove(&finished.outcome.action)
                        && let Some(came) = came(&finished)
                    {
                        self.note(&beliefs, came);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// One failure counts, however often the rest succeeded.
    fn note(&mut self, beliefs: &[BeliefId], came: Came) {
        for belief in beliefs {
            let found = self.0.entry(*belief).or_insert(came);
            *found = (*found).max(came);
        }
    }
}

fn parse<T: DeserializeOwned>(payload: serde_json::Value) -> Option<T> {
    serde_json::from_value(payload).ok()
}

/// The beliefs behind an action, if it is one whose end the kernel can tell by itself.
fn rests_on(proposal: Proposal) -> Option<(ActionId, Vec<BeliefId>)> {
    let is_own = proposal.action.server.as_str() == NATIVE_SERVER;
    let dependencies = proposal.dependencies.iter();
    let beliefs: Vec<_> = dependencies.map(|dependency| dependency.belief).collect();
    (is_own && !beliefs.is_empty()).then_some((proposal.action.id, beliefs))
}

/// What an end says of the beliefs behind it. What was stopped, refused or never fitted the tool says nothing.
fn came(finished: &Finished) -> Option<Came> {
    match (finished.outcome.result, &finished.error) {
        (OutcomeResult::Success, _) => Some(Came::True),
        (OutcomeResult::Failure, None) => Some(Came::False),
        (OutcomeResult::Failure, Some(error)) => {
            (error.kind == ToolErrorKind::Failed).then_some(Came::False)
        }
        (OutcomeResult::Partial | OutcomeResult::Unknown, _) => None,
    }
}
