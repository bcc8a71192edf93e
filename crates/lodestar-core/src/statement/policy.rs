//! The statement by which an operator puts a policy into force.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;

/// These bytes, and no others, are the policy. Kept beside the policy's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyInForce {
    /// SHA-256 of the policy's bytes.
    pub policy: Digest,
}

impl Statement for PolicyInForce {
    const KIND: StatementKind = StatementKind::Policy;
}
