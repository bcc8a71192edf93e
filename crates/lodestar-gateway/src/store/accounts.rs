//! Whoever owns devices, agents and runs.

use lodestar_core::id::AccountId;
use lodestar_core::key::PublicKey;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Which.
    pub id: AccountId,
    /// Its name, unlike any other's.
    pub name: String,
    /// What its owner signs orders with.
    pub owner_key: PublicKey,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Columns for Account {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            name: row.read()?,
            owner_key: row.read()?,
            created_at: row.read()?,
        })
    }
}

/// Adds an account; `false` if there is one with this id or name.
pub fn add(sql: &mut dyn Sql, account: &Account) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO accounts (id, name, owner_key, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
        values![account.id, &account.name, account.owner_key, account.created_at],
    )
}

/// One account.
pub fn get(sql: &mut dyn Sql, id: AccountId) -> Result<Option<Account>, StoreError> {
    one(
        sql,
        "SELECT id, name, owner_key, created_at FROM accounts WHERE id = $1",
        values![id],
    )
}

/// The account of this name.
pub fn by_name(sql: &mut dyn Sql, name: &str) -> Result<Option<Account>, StoreError> {
    one(
        sql,
        "SELECT id, name, owner_key, created_at FROM accounts WHERE name = $1",
        values![name],
    )
}

/// Accounts in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    after: Option<AccountId>,
    at_most: usize,
) -> Result<Vec<Account>, StoreError> {
    all(
        sql,
        "SELECT id, name, owner_key, created_at FROM accounts
         WHERE id > COALESCE(CAST($1 AS TEXT), '') ORDER BY id LIMIT $2",
        &[after.into(), limit(at_most)],
    )
}
