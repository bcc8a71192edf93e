//! The statement by which a person answers one request: grants it, or denies it.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;
use crate::fingerprint::Fingerprint;
use crate::id::RequestId;
use crate::name::{ActorId, SessionId, words};

words! {
    /// What a person answers.
    pub enum ApprovalDecision: "approval decision" {
        /// It may run.
        Grant = "grant",
        /// It may not.
        Deny = "deny",
    }
}

/// A person's answer to one request, bound to exactly what they saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Who answers; what they may answer for stands in the operator's registry, not here.
    pub approver: ActorId,
    /// The card they looked at, by digest.
    pub card: Digest,
    /// What they answer.
    pub decision: ApprovalDecision,
    /// The exact act.
    pub fingerprint: Fingerprint,
    /// The policy that was in force, by digest.
    pub policy: Digest,
    /// Why, in their words.
    pub reason: String,
    /// The request.
    pub request: RequestId,
    /// The session that waits for it.
    pub session: SessionId,
}

impl Statement for Approval {
    const KIND: StatementKind = StatementKind::Approval;
}
