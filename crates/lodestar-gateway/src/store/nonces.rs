//! Nonces that a device used lately, so that a repetition shows.

use lodestar_core::id::DeviceId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;

use super::sql::{insert, limit};
use super::value::values;
use super::{Sql, StoreError};

/// Notes a nonce; `false` if the device used it before.
pub fn spend(
    sql: &mut dyn Sql,
    device: DeviceId,
    nonce: Nonce,
    at: Timestamp,
) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO nonces (device, nonce, seen_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        values![device, nonce, at],
    )
}

/// Forgets the oldest that were seen before this moment, so many at most; how many.
pub fn prune(sql: &mut dyn Sql, before: Timestamp, at_most: usize) -> Result<u64, StoreError> {
    sql.execute(
        "DELETE FROM nonces WHERE n IN
         (SELECT n FROM nonces WHERE seen_at < $1 ORDER BY seen_at LIMIT $2)",
        &[before.into(), limit(at_most)],
    )
}
