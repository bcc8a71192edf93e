//! What the kernel writes to the log.

use std::fmt;

use lodestar_core::chain::{Action, Outcome};
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::id::{ActionId, ClearanceId, RequestId};
use lodestar_core::name::{Excerpt, ToolName};
use lodestar_core::provenance::ArgumentProvenance;
use lodestar_core::time::Timestamp;
use lodestar_policy::{Agent, Dependency, Facts, Trail};
use serde::{Deserialize, Serialize};

use crate::image::{State, Unkept};
use crate::measure::{Found, Measured, Moved};
use crate::protect::Reach;
use crate::tool::ToolError;

/// `action.proposed@1`: all that the gate's verdict depends on, beside policy and tools. How much of it
/// the log writes out, [`terse`](crate::terse) knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The action.
    #[serde(flatten)]
    pub action: Action,
    /// The tool's definition, by digest.
    pub definition: Digest,
    /// Who acts.
    pub agent: Agent,
    /// The paths among the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<NormalPath>,
    /// What the kernel measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<Measured>,
    /// Where each value came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance: Vec<ArgumentProvenance>,
    /// Where the beliefs stood that its decision rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// How it reaches Lodestar itself, which made it L5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaches: Option<Reach>,
}

impl Proposal {
    /// In words, inert: the tool and the paths it is about.
    pub fn in_words(&self) -> String {
        let paths: Vec<_> = self.paths.iter().map(|path| path.as_str()).collect();
        let what = format!(
            "{} {}",
            self.action.tool.shown(),
            Excerpt::of(&paths.join(" "))
        );
        what.trim_end().to_owned()
    }

    /// As the gate sees it, after these steps of its session.
    pub fn facts(&self, trail: Trail) -> Facts<'_> {
        Facts {
            action: self.action.id,
            fingerprint: self.action.fingerprint,
            agent: &self.agent,
            tool: &self.action.tool,
            contract: &self.action.contract,
            arguments: &self.action.arguments,
            paths: &self.paths,
            provenance: &self.provenance,
            dependencies: &self.dependencies,
            trail,
        }
    }
}

/// `action.cleared@1`. For a held action it is also the record that its grant is spent: clearing
/// and consuming are one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    /// The action.
    pub action: ActionId,
    /// The clearance.
    pub clearance: ClearanceId,
    /// The event that recorded the verdict.
    pub judged: u64,
    /// What was measured again, in the order of the proposal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Found>,
    /// The request that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// The grants that were spent, by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Digest>,
    /// The moment at which they were taken: before the request expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Timestamp>,
}

/// `action.notified@1`: an L3 action runs, and people are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// The action.
    pub action: ActionId,
    /// In words, inert.
    pub what: String,
}

/// `action.completed@1` and `action.failed@1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// What stood at the paths of its image when it was over, in the order of the image; none where there is no
    /// image, and where what it started may still go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<State>,
}

/// `action.unknown@1`: it was cleared, and nobody saw how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The action.
    pub action: ActionId,
    /// The clearance that was used, or perhaps was not.
    pub clearance: ClearanceId,
    /// Why nobody knows.
    pub because: String,
}

/// `action.rejected@1`: it did not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The action; none where it did not become one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The tool; none where what was called has no tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// The granted request whose leave it had. If the world had moved, that request is over by this, and
    /// its grants are spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<RequestId>,
    /// Why.
    #[serde(flatten)]
    pub why: Rejection,
}

