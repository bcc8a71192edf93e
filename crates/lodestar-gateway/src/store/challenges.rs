//! What a device has to sign to show that it has its key.

use lodestar_core::id::DeviceId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, insert, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A challenge. The newest of a device is the one in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// For which device.
    pub device: DeviceId,
    /// What it has to sign.
    pub nonce: Nonce,
    /// When it was made.
    pub issued_at: Timestamp,
    /// From when on it counts for nothing.
    pub expires_at: Timestamp,
    /// When the device signed it.
    pub passed_at: Option<Timestamp>,
}

impl Columns for Challenge {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            device: row.read()?,
            nonce: row.read()?,
            issued_at: row.read()?,
            expires_at: row.read()?,
            passed_at: row.read()?,
        })
    }
}

/// Opens a challenge for the key that the device has, in the place of the one before; `false` if its nonce was used.
///
/// Refused by the database for a device without a key, or gone for good.
pub fn open(sql: &mut dyn Sql, challenge: &Challenge) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO challenges (device, key, nonce, issued_at, expires_at)
         SELECT id, key, CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS BIGINT) FROM devices WHERE id = $4
         ON CONFLICT DO NOTHING",
        values![
            challenge.nonce,
            challenge.issued_at,
            challenge.expires_at,
            challenge.device
        ],
    )
}

/// The challenge in force.
pub fn current(sql: &mut dyn Sql, device: DeviceId) -> Result<Option<Challenge>, StoreError> {
    one(
        sql,
        "SELECT device, nonce, issued_at, expires_at, passed_at FROM challenges
         WHERE device = $1 ORDER BY n DESC LIMIT 1",
        values![device],
    )
}

/// Notes that the device signed its challenge, on the challenge and on the device; `false` if this is not the one
/// in force, or it expired or was passed before.
pub fn pass(
    sql: &mut dyn Sql,
    device: DeviceId,
    nonce: Nonce,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE challenges SET passed_at = $1
         WHERE device = $2 AND nonce = $3 AND passed_at IS NULL AND issued_at <= $1 AND expires_at > $1
         AND n = (SELECT max(n) FROM challenges WHERE device = $2)",
        values![at, device, nonce],
    )?;
    Ok(changed > 0)
}
