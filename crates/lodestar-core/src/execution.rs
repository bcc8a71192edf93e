//! How far a run is proved: the facts, the levels they add up to, and what a level earns.
//!
//! The ladder is cumulative: a level needs its own facts and those of every level below. [`evaluate`] is the
//! only way to a level, and says which facts held and which one stopped it. The facts are the server's; what
//! a client says of them is not among them.

mod facts;
mod page;

#[cfg(test)]
mod tests;

pub use facts::{BadFactSet, FactSet};
pub use page::reference_page;

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::words;

words! {
    /// What a server found to be so about a run and its attestation.
    #[derive(PartialOrd, Ord)]
    pub enum ExecutionFact: "execution fact" {
        /// There is an attestation of the run.
        AttestationPresent = "attestation_present",
        /// The submitter owns the run.
        AccountOwnsRun = "account_owns_run",
        /// The run's contender is an agent or runner that the submitter owns.
        ContenderOwned = "contender_owned",
        /// Every field of the attestation equals what the server stored, and its device is the requester's.
        AttestationValid = "attestation_valid",
        /// The device stood on `trusted` when the server received the attestation.
        DeviceTrusted = "device_trusted",
        /// The device has an active binding to the runner that made the run.
        RunnerBound = "runner_bound",
        /// The runner was heard of a moment ago.
        RunnerFresh = "runner_fresh",
        /// The device's signature verifies.
        SignatureVerifies = "signature_verifies",
        /// The server verified the run's log itself.
        GatewayVerified = "gateway_verified",
        /// The server replayed the run, and it kept to the registered terms.
        PolicyPassed = "policy_passed",
        /// The run has the hash of its workflow.
        WorkflowRecorded = "workflow_recorded",
        /// The run has the hash of its task and prompts.
        LensRecorded = "lens_recorded",
    }
}

words! {
    /// How far a run is proved, from not at all.
    #[derive(PartialOrd, Ord)]
    pub enum ExecutionLevel: "execution level" {
        /// No attestation, or the run is somebody else's.
        Unverified = "unverified",
        /// The submitter owns the run.
        AccountVerified = "account_verified",
        /// And who made it.
        AgentVerified = "agent_verified",
        /// A trusted device attests it.
        DeviceVerified = "device_verified",
        /// And is bound to the runner, which is there.
        RunnerVerified = "runner_verified",
        /// The log is what was signed.
        ExecutionVerified = "execution_verified",
        /// And what it shows kept to the terms.
        FullyTrusted = "fully_trusted",
    }
}

/// A level in words, with the facts that it adds to those of the level below.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutionLevelSpec {
    /// The level.
    pub level: ExecutionLevel,
    /// What it means.
    pub meaning: &'static str,
    /// What it needs beyond the level below, in the order in which it is asked.
    pub needs: &'static [ExecutionFact],
}

/// The levels, from the lowest: the cumulative table.
pub static EXECUTION_LEVELS: [ExecutionLevelSpec; 7] = {
    use ExecutionFact::*;
    use ExecutionLevel::*;
    [
        ExecutionLevelSpec {
            level: Unverified,
            meaning: "no attestation, or the run is not the submitter's",
            needs: &[],
        },
        ExecutionLevelSpec {
            level: AccountVerified,
            meaning: "the submitter owns the run, and it is attested",
            needs: &[AttestationPresent, AccountOwnsRun],
        },
        ExecutionLevelSpec {
            level: AgentVerified,
            meaning: "the run's contender is an agent or runner that the submitter owns",
            needs: &[ContenderOwned],
        },
        ExecutionLevelSpec {
            level: DeviceVerified,
            meaning: "the attestation is valid, and its device was trusted when it attested",
            needs: &[AttestationValid, DeviceTrusted],
        },
        ExecutionLevelSpec {
            level: RunnerVerified,
            meaning: "the device has an active binding to the runner that made the run, and the runner's \
                      heartbeat is fresh",
            needs: &[RunnerBound, RunnerFresh],
        },
        ExecutionLevelSpec {
            level: ExecutionVerified,
            meaning: "the signature verifies, and the server verified the run's log",
            needs: &[SignatureVerifies, GatewayVerified],
        },
        ExecutionLevelSpec {
            level: FullyTrusted,
            meaning: "the run kept to the registered terms, and workflow and lens are recorded",
            needs: &[PolicyPassed, WorkflowRecorded, LensRecorded],
        },
    ]
};

