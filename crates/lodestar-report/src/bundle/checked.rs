//! What came of checking a bundle.

use lodestar_core::digest::Digest;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use serde::Serialize;

use super::Forms;

/// Something in a bundle that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The line of the file, from 1.
    pub line: u64,
    /// What is wrong, in words, inert.
    pub problem: String,
}

/// What a bundle shows, once it has been checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The project; none where the bundle does not even say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The ceiling that it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Sensitivity>,
    /// The report that it proves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Forms>,
    /// Whether a trusted log key vouches for all of it.
    pub sealed: bool,
    /// How many events the signed checkpoint covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The root that it commits to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
    /// Events that are proven.
    pub events: u64,
    /// Events of which only the head is here because they are above the ceiling.
    pub withheld: Vec<(u64, Sensitivity)>,
    /// Events that were redacted in the log, each under an operator's signed statement.
    pub redacted: Vec<u64>,
    /// Blobs that are as the events say.
    pub blobs: u64,
    /// When the ledger says that the session was closed with this checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// What is worth knowing and not wrong.
    pub remarks: Vec<String>,
    /// Everything that is wrong.
    pub problems: Vec<Fault>,
}

impl Checked {
    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.problems.is_empty()
    }
}
