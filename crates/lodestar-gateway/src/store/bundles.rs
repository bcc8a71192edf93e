//! Logs of runs that were sent here. The bytes lie in the data directory, under their digest.

use lodestar_core::digest::Digest;
use lodestar_core::id::RunId;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, count, insert, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleRow {
    /// Of which run.
    pub run: RunId,
    /// SHA-256 of its bytes.
    pub digest: Digest,
    /// How many.
    pub bytes: u64,
    /// The root that its log is said to have.
    pub root: Digest,
    /// The events that its log is said to have.
    pub size: u64,
    /// When it came.
    pub received_at: Timestamp,
}

impl Columns for BundleRow {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            run: row.read()?,
            digest: row.read()?,
            bytes: row.read()?,
            root: row.read()?,
            size: row.read()?,
            received_at: row.read()?,
        })
    }
}

/// Keeps a bundle; `false` if this run has it already.
pub fn add(sql: &mut dyn Sql, bundle: &BundleRow) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO bundles (run, digest, bytes, root, size, received_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT DO NOTHING",
        values![
            bundle.run,
            bundle.digest,
            bundle.bytes,
            bundle.root,
            bundle.size,
            bundle.received_at
        ],
    )
}

/// The bundle of a run with this digest.
pub fn get(sql: &mut dyn Sql, run: RunId, digest: Digest) -> Result<Option<BundleRow>, StoreError> {
    one(
        sql,
        "SELECT run, digest, bytes, root, size, received_at FROM bundles WHERE run = $1 AND digest = $2",
        values![run, digest],
    )
}

/// Whether any run has a bundle with this digest.
pub fn is_known(sql: &mut dyn Sql, digest: Digest) -> Result<bool, StoreError> {
    let found = count(
        sql,
        "SELECT count(*) FROM bundles WHERE digest = $1",
        values![digest],
    )?;
    Ok(found > 0)
}

/// The bundles of a run, oldest first.
pub fn of_run(sql: &mut dyn Sql, run: RunId) -> Result<Vec<BundleRow>, StoreError> {
    all(
        sql,
        "SELECT run, digest, bytes, root, size, received_at FROM bundles WHERE run = $1
         ORDER BY received_at, digest",
        values![run],
    )
}
