//! Holds: what is asked of people, who they are, and when their word is enough.
//!
//! A hold becomes an [`ApprovalRequest`] with a [`Card`], and a person signs for all of it by its digest.
//! What they send back is heard at the [`Desk`], which checks it against the operator's [`Approvers`] in
//! a fixed order and records it, refused or not.

mod answer;
mod approvers;
mod desk;
mod hear;
mod refusal;
mod requests;

pub use answer::{Answer, Unreadable};
pub use approvers::{Approver, Approvers, ApproversError};
pub use desk::{Book, Closed, Desk, Heard};
pub use hear::{Counted, Denial, Hearing};
pub use refusal::Refusal;
pub use requests::{Closing, NotSpendable, Requests, Standing};

use lodestar_core::canonical::{self, CanonicalError};
use lodestar_core::chain::Action;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::id::RequestId;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
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

/// A question to people: may exactly this run? All of it is signed for: who agrees has agreed to this
/// card, asked of so many people, in this session, until then, and to nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id.
    pub id: RequestId,
    /// The project that the session is of.
    pub project: ProjectId,
    /// The session that waits.
    pub session: SessionId,
    /// What they are shown.
    pub card: Card,
    /// All the rest of this, by [digest](Self::digest): what an answer names.
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

/// What is signed for, in its one canonical form.
#[derive(Serialize)]
struct SignedFor<'a> {
    card: &'a Card,
    created_at: Timestamp,
    expires_at: Timestamp,
    id: RequestId,
    policy: Digest,
    project: &'a ProjectId,
    requirement: &'a Requirement,
    session: &'a SessionId,
}

impl ApprovalRequest {
    /// Asks for as long as the requirement says.
    pub fn new(
        id: RequestId,
        (project, session): (ProjectId, SessionId),
        card: Card,
        requirement: Requirement,
        policy: Digest,
        created_at: Timestamp,
    ) -> Result<Self, CanonicalError> {
        let mut request = Self {
            id,
            project,
            session,
            card,
            // Of what it is shows only once everything else is there.
            card_digest: policy,
            expires_at: requirement.expires_from(created_at),
            requirement,
            policy,
            created_at,
        };
        request.card_digest = request.digest()?;
        Ok(request)
    }

    /// SHA-256 over the canonical JSON of everything that decides about this request: what a person
    /// signs for is what they were shown.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        let signed_for = SignedFor {
            card: &self.card,
            created_at: self.created_at,
            expires_at: self.expires_at,
            id: self.id,
            policy: self.policy,
            project: &self.project,
            requirement: &self.requirement,
            session: &self.session,
        };
        canonical::to_vec(&signed_for).map(|bytes| sha256(&bytes))
    }

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
