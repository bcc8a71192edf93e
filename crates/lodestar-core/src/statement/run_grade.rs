//! The statement by which an installation keeps what a gateway said of a run.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;
use crate::execution::Evaluation;
use crate::id::{AccountId, AttestationId, DeviceId, EvaluationId, RunId};
use crate::name::{ProjectId, SessionId};
use crate::time::Timestamp;

/// A gateway said this of the run that a session was. It is the gateway's word, as whoever signs heard it: the
/// signature shows that nobody changed it since, not that the gateway was right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunGrade {
    /// The account whose run it is.
    pub account: AccountId,
    /// The attestation that was graded.
    pub attestation: AttestationId,
    /// The device that attested.
    pub device: DeviceId,
    /// What the gateway made of it: facts, level, and what stopped it.
    pub evaluation: Evaluation,
    /// When, by the gateway's time.
    pub evaluated_at: Timestamp,
    /// The gateway's own name of the evaluation.
    pub evaluation_id: EvaluationId,
    /// Where the gateway is.
    pub gateway: String,
    /// The project of the session.
    pub project: ProjectId,
    /// Why a fact does not hold, in the gateway's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The root over the log's events, as it was attested.
    pub root: Digest,
    /// The run.
    pub run: RunId,
    /// The session that the run was.
    pub session: SessionId,
    /// How many events the log had.
    pub size: u64,
}

impl Statement for RunGrade {
    const KIND: StatementKind = StatementKind::RunGrade;
}
