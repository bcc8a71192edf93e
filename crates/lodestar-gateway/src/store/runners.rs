//! Programs on devices that make runs.

use lodestar_core::id::{AccountId, DeviceId, RunnerId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// Which.
    pub id: RunnerId,
    /// Whose.
    pub account: AccountId,
    /// Its name, unlike any other's in the account.
    pub name: String,
    /// When it was made known.
    pub created_at: Timestamp,
    /// When a device that it is bound to last said that it is alive.
    pub last_heartbeat: Option<Timestamp>,
}

impl Columns for Runner {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            name: row.read()?,
            created_at: row.read()?,
            last_heartbeat: row.read()?,
        })
    }
}

/// Adds a runner, never heard of; `false` if there is one with this id, or this name in the account.
pub fn add(sql: &mut dyn Sql, runner: &Runner) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO runners (id, account, name, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
        values![runner.id, runner.account, &runner.name, runner.created_at],
    )
}

/// One runner.
pub fn get(sql: &mut dyn Sql, id: RunnerId) -> Result<Option<Runner>, StoreError> {
    one(
        sql,
        "SELECT id, account, name, created_at, last_heartbeat FROM runners WHERE id = $1",
        values![id],
    )
}

/// Runners of an account in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<RunnerId>,
    at_most: usize,
) -> Result<Vec<Runner>, StoreError> {
    all(
        sql,
        "SELECT id, account, name, created_at, last_heartbeat FROM runners
         WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}

/// Notes that a device says the runner is alive; `false` if it is not bound to that device, and nothing is noted.
pub fn note_heartbeat(
    sql: &mut dyn Sql,
    device: DeviceId,
    runner: RunnerId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE runners SET last_heartbeat = $1 WHERE id = $2 AND EXISTS
         (SELECT 1 FROM bindings WHERE device = $3 AND runner = $2 AND unbound_at IS NULL)",
        values![at, runner, device],
    )?;
    Ok(changed > 0)
}
