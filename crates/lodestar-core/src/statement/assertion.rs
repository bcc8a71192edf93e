//! The statement by which a person vouches for a fact.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::chain::Predicate;
use crate::scope::Scope;

/// A person says that something is so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// What is so, for comparison.
    pub predicate: Predicate,
    /// The project whose log records it.
    pub project: String,
    /// Where it holds.
    pub scope: Scope,
    /// What is so, for readers.
    pub statement: String,
}

impl Statement for Assertion {
    const KIND: StatementKind = StatementKind::Assertion;
}
