//! Agents of an account, in whose name runs are made.

use lodestar_core::id::{AccountId, ContenderId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Which.
    pub id: ContenderId,
    /// Whose.
    pub account: AccountId,
    /// Its name, unlike any other's in the account.
    pub name: String,
    /// When it was made known.
    pub created_at: Timestamp,
}

impl Columns for Agent {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            name: row.read()?,
            created_at: row.read()?,
        })
    }
}

/// Adds an agent; `false` if there is one with this id, or this name in the account.
pub fn add(sql: &mut dyn Sql, agent: &Agent) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO agents (id, account, name, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
        values![agent.id, agent.account, &agent.name, agent.created_at],
    )
}

/// One agent.
pub fn get(sql: &mut dyn Sql, id: ContenderId) -> Result<Option<Agent>, StoreError> {
    one(
        sql,
        "SELECT id, account, name, created_at FROM agents WHERE id = $1",
        values![id],
    )
}

/// Agents of an account in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<ContenderId>,
    at_most: usize,
) -> Result<Vec<Agent>, StoreError> {
    all(
        sql,
        "SELECT id, account, name, created_at FROM agents
         WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}
