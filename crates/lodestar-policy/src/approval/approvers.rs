//! The operator's registry: whose word counts, for what.

use std::collections::BTreeSet;

use lodestar_core::defence::Defence;
use lodestar_core::key::PublicKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::ActorId;
use lodestar_core::scope::Scope;
use lodestar_core::statement::{
    Approval, Envelope, EnvelopeSignature, Issued, Statement, StatementKind,
};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Refusal;
use super::refusal::unverified;
use crate::confirmation::Confirmed;

/// Somebody who may approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// Who.
    #[serde(alias = "actor_id")]
    pub actor: ActorId,
    /// Their key.
    pub public_key: PublicKey,
    /// What they answer for.
    #[serde(default)]
    pub roles: BTreeSet<String>,
    /// Up to which rung.
    #[serde(default = "l4")]
    pub clearance: Rung,
    /// Where.
    #[serde(default = "Scope::global")]
    pub scope: Scope,
    /// From when on their key counts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl Approver {
    /// The moment from which on their key counts no more.
    pub(super) fn counts_until(&self) -> Timestamp {
        self.revoked_at.unwrap_or(Timestamp::MAX)
    }
}

/// Holds are at most L4: whoever may approve at all may approve those, unless the operator says less.
fn l4() -> Rung {
    Rung::L4
}

/// Everybody who may approve. What a statement says of its author is never asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Approver>", into = "Vec<Approver>")]
pub struct Approvers {
    approvers: Vec<Approver>,
    /// What a harness has taken out; never written down.
    taken_out: BTreeSet<Defence>,
}

/// Why a list of approvers is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApproversError {
    /// One key for two people would let one of them be a quorum, and one that is listed twice could be
    /// revoked in one place and count in the other.
    #[error("the key of approver `{second}` is listed before, for `{first}`; list each key once")]
    SameKey {
        /// One of them.
        first: ActorId,
        /// The other.
        second: ActorId,
    },
}

impl Approvers {
    /// A registry of these people. One person may have several keys; each key stands there once.
    pub fn new(approvers: Vec<Approver>) -> Result<Self, ApproversError> {
        for (at, one) in approvers.iter().enumerate() {
            let same = approvers[..at]
                .iter()
                .find(|other| other.public_key == one.public_key);
            if let Some(other) = same {
                return Err(ApproversError::SameKey {
                    first: other.actor.clone(),
                    second: one.actor.clone(),
                });
            }
        }
        Ok(Self {
            approvers,
            taken_out: BTreeSet::new(),
        })
    }

    /// For a harness that takes defences out: without [`Defence::ApprovalSignatures`], whoever names an
    /// approver's key is taken for its owner; without [`Defence::StatementKinds`], an answer may have been
    /// signed as something else; without [`Defence::ApprovalTimes`], no answer is early or late.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        self
    }

    pub(super) fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// What an answer says, and by whose key.
    pub(super) fn read(
        &self,
        statement: &Envelope,
        now: Timestamp,
    ) -> Result<(Issued<Approval>, PublicKey), Refusal> {
        let keys = self.keys(now);
        if !self.taken_out.is_empty()
            && let Some(taken) = self.take(statement, &keys)
        {
            return Ok(taken);
        }
        let verified = statement
            .verify::<Approval>(&keys, now)
            .map_err(|problem| unverified(problem, statement, self))?;
        Ok((verified.issued().clone(), *verified.key()))
    }

    /// What an answer says, for a harness: with the checks that it has taken out left out.
    fn take(
        &self,
        statement: &Envelope,
        keys: &[PublicKey],
    ) -> Option<(Issued<Approval>, PublicKey)> {
        if self.lacks(Defence::ApprovalSignatures) {
            let issued: Issued<Approval> =
                serde_json::from_slice(statement.unverified_payload()).ok()?;
            let key = keys.iter().find(|key| key.key_id() == issued.key_id)?;
            return Some((issued, *key));
        }
        if self.lacks(Defence::StatementKinds) {
            let verified = statement.verify_undated::<SignedAsReview>(keys).ok()?;
            let (issued, key) = (verified.issued().clone(), *verified.key());
            let issued = Issued {
                expires_at: issued.expires_at,
                issued_at: issued.issued_at,
                key_id: issued.key_id,
                nonce: issued.nonce,
                subject: issued.subject.0,
            };
            return Some((issued, key));
        }
        if self.lacks(Defence::ApprovalTimes) {
            let verified = statement.verify_undated::<Approval>(keys).ok()?;
            return Some((verified.issued().clone(), *verified.key()));
        }
        None
    }

    /// Everybody.
    pub fn approvers(&self) -> &[Approver] {
        &self.approvers
    }

    /// Whose key it is.
    pub fn with_key(&self, key: &PublicKey) -> Option<&Approver> {
        self.approvers.iter().find(|one| one.public_key == *key)
    }

    /// What stands here of the operator of a confirmation: of the key that signed it where it is one
    /// of theirs, and of all their keys that count now where a host signed.
    pub(super) fn confirming(&self, confirmed: &Confirmed, now: Timestamp) -> Vec<&Approver> {
        let all = self.approvers.iter();
        let own: Vec<&Approver> = all
            .filter(|one| one.actor == *confirmed.operator())
            .filter(|one| now < one.counts_until())
            .collect();
        match self.with_key(confirmed.key()) {
            Some(signer) => own
                .into_iter()
                .filter(|one| one.public_key == signer.public_key)
                .collect(),
            None => own,
        }
    }

    /// Whose key one of these signatures names, and from when on it counts no more.
    pub(super) fn revoked(&self, signatures: &[EnvelopeSignature]) -> Option<(ActorId, Timestamp)> {
        let named = |one: &&Approver| {
            let id = one.public_key.key_id();
            signatures.iter().any(|signature| signature.key_id == id)
        };
        let mut revoked = self.approvers.iter().filter(named);
        revoked.find_map(|one| Some((one.actor.clone(), one.revoked_at?)))
    }

    /// The keys that count now.
    pub fn keys(&self, now: Timestamp) -> Vec<PublicKey> {
        let all = self.approvers.iter();
        all.filter(|one| now < one.counts_until())
            .map(|one| one.public_key)
            .collect()
    }
}

/// What reads as an answer, and was signed as the review of a tool: nothing, unless a harness has taken
/// [`Defence::StatementKinds`] out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct SignedAsReview(Approval);

impl Statement for SignedAsReview {
    const KIND: StatementKind = StatementKind::ToolReview;
}

impl TryFrom<Vec<Approver>> for Approvers {
    type Error = ApproversError;

    fn try_from(approvers: Vec<Approver>) -> Result<Self, ApproversError> {
        Self::new(approvers)
    }
}

impl From<Approvers> for Vec<Approver> {
    fn from(registry: Approvers) -> Self {
        registry.approvers
    }
}
