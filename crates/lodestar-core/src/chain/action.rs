//! Action: one call of a tool, from proposal to its end.
//!
//! Two phases, propose and execute, with the gate between them. The states here are what the log
//! and readers speak of; that only the kernel can walk through them is the kernel's affair.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::Contract;
use crate::fingerprint::Fingerprint;
use crate::id::{ActionId, DecisionId};
use crate::name::{ServerIdentity, ToolName, words};
use crate::time::Timestamp;

/// A call of a tool, as proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Its id.
    pub id: ActionId,
    /// The decision it carries out.
    pub decision: DecisionId,
    /// Whose tool.
    pub server: ServerIdentity,
    /// Which tool.
    pub tool: ToolName,
    /// The arguments, parsed once: what is hashed, shown, approved, logged and executed.
    pub arguments: Map<String, Value>,
    /// What it may reach.
    pub contract: Contract,
    /// What exactly is approved, when it is approved.
    pub fingerprint: Fingerprint,
    /// When it was proposed.
    pub proposed_at: Timestamp,
}

words! {
    /// How far an action has come.
    pub enum ActionState: "action state" {
        /// Its contract is known and its preconditions are measured.
        Proposed = "proposed",
        /// The gate has answered.
        Arbitrated = "arbitrated",
        /// It is held for a human.
        PendingApproval = "pending_approval",
        /// The humans who had to agree have agreed.
        Resolved = "resolved",
        /// Its preconditions held again, and a clearance is on record.
        Cleared = "cleared",
        /// The tool was called.
        Executing = "executing",
        /// The tool returned.
        Completed = "completed",
        /// The tool returned an error, or did not return in time.
        Failed = "failed",
        /// Nobody saw the result; it is never run again by itself.
        Unknown = "unknown",
        /// It did not run: denied, expired, or the world moved.
        Rejected = "rejected",
        /// The session was halted before it ran.
        Halted = "halted",
    }
}

impl ActionState {
    /// Which states may follow directly.
    ///
    /// A crash after clearance leaves `unknown`, since it cannot be told whether the call went out;
    /// what was called can neither be rejected nor halted any more.
    pub const fn successors(self) -> &'static [Self] {
        match self {
            Self::Proposed => &[Self::Arbitrated, Self::Rejected, Self::Halted],
            Self::Arbitrated => &[
                Self::PendingApproval,
                Self::Cleared,
                Self::Rejected,
                Self::Halted,
            ],
            Self::PendingApproval => &[Self::Resolved, Self::Rejected, Self::Halted],
            Self::Resolved => &[Self::Cleared, Self::Rejected, Self::Halted],
            Self::Cleared => &[Self::Executing, Self::Halted, Self::Unknown],
            Self::Executing => &[Self::Completed, Self::Failed, Self::Unknown],
            Self::Completed | Self::Failed | Self::Unknown | Self::Rejected | Self::Halted => &[],
        }
    }

    /// Whether nothing follows.
    pub const fn is_terminal(self) -> bool {
        self.successors().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_called_without_being_arbitrated_and_cleared() {
        let before = |state: ActionState| {
            ActionState::ALL
                .iter()
                .copied()
                .filter(|s| s.successors().contains(&state))
                .collect::<Vec<_>>()
        };
        assert_eq!(before(ActionState::Executing), [ActionState::Cleared]);
        assert_eq!(
            before(ActionState::Cleared),
            [ActionState::Arbitrated, ActionState::Resolved]
        );
        assert_eq!(
            before(ActionState::Resolved),
            [ActionState::PendingApproval]
        );
        assert_eq!(
            before(ActionState::PendingApproval),
            [ActionState::Arbitrated]
        );
        assert_eq!(before(ActionState::Arbitrated), [ActionState::Proposed]);
        assert_eq!(before(ActionState::Proposed), []);
        assert!(!before(ActionState::Rejected).contains(&ActionState::Cleared));
        assert!(!before(ActionState::Halted).contains(&ActionState::Executing));
    }

    #[test]
    fn what_was_called_ends_in_completed_failed_or_unknown() {
        let ends = [
            ActionState::Completed,
            ActionState::Failed,
            ActionState::Unknown,
        ];
        assert_eq!(ActionState::Executing.successors(), ends);
        assert_eq!(
            ActionState::ALL
                .iter()
                .filter(|state| state.is_terminal())
                .count(),
            5
        );
    }
}
