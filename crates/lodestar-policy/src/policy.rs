//! A policy: its text, what it is signed with, and the Cedar policies in it.

mod depth;
mod parse;
mod preset;
mod sign;

pub(crate) use parse::{Rule, from_diagnostic, parse};
pub use sign::{SIGNATURE_SUFFIX, sign, signature_path};

use std::sync::Arc;

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::key::{KeyId, PublicKey};
use lodestar_core::name::PolicyId;
use lodestar_core::statement::{Envelope, PolicyInForce, StatementError};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::finding::Finding;
use crate::location::Location;

/// The longest policy, in bytes: far more than people read.
pub const MAX_POLICY_LEN: usize = 1 << 20;

/// On whose word a policy is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SignatureState {
    /// Signed by a pinned key.
    Signed {
        /// Which.
        key: KeyId,
    },
    /// Nobody signed it, and the operator allows that.
    Unsigned,
    /// It is one of Lodestar's own presets.
    Preset,
}

/// What is to happen with a policy that nobody signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsigned {
    /// It loads, and reports say so.
    Allowed,
    /// It does not load.
    Refused,
}

impl From<bool> for Unsigned {
    /// Reads the setting `allow_unsigned`.
    fn from(allow: bool) -> Self {
        if allow { Self::Allowed } else { Self::Refused }
    }
}

/// Why a policy does not load.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// Longer than [`MAX_POLICY_LEN`].
    #[error("the policy is {0} bytes long; at most {MAX_POLICY_LEN} are taken")]
    TooLong(usize),
    /// Bytes that are no text.
    #[error("the policy is not UTF-8 at {line}:{column}; save it as UTF-8")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
        /// The character of the line, from 1.
        column: usize,
    },
    /// Cedar cannot read it, or it has what is not taken here.
    #[error("the policy cannot be read: {}", listed(.0))]
    Unreadable(Vec<Finding>),
    /// The signature does not hold.
    #[error("the policy's signature does not hold: {0}")]
    Signature(#[from] StatementError),
    /// The signature is over other bytes.
    #[error(
        "the policy was changed after it was signed: the signature is for `{signed}`, these bytes are `{found}`; sign it again"
    )]
    Edited {
        /// The digest that was signed.
        signed: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// Nobody signed it.
    #[error("the policy is not signed; sign it, or set `allow_unsigned = true`")]
    Unsigned,
    /// A preset cannot let through what the ladder holds.
    #[error(
        "`auto_approve_ceiling` is {0}; it goes from 0 to 3, since L4 waits for a human and L5 does not run"
    )]
    Ceiling(u8),
}

fn listed(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings.iter().map(Finding::to_string).collect();
    lines.join("\n")
}

/// A policy that was read: Cedar text, and on whose word it is in force.
#[derive(Debug, Clone)]
pub struct Policy {
    source: Arc<str>,
    digest: Digest,
    signature: SignatureState,
    rules: Vec<Rule>,
}

impl Policy {
    /// Reads a policy and checks its signature.
    ///
    /// A signature that does not hold keeps the policy out even where unsigned ones are allowed:
    /// somebody meant it to hold.
    pub fn load(
        bytes: &[u8],
        signature: Option<&Envelope>,
        keys: &[PublicKey],
        unsigned: Unsigned,
        now: Timestamp,
    ) -> Result<Self, PolicyError> {
        let digest = sha256(bytes);
        let state = match signature {
            Some(envelope) => {
                let verified = envelope.verify::<PolicyInForce>(keys, now)?;
                let signed = verified.subject().policy;
                if signed != digest {
                    let found = digest;
                    return Err(PolicyError::Edited { signed, found });
                }
                SignatureState::Signed {
                    key: verified.key().key_id(),
                }
            }
            None if unsigned == Unsigned::Allowed => SignatureState::Unsigned,
            None => return Err(PolicyError::Unsigned),
        };
        Self::read(bytes, digest, state)
    }

    /// Lodestar's own policy that lets everything up to a rung run, and asks for the rest up to L3.
    pub fn preset(ceiling: u8) -> Result<Self, PolicyError> {
        let text = preset::text(ceiling).ok_or(PolicyError::Ceiling(ceiling))?;
        let bytes = text.as_bytes();
        Self::read(bytes, sha256(bytes), SignatureState::Preset)
    }

    pub(crate) fn read(
        bytes: &[u8],
        digest: Digest,
        signature: SignatureState,
    ) -> Result<Self, PolicyError> {
        if bytes.len() > MAX_POLICY_LEN {
            return Err(PolicyError::TooLong(bytes.len()));
        }
        let source = str::from_utf8(bytes).map_err(|error| {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let Location { line, column } = Location::of(&good, good.len());
            PolicyError::NotUtf8 { line, column }
        })?;
        let rules = parse(source).map_err(PolicyError::Unreadable)?;
        Ok(Self {
            source: Arc::from(source),
            digest,
            signature,
            rules,
        })
    }

    /// The Cedar text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// SHA-256 of the text's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// On whose word it is in force.
    pub fn signature(&self) -> &SignatureState {
        &self.signature
    }

    /// The ids of its policies, in the order of the text.
    pub fn ids(&self) -> impl Iterator<Item = &PolicyId> {
        self.rules.iter().map(|rule| &rule.id)
    }

    /// One of its policies: the line it starts on, from 1, and its text.
    pub fn rule(&self, id: &lodestar_core::name::PolicyId) -> Option<(usize, &str)> {
        let rule = self.rules.iter().find(|rule| rule.id == *id)?;
        let Location { line, .. } = Location::of(&self.source, rule.span.0);
        Some((line, rule.text(&self.source)))
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }
}
