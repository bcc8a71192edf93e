//! The statement by which a person moves one belief: promotes it, quarantines it, takes that back.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::chain::transition::AxisMove;
use crate::digest::Digest;
use crate::id::BeliefId;

/// A person moves one belief, as it stands, along its axes.
///
/// The digest binds the word to what the claim says, and the revision to where the belief stands:
/// after any change of the belief the statement fits no more, so it cannot be used twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// The belief.
    pub belief: BeliefId,
    /// The digest of its claim, in canonical form.
    pub claim: Digest,
    /// The moves, in their order.
    pub moves: Vec<AxisMove>,
    /// The project whose log records it.
    pub project: String,
    /// Why, in the person's words.
    pub reason: String,
    /// How often the belief had changed when the person looked at it.
    pub revision: u64,
}

impl Statement for Promotion {
    const KIND: StatementKind = StatementKind::Promotion;
}
