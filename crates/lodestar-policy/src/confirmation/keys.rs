//! Which keys may sign confirmations: of which origin, in whose name.

use std::collections::BTreeSet;

use lodestar_core::defence::Defence;
use lodestar_core::key::{KeyId, PublicKey};
use lodestar_core::name::ActorId;
use lodestar_core::statement::ConfirmationOrigin;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A key that may sign confirmations. It belongs to an operator, or to a host that asks operators and
/// runs as another process or user than the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmationKey {
    /// The key.
    pub public_key: PublicKey,
    /// How confirmations by it may have come about.
    pub origins: BTreeSet<ConfirmationOrigin>,
    /// In whose name it may sign.
    pub operators: BTreeSet<ActorId>,
    /// From when on it counts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// All keys that may sign confirmations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<ConfirmationKey>", into = "Vec<ConfirmationKey>")]
pub struct ConfirmationKeys {
    keys: Vec<ConfirmationKey>,
    /// What a harness has taken out; never written down.
    taken_out: BTreeSet<Defence>,
}

/// Why a list of confirmation keys is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfirmationKeysError {
    /// One that is listed twice could be revoked in one place and count in the other.
    #[error("the confirmation key `{0}` is listed twice; list each key once")]
    SameKey(KeyId),
    /// It could sign nothing.
    #[error(
        "the confirmation key `{0}` has no origin; name `runtime-ui-confirm` or `operator-contract-review`"
    )]
    NoOrigin(KeyId),
    /// It could sign for nobody.
    #[error("the confirmation key `{0}` may sign for nobody; name its `operators`")]
    NoOperator(KeyId),
}

impl ConfirmationKeys {
    /// Keys that are listed once, each with something to sign.
    pub fn new(keys: Vec<ConfirmationKey>) -> Result<Self, ConfirmationKeysError> {
        for (at, one) in keys.iter().enumerate() {
            let id = || one.public_key.key_id();
            let is_same = |other: &ConfirmationKey| other.public_key == one.public_key;
            if keys[..at].iter().any(is_same) {
                return Err(ConfirmationKeysError::SameKey(id()));
            }
            if one.origins.is_empty() {
                return Err(ConfirmationKeysError::NoOrigin(id()));
            }
            if one.operators.is_empty() {
                return Err(ConfirmationKeysError::NoOperator(id()));
            }
        }
        Ok(Self {
            keys,
            taken_out: BTreeSet::new(),
        })
    }

    /// For a harness that takes defences out: without [`Defence::ConfirmationEvidence`], what reads as a
    /// confirmation is taken for one; without [`Defence::ConfirmationFields`], it is about whatever is
    /// held; without [`Defence::ConfirmationTimes`], it is neither early nor late.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        self
    }

    pub(super) fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// All of them.
    pub fn keys(&self) -> &[ConfirmationKey] {
        &self.keys
    }

    /// What is said of this key.
    pub fn with_key(&self, key: &PublicKey) -> Option<&ConfirmationKey> {
        self.keys.iter().find(|one| one.public_key == *key)
    }

    /// The key of this name.
    pub(super) fn named(&self, id: &KeyId) -> Option<PublicKey> {
        self.public().into_iter().find(|key| key.key_id() == *id)
    }

    pub(super) fn public(&self) -> Vec<PublicKey> {
        self.keys.iter().map(|one| one.public_key).collect()
    }
}

impl TryFrom<Vec<ConfirmationKey>> for ConfirmationKeys {
    type Error = ConfirmationKeysError;

    fn try_from(keys: Vec<ConfirmationKey>) -> Result<Self, ConfirmationKeysError> {
        Self::new(keys)
    }
}

impl From<ConfirmationKeys> for Vec<ConfirmationKey> {
    fn from(all: ConfirmationKeys) -> Self {
        all.keys
    }
}
