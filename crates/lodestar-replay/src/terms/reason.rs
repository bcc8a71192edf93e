//! Why a run did not keep to its terms: one closed list.

use serde::Serialize;
use thiserror::Error;

/// A part of an opening that has to be the registered one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Error)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the messages say what they are")]
pub enum Part {
    #[error("another agent")]
    Agent,
    #[error("another policy")]
    Policy,
    #[error("a policy on another signature")]
    PolicySignature,
    #[error("other approvers")]
    Approvers,
    #[error("other confirmations")]
    Confirmations,
    #[error("another default for approvals")]
    ApprovalsDefault,
    #[error("other arbiters")]
    Arbiters,
}

/// Why a run did not keep to its terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum Reason {
    #[error("#{seq} cannot be read: {problem}")]
    Unreadable { seq: u64, problem: String },
    #[error("the session was not opened under a policy: nothing in it was judged")]
    NotGoverned,
    #[error("the opening names no run: the log may be of any time")]
    NoTicket,
    #[error("the opening names another run")]
    OtherRun,
    #[error("the opening names the run with another nonce than the one that was given out")]
    OtherNonce,
    #[error("the session was opened without: {}", .names.join(", "))]
    DefencesOff { names: Vec<String> },
    #[error("when the run was registered, the terms were not in force: {problem}")]
    NotInForce { problem: String },
    #[error("the session was opened with {part} than the owner registered")]
    Other { part: Part },
    #[error("tool `{tool}` is not registered, or was registered otherwise")]
    Tool { tool: String },
    #[error("a sentinel looks at calibration, and the opening does not say what was measured")]
    NoCalibration,
    #[error("#{seq} opens the session again")]
    OpenedAgain { seq: u64 },
    #[error("the last event does not close the session")]
    NotClosed,
    #[error("#{seq} is dated before the run was registered, or after the log arrived")]
    OutOfTime { seq: u64 },
    #[error("#{seq} is `{kind}`, of which nobody here knows what it says")]
    UnknownEvent { seq: u64, kind: String },
    #[error("#{seq} promotes a belief on a word that is no registered operator's: {problem}")]
    Promotion { seq: u64, problem: String },
    #[error("#{seq} was redacted, or rests on what was")]
    Redacted { seq: u64 },
    #[error("#{seq}: the log says {recorded}; under the terms it follows {derived}")]
    Differs {
        seq: u64,
        recorded: String,
        derived: String,
    },
}

impl Reason {
    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::NotGoverned => "not_governed",
            Self::NoTicket => "no_ticket",
            Self::OtherRun => "other_run",
            Self::OtherNonce => "other_nonce",
            Self::DefencesOff { .. } => "defences_off",
            Self::NotInForce { .. } => "not_in_force",
            Self::Other { part } => match part {
                Part::Agent => "other_agent",
                Part::Policy => "other_policy",
                Part::PolicySignature => "other_policy_signature",
                Part::Approvers => "other_approvers",
                Part::Confirmations => "other_confirmations",
                Part::ApprovalsDefault => "other_approvals_default",
                Part::Arbiters => "other_arbiters",
            },
            Self::Tool { .. } => "other_tool",
            Self::NoCalibration => "no_calibration",
            Self::OpenedAgain { .. } => "opened_again",
            Self::NotClosed => "not_closed",
            Self::OutOfTime { .. } => "out_of_time",
            Self::UnknownEvent { .. } => "unknown_event",
            Self::Promotion { .. } => "promotion",
            Self::Redacted { .. } => "redacted",
            Self::Differs { .. } => "differs",
        }
    }

    /// The event that it is about; what the opening says is event 0.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Unreadable { seq, .. }
            | Self::OpenedAgain { seq }
            | Self::OutOfTime { seq }
            | Self::UnknownEvent { seq, .. }
            | Self::Promotion { seq, .. }
            | Self::Redacted { seq }
            | Self::Differs { seq, .. } => Some(*seq),
            Self::NotGoverned
            | Self::NoTicket
            | Self::OtherRun
            | Self::OtherNonce
            | Self::DefencesOff { .. }
            | Self::Other { .. }
            | Self::Tool { .. }
            | Self::NoCalibration => Some(0),
            Self::NotInForce { .. } | Self::NotClosed => None,
        }
    }
}
