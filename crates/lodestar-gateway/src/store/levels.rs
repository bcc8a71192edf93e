//! How far devices are trusted: each move, and what is behind it.

use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel};
use lodestar_core::digest::Digest;
use lodestar_core::id::DeviceId;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A move of a device, or a rotation that left it where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The device.
    pub device: DeviceId,
    /// Where it stood; nowhere, before it was registered.
    pub from: Option<DeviceLevel>,
    /// Where it stands then.
    pub to: DeviceLevel,
    /// What happened.
    pub event: DeviceEvent,
    /// In whose name.
    pub actor: DeviceActor,
    /// When, by the server's clock.
    pub at: Timestamp,
    /// What is behind it, in words.
    pub cause: String,
    /// The owner's word; there is one wherever the owner acts, but for the registration.
    pub order: Option<Digest>,
}

impl Columns for Transition {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            device: row.read()?,
            from: row.read()?,
            to: row.read()?,
            event: row.read()?,
            actor: row.read()?,
            at: row.read()?,
            cause: row.read()?,
            order: row.read()?,
        })
    }
}

/// Records a transition, with which the level moves: the two are one.
///
/// Refused by the database if the device does not stand at `from`, if the table of moves has no such row, if the
/// owner is said to act without an order, or if what the level needs is not there: a key that passed its challenge
/// for `approved`; heartbeats and an attestation that counted for `trusted`. A registration and a rotation record
/// themselves: see [`super::devices::add`] and [`super::keys::set_key`].
pub fn set_level(sql: &mut dyn Sql, transition: &Transition) -> Result<(), StoreError> {
    let Transition {
        device,
        from,
        to,
        event,
        actor,
        at,
        cause,
        order,
    } = transition;
    sql.execute(
        "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        values![*device, *from, *to, *event, *actor, *at, cause, *order],
    )
    .map(drop)
}

/// What happened to a device, in its order.
pub fn history(sql: &mut dyn Sql, device: DeviceId) -> Result<Vec<Transition>, StoreError> {
    all(
        sql,
        "SELECT device, from_level, to_level, event, actor, at, cause, order_digest FROM device_transitions
         WHERE device = $1 ORDER BY n",
        values![device],
    )
}
