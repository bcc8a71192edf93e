//! Events that are not in the service's log yet, written with what they record.
//!
//! Their numbers grow and are never used again, so that the log tells which are there.

use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, limit};
use super::value::values;
use super::{Row, Sql, StoreError};

/// An event on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number, above that of every one before.
    pub n: u64,
    /// The type of the event.
    pub kind: String,
    /// Its payload, as JSON.
    pub payload: String,
    /// When it happened.
    pub at: Timestamp,
}

impl Columns for Outgoing {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            n: row.read()?,
            kind: row.read()?,
            payload: row.read()?,
            at: row.read()?,
        })
    }
}

/// Adds one.
pub fn push(
    sql: &mut dyn Sql,
    kind: &str,
    payload: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO outbox (kind, payload, at) VALUES ($1, $2, $3)",
        values![kind, payload, at],
    )
    .map(drop)
}

/// The first that wait, in their order.
pub fn waiting(sql: &mut dyn Sql, at_most: usize) -> Result<Vec<Outgoing>, StoreError> {
    all(
        sql,
        "SELECT n, kind, payload, at FROM outbox ORDER BY n LIMIT $1",
        &[limit(at_most)],
    )
}

/// Removes those up to a number, it included: they are in the log. How many.
pub fn remove_through(sql: &mut dyn Sql, n: u64) -> Result<u64, StoreError> {
    sql.execute("DELETE FROM outbox WHERE n <= $1", values![n])
}
