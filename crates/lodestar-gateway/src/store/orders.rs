//! What owners ordered: each statement once and for good, so that none is obeyed twice.

use lodestar_core::digest::Digest;
use lodestar_core::id::AccountId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, insert, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// An order or a rotation that an owner signed, and that was obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRow {
    /// SHA-256 of the statement. What was done by it names it.
    pub digest: Digest,
    /// Whose.
    pub account: AccountId,
    /// What was ordered, as one word.
    pub kind: String,
    /// The statement's nonce.
    pub nonce: Nonce,
    /// When it came.
    pub received_at: Timestamp,
}

impl Columns for OrderRow {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            digest: row.read()?,
            account: row.read()?,
            kind: row.read()?,
            nonce: row.read()?,
            received_at: row.read()?,
        })
    }
}

/// Keeps an order; `false` if it, or its nonce, came before from this account.
pub fn add(sql: &mut dyn Sql, order: &OrderRow) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO orders (digest, account, kind, nonce, received_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        values![
            order.digest,
            order.account,
            &order.kind,
            order.nonce,
            order.received_at
        ],
    )
}

/// One of them.
pub fn get(sql: &mut dyn Sql, digest: Digest) -> Result<Option<OrderRow>, StoreError> {
    one(
        sql,
        "SELECT digest, account, kind, nonce, received_at FROM orders WHERE digest = $1",
        values![digest],
    )
}
