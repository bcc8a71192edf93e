//! Which keys a device has and had. A key that was replaced stays known: it signed what it signed.

use lodestar_core::digest::Digest;
use lodestar_core::id::DeviceId;
use lodestar_core::key::PublicKey;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all};
use super::value::values;
use super::{Row, Sql, StoreError};

/// The keys of a device from one moment on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceKeys {
    /// The device.
    pub device: DeviceId,
    /// What it signs statements with.
    pub key: PublicKey,
    /// What it signs its logs with.
    pub log_key: PublicKey,
    /// Since when.
    pub at: Timestamp,
    /// The owner's word that replaced the keys before; none for the first.
    pub order: Option<Digest>,
}

impl Columns for DeviceKeys {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            device: row.read()?,
            key: row.read()?,
            log_key: row.read()?,
            at: row.read()?,
            order: row.read()?,
        })
    }
}

/// Gives a device its keys, or, with the owner's word, new ones in their place.
///
/// The first are for a pending device. A rotation is recorded as a transition with it: an approved or trusted device
/// is approved then; another stays where it is, and has to pass a challenge anew. Refused by the database for a key
/// that the device had before, and for a device that is gone for good.
pub fn set_key(sql: &mut dyn Sql, keys: &DeviceKeys) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO device_keys (device, key, log_key, at, order_digest) VALUES ($1, $2, $3, $4, $5)",
        values![keys.device, keys.key, keys.log_key, keys.at, keys.order],
    )
    .map(drop)
}

/// The keys of a device, oldest first.
pub fn history(sql: &mut dyn Sql, device: DeviceId) -> Result<Vec<DeviceKeys>, StoreError> {
    all(
        sql,
        "SELECT device, key, log_key, at, order_digest FROM device_keys WHERE device = $1 ORDER BY n",
        values![device],
    )
}
