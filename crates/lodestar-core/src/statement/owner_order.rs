//! The statements by which an owner disposes of devices: orders, and the change of a key.
//!
//! They are made off the device. Whoever has a device, its token and its key can do none of this.

use serde::{Deserialize, Serialize};

use super::{Envelope, Statement, StatementError, StatementKind, Undated};
use crate::digest::Digest;
use crate::id::{AccountId, DeviceId, RunnerId};
use crate::key::PublicKey;
use crate::time::Timestamp;

/// An owner orders something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerOrder {
    /// The account whose owner orders it.
    pub account: AccountId,
    /// What is ordered.
    pub order: Order,
}

/// What an owner can order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(
    clippy::large_enum_variant,
    reason = "an order is read, obeyed and dropped; there is never more than one at hand"
)]
pub enum Order {
    /// The device, with these keys, is one of the owner's.
    Approve {
        /// The device.
        device: DeviceId,
        /// The key it signs with: the owner says which they saw.
        key: PublicKey,
        /// The key its logs are signed with.
        log_key: PublicKey,
    },
    /// A runner works on a device.
    Bind {
        /// The device.
        device: DeviceId,
        /// The runner.
        runner: RunnerId,
    },
    /// It no longer does.
    Unbind {
        /// The device.
        device: DeviceId,
        /// The runner.
        runner: RunnerId,
    },
    /// The device is given up, for good.
    Revoke {
        /// Since when it may have been somebody else's, by the server's time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compromised_since: Option<Timestamp>,
        /// The device.
        device: DeviceId,
        /// Why, in the owner's words.
        reason: String,
    },
    /// The device stops signing.
    Pause {
        /// The device.
        device: DeviceId,
        /// Why, in the owner's words.
        reason: String,
    },
    /// The device signs again.
    Resume {
        /// The device.
        device: DeviceId,
    },
    /// Later runs are judged by these terms.
    RegisterTerms {
        /// SHA-256 of the terms in canonical form.
        terms: Digest,
    },
}

impl Order {
    /// The device it is about, if it is about one.
    pub const fn device(&self) -> Option<DeviceId> {
        match self {
            Self::Approve { device, .. }
            | Self::Bind { device, .. }
            | Self::Unbind { device, .. }
            | Self::Revoke { device, .. }
            | Self::Pause { device, .. }
            | Self::Resume { device } => Some(*device),
            Self::RegisterTerms { .. } => None,
        }
    }

    /// What is ordered, in a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Bind { .. } => "bind",
            Self::Unbind { .. } => "unbind",
            Self::Revoke { .. } => "revoke",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::RegisterTerms { .. } => "register_terms",
        }
    }
}

impl Statement for OwnerOrder {
    const KIND: StatementKind = StatementKind::OwnerOrder;
}

/// A device's keys are replaced. Signed by the owner, the old key and the new one; the owner issues it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRotation {
    /// The account that owns the device.
    pub account: AccountId,
    /// The device.
    pub device: DeviceId,
    /// The key it signs with from now on.
    pub new_key: PublicKey,
    /// The key its logs are signed with from now on.
    pub new_log_key: PublicKey,
    /// The key it signed with until now.
    pub old_key: PublicKey,
}

impl Statement for KeyRotation {
    const KIND: StatementKind = StatementKind::KeyRotation;
}

impl KeyRotation {
    /// Checks a rotation away from `old`: that the owner issued it, and that all three signed. The dates are
    /// for the caller to ask.
    ///
    /// The new key is the one that the payload names; that its own signature verifies shows that somebody
    /// has it. Three keys have to be three: an owner's key on a device, or a rotation to the same key, is
    /// refused.
    pub fn verify_undated(
        envelope: &Envelope,
        owner: &PublicKey,
        old: &PublicKey,
    ) -> Result<Undated<Self>, StatementError> {
        let claimed = envelope.unverified::<Self>()?;
        let new = &claimed.subject.new_key;
        for (key, other) in [(owner, old), (old, new), (owner, new)] {
            if key == other {
                return Err(StatementError::SameKey(key.key_id()));
            }
        }
        let verified = envelope.verify_all_undated::<Self>(&[*owner, *old, *new])?;
        if verified.key() != owner {
            return Err(StatementError::KeyMismatch(verified.key().key_id()));
        }
        if verified.subject().old_key != *old {
            return Err(StatementError::KeyMismatch(
                verified.subject().old_key.key_id(),
            ));
        }
        Ok(verified)
    }
}