impl ExecutionFact {
    /// What is so where it holds, in words.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::AttestationPresent => "there is an attestation of the run",
            Self::AccountOwnsRun => "the submitter owns the run",
            Self::ContenderOwned => "the submitter owns the agent or runner that made it",
            Self::AttestationValid => {
                "every field of the attestation equals what the server stored"
            }
            Self::DeviceTrusted => {
                "the device was trusted when the server received the attestation"
            }
            Self::RunnerBound => "the device has an active binding to the runner",
            Self::RunnerFresh => "the runner's heartbeat is fresh",
            Self::SignatureVerifies => "the device's signature verifies",
            Self::GatewayVerified => "the server verified the run's log itself",
            Self::PolicyPassed => {
                "the server replayed the log, and it kept to the terms registered before the run"
            }
            Self::WorkflowRecorded => "the hash of the workflow is recorded",
            Self::LensRecorded => "the hash of task and prompts is recorded",
        }
    }

    /// The first level that needs it.
    pub fn needed_from(self) -> ExecutionLevel {
        EXECUTION_LEVELS
            .iter()
            .find(|spec| spec.needs.contains(&self))
            .map(|spec| spec.level)
            .expect("INVARIANT: every fact is needed by a level")
    }
}

impl ExecutionLevel {
    /// The level in words.
    pub fn spec(self) -> &'static ExecutionLevelSpec {
        &EXECUTION_LEVELS[self as usize]
    }

    /// Every fact that it needs, with those of the levels below.
    pub fn needs(self) -> FactSet {
        EXECUTION_LEVELS[..=self as usize]
            .iter()
            .flat_map(|spec| spec.needs.iter().copied())
            .collect()
    }

    /// What a submission that rests on a run of this level earns.
    pub fn effects(self) -> impl Iterator<Item = Effect> {
        Effect::ALL
            .iter()
            .copied()
            .filter(move |effect| effect.earned_from() <= self)
    }
}

/// What a run amounts to, and why. Only [`evaluate`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "WrittenEvaluation")]
pub struct Evaluation {
    held: FactSet,
    level: ExecutionLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_by: Option<ExecutionFact>,
}

/// The level that the facts add up to: the highest of which all facts hold, with those of every level below.
pub fn evaluate(held: FactSet) -> Evaluation {
    let mut level = ExecutionLevel::Unverified;
    for spec in &EXECUTION_LEVELS {
        if let Some(&missing) = spec.needs.iter().find(|fact| !held.contains(**fact)) {
            return Evaluation {
                held,
                level,
                stopped_by: Some(missing),
            };
        }
        level = spec.level;
    }
    Evaluation {
        held,
        level,
        stopped_by: None,
    }
}

impl Evaluation {
    /// The level.
    pub const fn level(&self) -> ExecutionLevel {
        self.level
    }

    /// The facts that held, those beyond the level among them.
    pub const fn held(&self) -> FactSet {
        self.held
    }

    /// The first fact that was missing; none at the top.
    pub const fn stopped_by(&self) -> Option<ExecutionFact> {
        self.stopped_by
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.level)?;
        match self.stopped_by {
            None => f.write_str("every fact holds"),
            Some(fact) => write!(
                f,
                "{} needs `{fact}` ({}), which does not hold",
                fact.needed_from(),
                fact.phrase()
            ),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvaluation {
    held: FactSet,
    level: ExecutionLevel,
    #[serde(default)]
    stopped_by: Option<ExecutionFact>,
}

/// An evaluation that does not follow from its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the facts add up to `{found}`, not to `{claimed}` as it says")]
pub struct BadEvaluation {
    /// What it says.
    claimed: ExecutionLevel,
    /// What follows.
    found: ExecutionLevel,
}

impl TryFrom<WrittenEvaluation> for Evaluation {
    type Error = BadEvaluation;

    fn try_from(written: WrittenEvaluation) -> Result<Self, BadEvaluation> {
        let found = evaluate(written.held);
        if (found.level, found.stopped_by) == (written.level, written.stopped_by) {
            return Ok(found);
        }
        Err(BadEvaluation {
            claimed: written.level,
            found: found.level,
        })
    }
}

words! {
    /// What a submission earns, once.
    #[derive(PartialOrd, Ord)]
    pub enum Effect: "effect" {
        /// It was handed in: little experience, whatever it rests on.
        SubmissionCompleted = "BATTLE_SUBMISSION_COMPLETED",
        /// It shows that a device stands behind it.
        DeviceBadge = "VERIFIED_DEVICE_BADGE",
        /// It counts as executed where it says it was.
        LocalExecutionCompleted = "VERIFIED_LOCAL_EXECUTION_COMPLETED",
        /// It counts where a leaderboard has a tie to break.
        TieBreak = "LEADERBOARD_TIE_BREAK",
    }
}

impl Effect {
    /// The lowest level that earns it.
    pub const fn earned_from(self) -> ExecutionLevel {
        match self {
            Self::SubmissionCompleted => ExecutionLevel::Unverified,
            Self::DeviceBadge => ExecutionLevel::DeviceVerified,
            Self::LocalExecutionCompleted => ExecutionLevel::ExecutionVerified,
            Self::TieBreak => ExecutionLevel::FullyTrusted,
        }
    }

    /// What it is, in words.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::SubmissionCompleted => "the submission is complete; little experience",
            Self::DeviceBadge => "a badge: a trusted device attested the run",
            Self::LocalExecutionCompleted => "eligible as a verified local execution",
            Self::TieBreak => "counts in leaderboard tie-breaks",
        }
    }
}
