//! Machines: what each is, and what was heard of it last.
//!
//! A level is not set here but by [`super::levels::set_level`], a key by [`super::keys::set_key`], that a challenge
//! was passed by [`super::challenges::pass`], and when the device last attested by
//! [`super::attestations::add`]: the database refuses every other way.

use lodestar_core::device::{DeviceLevel, Standing};
use lodestar_core::id::{AccountId, DeviceId};
use lodestar_core::key::PublicKey;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Which.
    pub id: DeviceId,
    /// Whose.
    pub account: AccountId,
    /// Its name, unlike any other's in the account.
    pub name: String,
    /// What it signs statements with; none yet, if it was registered without.
    pub key: Option<PublicKey>,
    /// What it signs its logs with; there is one if and only if there is a key.
    pub log_key: Option<PublicKey>,
    /// How far it is trusted.
    pub level: DeviceLevel,
    /// Since when.
    pub level_since: Timestamp,
    /// When it was made known.
    pub registered_at: Timestamp,
    /// When it signed a challenge with the key that it has.
    pub challenge_passed_at: Option<Timestamp>,
    /// When it was last heard of.
    pub last_heartbeat: Option<Timestamp>,
    /// Since when heartbeats have come without a gap.
    pub continuous_since: Option<Timestamp>,
    /// When the last attestation came that counted.
    pub last_attested: Option<Timestamp>,
    /// Since when it may have been somebody else's, as its owner said when revoking it.
    pub compromised_since: Option<Timestamp>,
    /// Whether its owner told it to stop signing.
    pub paused: bool,
    /// What it last said of its gateway; never authorises anything.
    pub gateway_status: String,
    /// What it last said it runs.
    pub daemon_version: String,
}

impl Device {
    /// What the rules of trust look at.
    pub fn standing(&self) -> Standing {
        Standing {
            challenge_passed: self.challenge_passed_at.is_some(),
            continuous_since: self.continuous_since,
            last_attested: self.last_attested,
            last_heartbeat: self.last_heartbeat,
            level: self.level,
            level_since: self.level_since,
        }
    }
}

impl Columns for Device {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            name: row.read()?,
            key: row.read()?,
            log_key: row.read()?,
            level: row.read()?,
            level_since: row.read()?,
            registered_at: row.read()?,
            challenge_passed_at: row.read()?,
            last_heartbeat: row.read()?,
            continuous_since: row.read()?,
            last_attested: row.read()?,
            compromised_since: row.read()?,
            paused: row.read()?,
            gateway_status: row.read()?,
            daemon_version: row.read()?,
        })
    }
}

/// What a device is when it is made known: pending, without a key, and never heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDevice {
    /// Which.
    pub id: DeviceId,
    /// Whose.
    pub account: AccountId,
    /// Its name.
    pub name: String,
    /// When it was made known.
    pub registered_at: Timestamp,
}

/// What a heartbeat changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatSeen<'a> {
    /// The device.
    pub device: DeviceId,
    /// When it came.
    pub at: Timestamp,
    /// Since when they have come without a gap, this one included.
    pub continuous_since: Option<Timestamp>,
    /// What it says of its gateway.
    pub gateway_status: &'a str,
    /// What it says it runs.
    pub daemon_version: &'a str,
}

/// Adds a device with its first transition; `false` if there is one with this id, or this name in the account.
pub fn add(sql: &mut dyn Sql, device: &NewDevice) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO devices (id, account, name, level_since, registered_at)
         VALUES ($1, $2, $3, $4, $4) ON CONFLICT DO NOTHING",
        values![device.id, device.account, &device.name, device.registered_at],
    )
}

/// One device.
pub fn get(sql: &mut dyn Sql, id: DeviceId) -> Result<Option<Device>, StoreError> {
    one(
        sql,
        "SELECT id, account, name, key, log_key, level, level_since, registered_at, challenge_passed_at,
         last_heartbeat, continuous_since, last_attested, compromised_since, paused, gateway_status, daemon_version
         FROM devices WHERE id = $1",
        values![id],
    )
}

/// Devices of an account in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<DeviceId>,
    at_most: usize,
) -> Result<Vec<Device>, StoreError> {
    all(
        sql,
        "SELECT id, account, name, key, log_key, level, level_since, registered_at, challenge_passed_at,
         last_heartbeat, continuous_since, last_attested, compromised_since, paused, gateway_status, daemon_version
         FROM devices WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}

/// Devices of every account on this level in the order of their ids, from behind `after` on: for sweeps.
pub fn at_level(
    sql: &mut dyn Sql,
    level: DeviceLevel,
    after: Option<DeviceId>,
    at_most: usize,
) -> Result<Vec<Device>, StoreError> {
    all(
        sql,
        "SELECT id, account, name, key, log_key, level, level_since, registered_at, challenge_passed_at,
         last_heartbeat, continuous_since, last_attested, compromised_since, paused, gateway_status, daemon_version
         FROM devices WHERE level = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[level.into(), after.into(), limit(at_most)],
    )
}

/// Notes a heartbeat; `false` if there is no such device.
pub fn note_heartbeat(sql: &mut dyn Sql, beat: &HeartbeatSeen<'_>) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE devices SET last_heartbeat = $1, continuous_since = $2, gateway_status = $3, daemon_version = $4
         WHERE id = $5",
        values![
            beat.at,
            beat.continuous_since,
            beat.gateway_status,
            beat.daemon_version,
            beat.device
        ],
    )?;
    Ok(changed > 0)
}

/// Keeps what a standing says of heartbeats; `false` if there is no such device. Levels move by
/// [`super::levels::set_level`].
pub fn note_standing(
    sql: &mut dyn Sql,
    device: DeviceId,
    standing: &Standing,
) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE devices SET last_heartbeat = $1, continuous_since = $2 WHERE id = $3",
        values![standing.last_heartbeat, standing.continuous_since, device],
    )?;
    Ok(changed > 0)
}

/// Notes since when a device that is revoked may have been somebody else's; `false` if there is no such device.
pub fn set_compromised_since(
    sql: &mut dyn Sql,
    device: DeviceId,
    since: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE devices SET compromised_since = $1 WHERE id = $2",
        values![since, device],
    )?;
    Ok(changed > 0)
}

/// Pauses a device, or lets it go on; `false` if there is no such device.
pub fn set_paused(sql: &mut dyn Sql, device: DeviceId, paused: bool) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE devices SET paused = $1 WHERE id = $2",
        values![paused, device],
    )?;
    Ok(changed > 0)
}
