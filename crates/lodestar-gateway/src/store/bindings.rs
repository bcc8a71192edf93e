//! Which runners are on which devices, by the owner's word.

use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, DeviceId, RunnerId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A runner on a device, for as long as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Whose.
    pub account: AccountId,
    /// The device.
    pub device: DeviceId,
    /// The runner.
    pub runner: RunnerId,
    /// Since when.
    pub bound_at: Timestamp,
    /// Until when; not yet, while it is active.
    pub unbound_at: Option<Timestamp>,
    /// The owner's word.
    pub order: Digest,
}

impl Columns for Binding {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            account: row.read()?,
            device: row.read()?,
            runner: row.read()?,
            bound_at: row.read()?,
            unbound_at: row.read()?,
            order: row.read()?,
        })
    }
}

/// Binds; `false` if the two are bound already.
pub fn bind(sql: &mut dyn Sql, binding: &Binding) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        values![
            binding.account,
            binding.device,
            binding.runner,
            binding.bound_at,
            binding.order
        ],
    )
}

/// Unbinds; `false` if the two are not bound.
pub fn unbind(
    sql: &mut dyn Sql,
    device: DeviceId,
    runner: RunnerId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE bindings SET unbound_at = $1 WHERE device = $2 AND runner = $3 AND unbound_at IS NULL",
        values![at, device, runner],
    )?;
    Ok(changed > 0)
}

/// The active binding of the two.
pub fn active(
    sql: &mut dyn Sql,
    device: DeviceId,
    runner: RunnerId,
) -> Result<Option<Binding>, StoreError> {
    one(
        sql,
        "SELECT account, device, runner, bound_at, unbound_at, order_digest FROM bindings
         WHERE device = $1 AND runner = $2 AND unbound_at IS NULL",
        values![device, runner],
    )
}

/// All bindings of a device, oldest first.
pub fn of_device(sql: &mut dyn Sql, device: DeviceId) -> Result<Vec<Binding>, StoreError> {
    all(
        sql,
        "SELECT account, device, runner, bound_at, unbound_at, order_digest FROM bindings
         WHERE device = $1 ORDER BY n",
        values![device],
    )
}
