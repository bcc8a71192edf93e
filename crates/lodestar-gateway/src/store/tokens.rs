//! What somebody may show: random text, of which only the hash is kept.

use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, DeviceId, TokenId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::words::words;
use super::{Row, Sql, StoreError};

words! {
    /// What a token opens.
    pub enum TokenKind: "token kind" {
        /// Reads what the account has, registers, hands in orders that the owner signed.
        Owner = "owner",
        /// Registers one device, once.
        Enrol = "enrol",
        /// What one device may do, and nothing else.
        Device = "device",
    }
}

/// A token, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Which.
    pub id: TokenId,
    /// Whose.
    pub account: AccountId,
    /// What it opens.
    pub kind: TokenKind,
    /// The device that it is for; there is one if and only if the kind is [`TokenKind::Device`].
    pub device: Option<DeviceId>,
    /// SHA-256 of its text.
    pub hash: Digest,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it opens nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was spent, for those that can be.
    pub used_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Whether it opens something at this moment.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none()
            && self.used_at.is_none()
            && self.expires_at.is_none_or(|end| now < end)
    }
}

impl Columns for Token {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            kind: row.read()?,
            device: row.read()?,
            hash: row.read()?,
            created_at: row.read()?,
            expires_at: row.read()?,
            used_at: row.read()?,
            revoked_at: row.read()?,
        })
    }
}

/// Adds a token, neither used nor revoked; `false` if there is one with this id or hash.
pub fn add(sql: &mut dyn Sql, token: &Token) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO tokens (id, account, kind, device, hash, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        values![
            token.id,
            token.account,
            token.kind,
            token.device,
            token.hash,
            token.created_at,
            token.expires_at
        ],
    )
}

/// The token with this hash. Whose it is shows only then, so this is asked as the server.
pub fn by_hash(sql: &mut dyn Sql, hash: Digest) -> Result<Option<Token>, StoreError> {
    one(
        sql,
        "SELECT id, account, kind, device, hash, created_at, expires_at, used_at, revoked_at
         FROM tokens WHERE hash = $1",
        values![hash],
    )
}

/// Tokens of an account in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<TokenId>,
    at_most: usize,
) -> Result<Vec<Token>, StoreError> {
    all(
        sql,
        "SELECT id, account, kind, device, hash, created_at, expires_at, used_at, revoked_at FROM tokens
         WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}

/// Spends a token; `false` if it was spent or revoked before.
pub fn spend(sql: &mut dyn Sql, id: TokenId, at: Timestamp) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE tokens SET used_at = $1 WHERE id = $2 AND used_at IS NULL AND revoked_at IS NULL",
        values![at, id],
    )?;
    Ok(changed > 0)
}

/// Takes a token of this account back; `false` if there is none, or it was before.
pub fn revoke(
    sql: &mut dyn Sql,
    account: AccountId,
    id: TokenId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql.execute(
        "UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND account = $3 AND revoked_at IS NULL",
        values![at, id, account],
    )?;
    Ok(changed > 0)
}

/// Takes all tokens of a device back; how many.
pub fn revoke_of_device(
    sql: &mut dyn Sql,
    device: DeviceId,
    at: Timestamp,
) -> Result<u64, StoreError> {
    sql.execute(
        "UPDATE tokens SET revoked_at = $1 WHERE device = $2 AND revoked_at IS NULL",
        values![at, device],
    )
}
