//! A device's word on a run: an in-toto Statement v1 about the log of a session.
//!
//! Other tools read this form, so it is theirs and not an [`Issued`](super::Issued): who says so when stands
//! in the predicate. Everything else is as for other statements: canonical, nothing unknown, one way to
//! something verified.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::verify::{Opened, Payload, check_window};
use super::{Envelope, Nonce, StatementError, StatementKind};
use crate::digest::Digest;
use crate::id::{AccountId, ContenderId, DeviceId, RunId, RunnerId};
use crate::key::{KeyId, PublicKey, SecretKey};
use crate::name::SessionId;
use crate::time::Timestamp;

/// The type of the statement, as in-toto defines it.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// The type of the predicate.
pub const PREDICATE_TYPE: &str = "https://lodestar.dev/attestation/run/v1";

/// That a device vouches for the log of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attestation {
    /// The session whose log it is.
    pub session: SessionId,
    /// The root over the log's events.
    pub root: Digest,
    /// What is said of it.
    pub predicate: RunPredicate,
}

/// What a device says of a log. Whatever the server stored has to be equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPredicate {
    /// The account whose run it is.
    pub account: AccountId,
    /// The agent in whose name it was made.
    pub agent: ContenderId,
    /// SHA-256 of the bundle that the log was handed in as.
    pub bundle: Digest,
    /// The device that vouches.
    pub device: DeviceId,
    /// When it was said.
    pub issued_at: Timestamp,
    /// The key that signs.
    pub key_id: KeyId,
    /// SHA-256 of the task and prompt files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lens_hash: Option<Digest>,
    /// Makes each attestation different from every other.
    pub nonce: Nonce,
    /// The policy in force, by digest.
    pub policy: Digest,
    /// The run.
    pub run: RunId,
    /// What the server gave the run, and what stands in the log's opening.
    pub run_nonce: Nonce,
    /// The runner that made it.
    pub runner: RunnerId,
    /// How many events the log has.
    pub size: u64,
    /// SHA-256 of the workflow file in canonical form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_hash: Option<Digest>,
}

/// The form that in-toto gives it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Wire {
    #[serde(rename = "_type")]
    statement_type: String,
    predicate: RunPredicate,
    predicate_type: String,
    subject: [WireSubject; 1],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSubject {
    digest: WireDigest,
    name: SessionId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireDigest {
    sha256: Digest,
}

impl Serialize for Attestation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire {
            statement_type: STATEMENT_TYPE.to_owned(),
            predicate: self.predicate.clone(),
            predicate_type: PREDICATE_TYPE.to_owned(),
            subject: [WireSubject {
                digest: WireDigest { sha256: self.root },
                name: self.session.clone(),
            }],
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Attestation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire {
            statement_type,
            predicate,
            predicate_type,
            subject: [subject],
        } = Wire::deserialize(deserializer)?;
        if statement_type != STATEMENT_TYPE {
            return Err(de::Error::custom("it is not an in-toto Statement v1"));
        }
        if predicate_type != PREDICATE_TYPE {
            return Err(de::Error::custom("its predicate is not that of a run"));
        }
        Ok(Self {
            session: subject.name,
            root: subject.digest.sha256,
            predicate,
        })
    }
}

impl Payload for Attestation {
    const KIND: StatementKind = StatementKind::Attestation;

    fn key_id(&self) -> &KeyId {
        &self.predicate.key_id
    }
}

/// An attestation whose kind, signature, form and date were checked.
///
/// ```compile_fail
/// // Only `Envelope::verify_attestation` makes one.
/// # use lodestar_core::statement::{Attestation, VerifiedAttestation};
/// fn forge(attestation: Attestation) -> VerifiedAttestation {
///     VerifiedAttestation { attestation, key: todo!(), digest: todo!(), statement: todo!() }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedAttestation {
    attestation: Attestation,
    key: PublicKey,
    digest: Digest,
    statement: Digest,
}

impl VerifiedAttestation {
    /// What is attested.
    pub const fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// What is said of the log.
    pub const fn predicate(&self) -> &RunPredicate {
        &self.attestation.predicate
    }

    /// The key that signed.
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The digest of the envelope.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of what is signed: the same, whoever else signed it too.
    pub const fn statement(&self) -> Digest {
        self.statement
    }
}

impl Envelope {
    /// Signs an attestation with the key it names.
    pub fn attest(attestation: &Attestation, key: &SecretKey) -> Result<Self, StatementError> {
        Self::sign_payload(attestation, &[key])
    }

    /// Checks an attestation as [`Envelope::verify`] checks other statements, and that it was made no further
    /// from `now` than `window`, either way.
    pub fn verify_attestation(
        &self,
        keys: &[PublicKey],
        now: Timestamp,
        window: Duration,
    ) -> Result<VerifiedAttestation, StatementError> {
        let Opened {
            payload: attestation,
            key,
        } = self.open::<Attestation>(keys)?;
        check_window(attestation.predicate.issued_at, now, window)?;
        Ok(VerifiedAttestation {
            attestation,
            key,
            digest: self.digest(),
            statement: self.payload_digest(),
        })
    }

    /// What an attestation says, unverified: to find out whose key to ask, or to show it.
    pub fn unverified_attestation(&self) -> Result<Attestation, StatementError> {
        self.read_payload()
    }
}
