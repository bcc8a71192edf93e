//! Holds: what is asked of people, who they are, and when their word is enough.
//!
//! A hold becomes an [`ApprovalRequest`] with a [`Card`], which is all that a person is shown and part
//! of what they sign. What they send back is heard at the [`Desk`], which checks it against the
//! operator's [`Approvers`] in a fixed order and records it, refused or not.

mod approvers;
mod desk;
mod hear;
mod requests;

pub use approvers::{Approver, Approvers, ApproversError};
pub use desk::{Book, Closed, Desk, Heard};
pub use hear::{Answer, Counted, Denial, Hearing, Refusal, Unreadable};
pub use requests::{Closing, NotSpendable, Requests, Standing};

use lodestar_core::canonical::{self, CanonicalError};
use lodestar_core::chain::Action;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::id::RequestId;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::provenance::ArgumentProvenance;
use lodestar_core::statement::{
    Approval, ApprovalDecision, Envelope, Issued, Nonce, StatementError,
};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::judgement::Requirement;

/// All that a person is shown of a held action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The action, with its full arguments and its contract.
    pub action: Action,
    /// The tool's definition, by digest.
    pub definition: Digest,
    /// The paths among the arguments, in normal form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<NormalPath>,
    /// Where each value came from.
    pub provenance: Vec<ArgumentProvenance>,
    /// What was measured of the world, and has to be so still when it runs.
    pub measured: Vec<Value>,
    /// What would go out, line by line: commits, recipients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub going_out: Vec<String>,
    /// Why it is held, in words.
    pub why: String,
}

impl Card {
    /// SHA-256 over its canonical JSON: what a person signs for is what they saw.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        canonical::to_vec(self).map(|bytes| sha256(&bytes))
    }

    /// The fingerprint of what it shows: whoever signs can make sure that it is the one they sign.
    pub fn fingerprint(&self) -> Result<Fingerprint, CanonicalError> {
        self.fields()?.fingerprint()
    }

    /// What the fingerprint is taken of.
    pub fn fields(&self) -> Result<FingerprintFields, CanonicalError> {
        let action = &self.action;
        FingerprintFields::under(
            &action.contract,
            action.server.clone(),
            action.tool.clone(),
            self.definition,
            action.arguments.clone(),
            self.paths.clone(),
        )
    }
}

/// A question to people: may exactly this run?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id.
    pub id: RequestId,
    /// The session that waits.
    pub session: SessionId,
    /// What they are shown.
    pub card: Card,
    /// The card, by digest.
    pub card_digest: Digest,
    /// What their answer needs.
    pub requirement: Requirement,
    /// The policy in force, by digest.
    pub policy: Digest,
    /// When it was asked.
    pub created_at: Timestamp,
    /// From when on nobody's word opens it.
    pub expires_at: Timestamp,
}

impl ApprovalRequest {
    /// What a person says to this request, signed with their key: bound to the act, the card they saw
    /// and the policy in force, and good for as long as the request.
    pub fn answer(
        &self,
        approver: &ActorId,
        decision: ApprovalDecision,
        reason: &str,
        signed: Signed<'_>,
    ) -> Result<Envelope, StatementError> {
        let issued = Issued {
            expires_at: Some(self.expires_at),
            issued_at: signed.at,
            key_id: signed.key.public().key_id(),
            nonce: signed.nonce,
            subject: Approval {
                approver: approver.clone(),
                card: self.card_digest,
                decision,
                fingerprint: self.card.action.fingerprint,
                policy: self.policy,
                reason: reason.to_owned(),
                request: self.id,
                session: self.session.clone(),
            },
        };
        Envelope::sign(&issued, signed.key)
    }
}

/// With which key, when, and by which nonce an answer is signed.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The approver's key.
    pub key: &'a SecretKey,
    /// Now.
    pub at: Timestamp,
    /// Sixteen bytes from a random source.
    pub nonce: Nonce,
}
