//! What counts against a device, for a while.

use lodestar_core::device::StrikeKind;
use lodestar_core::id::DeviceId;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, count, limit};
use super::value::values;
use super::{Row, Sql, StoreError};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strike {
    /// Against which device.
    pub device: DeviceId,
    /// What.
    pub kind: StrikeKind,
    /// When.
    pub at: Timestamp,
}

impl Columns for Strike {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            device: row.read()?,
            kind: row.read()?,
            at: row.read()?,
        })
    }
}

/// Adds one.
pub fn add(sql: &mut dyn Sql, strike: Strike) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO strikes (device, kind, at) VALUES ($1, $2, $3)",
        values![strike.device, strike.kind, strike.at],
    )
    .map(drop)
}

/// How many of a kind since a moment, that moment included.
pub fn count_since(
    sql: &mut dyn Sql,
    device: DeviceId,
    kind: StrikeKind,
    since: Timestamp,
) -> Result<u64, StoreError> {
    count(
        sql,
        "SELECT count(*) FROM strikes WHERE device = $1 AND kind = $2 AND at >= $3",
        values![device, kind, since],
    )
}

/// All since a moment, that moment included, oldest first.
pub fn since(
    sql: &mut dyn Sql,
    device: DeviceId,
    since: Timestamp,
) -> Result<Vec<Strike>, StoreError> {
    all(
        sql,
        "SELECT device, kind, at FROM strikes WHERE device = $1 AND at >= $2 ORDER BY at, n",
        values![device, since],
    )
}

/// Forgets the oldest from before this moment, so many at most; how many.
pub fn prune(sql: &mut dyn Sql, before: Timestamp, at_most: usize) -> Result<u64, StoreError> {
    sql.execute(
        "DELETE FROM strikes WHERE n IN (SELECT n FROM strikes WHERE at < $1 ORDER BY at LIMIT $2)",
        &[before.into(), limit(at_most)],
    )
}
