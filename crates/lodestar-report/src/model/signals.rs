//! What watches a session: sentinels, pins of tools, servers, and the calibration that sentinels go by.

use lodestar_core::id::ActionId;
use lodestar_core::ladder::Severity;
use lodestar_core::name::CalibrationClass;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_kernel::contain::State;
use lodestar_kernel::opening::ComputedAt;
use lodestar_policy::Mode;
use lodestar_replay::calibration::Computed;
use serde::Serialize;

use super::Events;

/// What a sentinel saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// The event.
    pub seq: u64,
    /// The action in which it saw it.
    pub action: ActionId,
    /// Its proposal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<u64>,
    /// How sensitive what it saw is.
    pub sensitivity: Sensitivity,
    /// Which sentinel.
    pub sentinel: String,
    /// How grave.
    pub severity: Severity,
    /// Whether it had a say in the verdict.
    pub mode: Mode,
    /// What it saw, in its words.
    pub saw: String,
}

/// A tool that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The event.
    pub seq: u64,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// What differs.
    pub why: String,
    /// Calls of it that did not run for this reason.
    pub refused: Events,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerNote {
    /// The event.
    pub seq: u64,
    /// The server.
    pub server: String,
    /// In words: that it started and how far it is contained, or that it failed.
    pub note: String,
    /// How it was contained when it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containment: Option<Contained>,
}

/// What was in force around a server, as the event of its start records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contained {
    /// How far: never further than what is listed here bears out.
    pub state: State,
    /// The profiles whose union it was granted.
    pub profiles: Vec<String>,
    /// What of the system enforced it.
    pub layers: Vec<String>,
    /// Its ways out, in words.
    pub network: String,
    /// What was tried inside, before its program began, and was refused.
    pub refused: Vec<String>,
    /// What was tried there and was not refused.
    pub open: Vec<String>,
    /// What does not hold, in the record's words.
    pub gaps: Vec<String>,
    /// What holds and is less than one may think, in the record's words.
    pub notes: Vec<String>,
}

impl Contained {
    /// How far, in words.
    pub fn in_words(&self) -> &'static str {
        in_words(self.state)
    }
}

/// How far something is contained, in words.
pub(crate) fn in_words(state: State) -> &'static str {
    match state {
        State::Absent => "not contained",
        State::Partial => "contained in part",
        State::Proved => "contained, proved",
    }
}

/// A calibration that was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The event.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What `calibration.computed@1` says; reasons of sessions that did not count are bounded.
    pub computed: Computed,
}

/// The calibration that a session was opened under, as its opening says. What was measured stands in the
/// session that is named, and is not repeated here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CalibrationInForce {
    /// The opening.
    pub seq: u64,
    /// The classes that were off, in the order of their names.
    pub flagged: Vec<CalibrationClass>,
    /// Where that is recorded; none where nobody had measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<ComputedAt>,
    /// Later measurements whose record did not hold, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}
