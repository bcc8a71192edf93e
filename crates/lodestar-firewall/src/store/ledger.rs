//! Which confirmations were spent, beside the beliefs.
//!
//! Unlike a belief, an entry is not a projection of the log: it is what decides, between all processes
//! that share the store, who may spend a confirmation. One insert does, and whoever made it has it.
//! Entries are never changed and outlive a rebuild of the beliefs.

use lodestar_core::statement::confirmation::{Consumption, LedgerError, Spent};

use super::StoreError;

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        Self(Box::new(error))
    }
}

/// The columns of an entry, in the order in which both databases have them.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) statement: String,
    pub(super) operator: String,
    pub(super) session: String,
    pub(super) action: String,
    pub(super) spent_at: i64,
}

impl From<&Consumption> for Entry {
    fn from(consumption: &Consumption) -> Self {
        Self {
            id: consumption.id.to_string(),
            statement: consumption.statement.to_string(),
            operator: consumption.operator.to_string(),
            session: consumption.session.to_string(),
            action: consumption.action.to_string(),
            spent_at: consumption.at.unix_micros(),
        }
    }
}

/// What it means that so many rows were inserted.
pub(super) fn spent(inserted: u64) -> Spent {
    match inserted {
        0 => Spent::Before,
        _ => Spent::Now,
    }
}
