//! Proposing: the arguments are settled, the contract is known, the world is measured.

use std::borrow::Cow;
use std::sync::Arc;

use lodestar_core::canonical;
use lodestar_core::chain::Action;
use lodestar_core::contract::arguments;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::FingerprintFields;
use lodestar_core::id::{ActionId, DecisionId};
use lodestar_core::ladder::Rung;
use lodestar_core::name::ToolName;
use lodestar_core::provenance::ArgumentProvenance;
use lodestar_log::AppendError;
use lodestar_policy::{Dependency, Facts, Trail};
use serde_json::{Map, Value};
use thiserror::Error;

use super::Kernel;
use crate::measure::{Measured, Moved, Subject, fails_outright};
use crate::record::{Proposal, Rejection};
use crate::registry::Entry;
use crate::step::Step;
use crate::terse::ProposedLine;

/// What somebody wants to do.
#[derive(Debug, Clone)]
pub struct Draft {
    /// With which tool.
    pub tool: ToolName,
    /// With which arguments.
    pub arguments: Map<String, Value>,
    /// Carrying out which decision; without one, that of making this very call.
    pub decision: Option<DecisionId>,
    /// The event that recorded the decision.
    pub decided: Option<u64>,
    /// Where each value came from.
    pub provenance: Vec<ArgumentProvenance>,
    /// Where the beliefs stand that the decision rests on.
    pub dependencies: Vec<Dependency>,
}

/// An action that is in the log, and not yet judged.
#[derive(Debug)]
pub struct Proposed {
    pub(super) proposal: Proposal,
    pub(super) entry: Arc<Entry>,
    pub(super) seq: u64,
    pub(super) trail: Trail,
}

impl Proposed {
    /// All that is recorded of it.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// As the gate sees it.
    pub fn facts(&self) -> Facts<'_> {
        self.proposal.facts(self.trail)
    }

    /// The event that recorded it.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The tool.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            arguments: &self.proposal.action.arguments,
            definition: self.entry.definition(),
            pinned: self.entry.record().definition,
            root: self.entry.root(),
        }
    }
}

/// Why there is no proposal.
#[derive(Debug, Error)]
pub enum ProposeError {
    /// It does not run; the log says so.
    #[error("{0}")]
    Rejected(Rejection),
    /// The log refused.
    #[error(transparent)]
    Log(#[from] AppendError),
}

impl Kernel {
    /// Settles what exactly is to be done, and records it. Whatever fails here is recorded too.
    pub fn propose(&self, draft: Draft) -> Result<Proposed, ProposeError> {
        let tool = draft.tool.clone();
        let parents: Vec<u64> = draft.decided.into_iter().collect();
        match self.settle(draft) {
            Ok((mut proposal, entry)) => {
                let kind = EventType::ACTION_PROPOSED;
                let line = ProposedLine::of(&proposal);
                let append = || self.log.append(kind, self.actor(), &parents, &line);
                let (receipt, trail) = self.trail.before(append)?;
                proposal.action.proposed_at = receipt.time();
                self.steps.made(Step::Proposed);
                let proposed = Proposed {
                    proposal,
                    entry,
                    seq: receipt.seq(),
                    trail,
                };
                self.refuse_unmet(proposed)
            }
            Err(why) => {
                self.reject(None, Some(&tool), why.clone(), &parents)?;
                Err(ProposeError::Rejected(why))
            }
        }
    }

    fn settle(&self, draft: Draft) -> Result<(Proposal, Arc<Entry>), Rejection> {
        if self.halt.was_halted() {
            return Err(Rejection::Halted);
        }
        let entry = self.registry.get(&draft.tool);
        let entry = Arc::clone(entry.ok_or(Rejection::ToolNotAdvertised)?);
        let record = entry.record();
        let invalid = |reason: String| Rejection::InvalidArguments { reason };
        let arguments = match canonical::is_normal(&draft.arguments) {
            true => draft.arguments,
            false => parsed_once(&draft.arguments).map_err(invalid)?,
        };
        let root = match &record.root {
            Some(root) => Some(root),
            None => self.root.as_ref(),
        };
        let paths = arguments::paths(&arguments, &record.shape.roles, root)
            .map_err(|problem| invalid(problem.to_string()))?;
        let (roles, schema) = (&record.shape.roles, &record.shape.input_schema);
        let base = entry.root().unwrap_or(self.world.root());
        let reaches = self
            .protected
            .reached_by(&arguments, roles, schema, &record.contract, base);
        let contract = match reaches {
            None => Cow::Borrowed(entry.contract()),
            Some(_) => {
                let mut contract = record.contract.clone();
                contract.required_level = Rung::L5;
                let prohibited = contract.digested();
                Cow::Owned(prohibited.map_err(|problem| invalid(problem.to_string()))?)
            }
        };
        let fields = FingerprintFields::under_digested(
            &contract,
            record.shape.server.clone(),
            draft.tool.clone(),
            record.definition,
            arguments,
            paths,
        );
        let fingerprint = fields
            .fingerprint()
            .map_err(|problem| invalid(problem.to_string()))?;
        let FingerprintFields {
            arguments, paths, ..
        } = fields;
        let (id, now) = self.stamp(ActionId::from_parts);
        let subject = Subject {
            arguments: &arguments,
            definition: entry.definition(),
            pinned: record.definition,
            root: entry.root(),
        };
        let contract = contract.contract();
        let preconditions = contract
            .preconditions
            .iter()
            .flat_map(|precondition| self.world.measure(&precondition, subject))
            .collect();
        let proposal = Proposal {
            action: Action {
                id,
                decision: draft.decision.unwrap_or(DecisionId::of_action(id)),
                server: record.shape.server.clone(),
                tool: draft.tool,
                arguments,
                contract: contract.clone(),
                fingerprint,
                proposed_at: now,
            },
            definition: record.definition,
            agent: self.agent.clone(),
            paths,
            preconditions,
            provenance: draft.provenance,
            dependencies: draft.dependencies,
            reaches,
        };
        Ok((proposal, entry))
    }

    /// What already is not as it has to be is not judged at all.
    fn refuse_unmet(&self, proposed: Proposed) -> Result<Proposed, ProposeError> {
        let unmet = |measured: &&Measured| {
            let kind = measured.precondition.check.kind();
            fails_outright(kind, &measured.expected_at_approval)
        };
        let moved: Vec<_> = proposed
            .proposal
            .preconditions
            .iter()
            .filter(unmet)
            .map(|measured| Moved {
                check: measured.precondition.check.kind(),
                of: measured.of.clone(),
                expected: None,
                found: measured.expected_at_approval.clone(),
            })
            .collect();
        if moved.is_empty() {
            return Ok(proposed);
        }
        let why = Rejection::PreconditionFailed { moved };
        let action = &proposed.proposal.action;
        self.reject(
            Some(action.id),
            Some(&action.tool),
            why.clone(),
            &[proposed.seq],
        )?;
        Err(ProposeError::Rejected(why))
    }
}

/// The arguments as they are hashed: read back from their canonical form, so that what is shown,
/// logged and executed is one value. What has no such form is refused.
fn parsed_once(arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let bytes = canonical::to_vec(arguments).map_err(|problem| problem.to_string())?;
    match canonical::parse(&bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the arguments are not an object".to_owned()),
        Err(problem) => Err(problem.to_string()),
    }
}
