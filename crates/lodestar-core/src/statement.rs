//! Signed statements: who said what, once and for one purpose.
//!
//! All of them have one form: a DSSE envelope ([`Envelope`]) whose payload is canonical JSON
//! ([`Issued`]) under a payload type that names the kind. A signature covers the type, so a
//! statement of one kind never verifies as another. [`Verified`] is only made by verification:
//! code that takes one cannot be handed something unchecked. An [`Attestation`] has in-toto's form
//! instead, in the same envelope, and [`VerifiedAttestation`] for the same purpose.

mod approval;
mod assertion;
mod attestation;
pub mod confirmation;
mod envelope;
mod error;
mod heartbeat;
mod kind;
mod owner_order;
mod pack;
mod policy;
mod promotion;
mod redaction;
mod run_bundle;
mod run_grade;
mod tool_review;
mod verify;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use approval::{Approval, ApprovalDecision};
pub use assertion::Assertion;
pub use attestation::{
    Attestation, PREDICATE_TYPE, RunPredicate, STATEMENT_TYPE, VerifiedAttestation,
};
pub use confirmation::{Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin};
pub use envelope::{Envelope, EnvelopeSignature, MAX_ENVELOPE_LEN, MAX_ENVELOPE_SIGNATURES, pae};
pub use error::StatementError;
pub use heartbeat::{ChallengeResponse, DaemonVersion, GatewayStatus, Heartbeat, LineError};
pub use kind::StatementKind;
pub use owner_order::{KeyRotation, Order, OwnerOrder};
pub use pack::{PackPublished, PackedFile};
pub use policy::PolicyInForce;
pub use promotion::Promotion;
pub use redaction::{RedactedEvent, Redaction};
pub use run_bundle::RunBundle;
pub use run_grade::RunGrade;
pub use tool_review::ToolReview;
pub use verify::{CLOCK_SKEW, Undated, Verified};

use crate::digest::{decode_hex, encode_hex};
use crate::key::KeyId;
use crate::time::Timestamp;

/// What a kind of statement is about.
///
/// The serialised form must read back to the same bytes; verification compares them, so that
/// unknown fields and left-out ones are refused for every kind.
pub trait Statement: Serialize + DeserializeOwned {
    /// The kind, and with it the payload type that is signed.
    const KIND: StatementKind;
}

/// The payload of a statement: its subject, and who says so when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issued<T> {
    /// The last moment is the one before this; without it the statement does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub issued_at: Timestamp,
    /// The key that signs.
    pub key_id: KeyId,
    /// Makes each statement different from every other, so that a repetition shows.
    pub nonce: Nonce,
    /// What is stated.
    pub subject: T,
}

/// Sixteen random bytes; written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// Wraps bytes from a random source.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hex = Vec::with_capacity(32);
        encode_hex(&self.0, &mut hex);
        f.pad(str::from_utf8(&hex).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Nonce {
    type Err = StatementError;

    fn from_str(text: &str) -> Result<Self, StatementError> {
        decode_hex(text.as_bytes())
            .map(Self)
            .ok_or(StatementError::MalformedNonce)
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