/// Why an action did not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rejection {
    /// The gate denied it.
    PolicyDenied {
        /// In words.
        reason: String,
    },
    /// It is held, and nobody waits for an answer.
    ApprovalRequired {
        /// The request.
        request: RequestId,
    },
    /// A human denied it.
    ApprovalDenied {
        /// The request.
        request: RequestId,
        /// Why, in their words.
        reason: String,
    },
    /// Nobody answered in time.
    ApprovalTimeout {
        /// The request.
        request: RequestId,
    },
    /// The world is not as it has to be.
    PreconditionFailed {
        /// What moved.
        moved: Vec<Moved>,
    },
    /// It has come to reach Lodestar itself.
    ReachesLodestar {
        /// How.
        reach: Reach,
    },
    /// The arguments are not ones that can be hashed, shown and approved.
    InvalidArguments {
        /// In words.
        reason: String,
    },
    /// Its tool is not, or no longer, the one that was pinned.
    DefinitionDrift {
        /// In words: what differs, and how somebody accepts it.
        reason: String,
    },
    /// What it would write over cannot be kept, so it could not be undone, as an act of L3 can be.
    Irreversible {
        /// Where, inert.
        path: String,
        /// Why.
        because: Unkept,
    },
    /// There is no such tool here.
    ToolNotAdvertised,
    /// The session was halted.
    Halted,
    /// The caller stopped it before it ran.
    Stopped,
    /// The session is over.
    SessionClosed,
    /// The record could not be made safe, so nothing may run.
    NotRecorded {
        /// In words.
        reason: String,
    },
}

impl Rejected {
    /// The request whose grants this has spent: people agreed to a world that is no more.
    pub fn spent_in_vain(&self) -> Option<RequestId> {
        self.granted.filter(|_| self.why.is_of_the_world())
    }
}

impl Rejection {
    /// Whether it is the world that keeps the action from running, and not somebody's word.
    pub fn is_of_the_world(&self) -> bool {
        matches!(
            self,
            Self::PreconditionFailed { .. }
                | Self::ReachesLodestar { .. }
                | Self::Irreversible { .. }
        )
    }

    /// Every kind there is.
    pub const KINDS: [&'static str; 14] = [
        "policy_denied",
        "approval_required",
        "approval_denied",
        "approval_timeout",
        "precondition_failed",
        "reaches_lodestar",
        "invalid_arguments",
        "definition_drift",
        "irreversible",
        "tool_not_advertised",
        "halted",
        "stopped",
        "session_closed",
        "not_recorded",
    ];

    /// The kind, as the log and the agent read it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PolicyDenied { .. } => "policy_denied",
            Self::ApprovalRequired { .. } => "approval_required",
            Self::ApprovalDenied { .. } => "approval_denied",
            Self::ApprovalTimeout { .. } => "approval_timeout",
            Self::PreconditionFailed { .. } => "precondition_failed",
            Self::ReachesLodestar { .. } => "reaches_lodestar",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::DefinitionDrift { .. } => "definition_drift",
            Self::Irreversible { .. } => "irreversible",
            Self::ToolNotAdvertised => "tool_not_advertised",
            Self::Halted => "halted",
            Self::Stopped => "stopped",
            Self::SessionClosed => "session_closed",
            Self::NotRecorded { .. } => "not_recorded",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PolicyDenied { reason }
            | Self::InvalidArguments { reason }
            | Self::DefinitionDrift { reason } => f.write_str(reason),
            Self::ApprovalRequired { request } => {
                write!(f, "it waits for a human's approval, request `{request}`")
            }
            Self::ApprovalDenied { request, reason } => {
                write!(f, "a human denied request `{request}`: {reason}")
            }
            Self::ApprovalTimeout { request } => {
                write!(f, "nobody answered request `{request}` in time")
            }
            Self::PreconditionFailed { moved } => {
                f.write_str("the world is not as it has to be: ")?;
                for (at, one) in moved.iter().enumerate() {
                    write!(f, "{}{one}", if at > 0 { "; " } else { "" })?;
                }
                Ok(())
            }
            Self::ReachesLodestar { reach } => write!(f, "{reach}"),
            Self::Irreversible { path, because } => write!(
                f,
                "what stands at `{path}` cannot be kept ({because}), so the act could not be undone"
            ),
            Self::ToolNotAdvertised => f.write_str("there is no such tool in this session"),
            Self::Halted => f.write_str("the session is halted: nothing further runs in it"),
            Self::Stopped => f.write_str("the caller stopped it before it ran"),
            Self::SessionClosed => f.write_str("the session is over"),
            Self::NotRecorded { reason } => {
                write!(
                    f,
                    "its record is not safe on disk, so it does not run: {reason}"
                )
            }
        }
    }
}
