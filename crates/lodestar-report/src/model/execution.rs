//! What a gateway said of the run that a session was.

use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::id::{AccountId, AttestationId, DeviceId, EvaluationId, RunId};
use lodestar_core::time::Timestamp;
use serde::Serialize;

/// A gateway's word on the run, as the installation that wrote the log kept it. The report repeats it, and has
/// checked nothing of it but that nobody changed it since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Execution {
    /// The run.
    pub run: RunId,
    /// Where the gateway is.
    pub gateway: String,
    /// The account whose run it is.
    pub account: AccountId,
    /// The device that attested it.
    pub device: DeviceId,
    /// The attestation that was graded.
    pub attestation: AttestationId,
    /// The gateway's own name of what it found.
    pub evaluation: EvaluationId,
    /// When it found it, by its own time.
    pub evaluated_at: Timestamp,
    /// The level.
    pub level: ExecutionLevel,
    /// Every fact that the ladder asks for, in its order.
    pub facts: Vec<Fact>,
    /// The first fact that did not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<ExecutionFact>,
    /// Why one does not hold, in the gateway's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A fact, and whether it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Which.
    pub fact: ExecutionFact,
    /// Whether it held, by the gateway's word.
    pub held: bool,
}
