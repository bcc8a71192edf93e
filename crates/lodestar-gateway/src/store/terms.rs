//! What owners registered runs to be judged by.

use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, TermsId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// Terms, as they were registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermsRow {
    /// Which.
    pub id: TermsId,
    /// Whose.
    pub account: AccountId,
    /// SHA-256 of the document, which the owner signed.
    pub digest: Digest,
    /// The terms themselves.
    pub document: String,
    /// When.
    pub registered_at: Timestamp,
    /// The owner's word.
    pub order: Digest,
}

impl Columns for TermsRow {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            digest: row.read()?,
            document: row.read()?,
            registered_at: row.read()?,
            order: row.read()?,
        })
    }
}

/// Registers terms; `false` if the account has some with this digest.
pub fn add(sql: &mut dyn Sql, terms: &TermsRow) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO terms (id, account, digest, document, registered_at, order_digest)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        values![
            terms.id,
            terms.account,
            terms.digest,
            &terms.document,
            terms.registered_at,
            terms.order
        ],
    )
}

/// One of them.
pub fn get(sql: &mut dyn Sql, id: TermsId) -> Result<Option<TermsRow>, StoreError> {
    one(
        sql,
        "SELECT id, account, digest, document, registered_at, order_digest FROM terms WHERE id = $1",
        values![id],
    )
}

/// Those of an account with this digest.
pub fn by_digest(
    sql: &mut dyn Sql,
    account: AccountId,
    digest: Digest,
) -> Result<Option<TermsRow>, StoreError> {
    one(
        sql,
        "SELECT id, account, digest, document, registered_at, order_digest FROM terms
         WHERE account = $1 AND digest = $2",
        values![account, digest],
    )
}

/// Terms without what they say, which may be long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermsEntry {
    /// Which.
    pub id: TermsId,
    /// SHA-256 of the document.
    pub digest: Digest,
    /// When they were registered.
    pub registered_at: Timestamp,
}

impl Columns for TermsEntry {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            digest: row.read()?,
            registered_at: row.read()?,
        })
    }
}

/// Those of an account in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<TermsId>,
    at_most: usize,
) -> Result<Vec<TermsEntry>, StoreError> {
    all(
        sql,
        "SELECT id, digest, registered_at FROM terms
         WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}
