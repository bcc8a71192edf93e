//! Where beliefs are kept: one small trait, three stores, one conformance suite that all pass.
//!
//! A store is a projection of the log and holds nothing else. It decides nothing: it keeps rows,
//! finds them, and changes them in transactions that one writer at a time has for itself. What a
//! row is worth, its signature tells; which rows follow from which events, [`crate::fold`]. Beside the
//! rows, and apart from them, lies the ledger of spent confirmations.

mod columns;
mod guard;
mod ledger;
mod memory;
mod postgres;
pub(crate) mod query;
mod sqlite;

pub use memory::MemoryStore;
pub use postgres::{PostgresLedger, PostgresStore};
pub use sqlite::{SqliteLedger, SqliteStore};

use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::id::BeliefId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::event::{Change, Contradiction, LogName, LogPosition};
use crate::row::{Key, StoredRow};

/// Why a store could not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store cannot be opened.
    #[error("the belief store at `{place}` cannot be opened: {problem}")]
    Open {
        /// Which.
        place: String,
        /// Why.
        problem: String,
    },
    /// A newer program wrote it.
    #[error(
        "the belief store has schema version {found}; this program knows versions up to {known}: use the newer program, or rebuild the store with this one"
    )]
    TooNew {
        /// Its version.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// A row that is to be inserted is there, or one that is to be replaced is not, or changed meanwhile.
    #[error("belief `{id}` is not as expected in the store: {problem}")]
    Conflict {
        /// Which.
        id: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Work in a transaction went on after an error and asked to commit.
    #[error(
        "a transaction went on after the belief store had refused something; none of it was kept"
    )]
    PassedOver,
    /// The database refused.
    #[error("the belief store failed: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    fn database(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Database(error.into())
    }

    fn there_already(id: &str) -> Self {
        Self::Conflict {
            id: id.to_owned(),
            problem: "it is there already",
        }
    }

    fn not_before(id: &str) -> Self {
        Self::Conflict {
            id: id.to_owned(),
            problem: "it is not there with the revision before",
        }
    }

    fn changed_already(id: &str) -> Self {
        Self::Conflict {
            id: id.to_owned(),
            problem: "its history has a change with this revision already",
        }
    }
}

/// Whether a transaction takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All of it.
    Commit,
    /// Nothing of it.
    Rollback,
}

/// What goes into the planner's default context. Rows come newest first by arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextQuery {
    /// The scopes that a belief may have: those that contain the place asked about.
    pub scopes: Vec<String>,
    /// Words that all have to occur; none means all rows.
    pub words: Vec<String>,
    /// Observed at or after.
    pub not_before: Timestamp,
    /// At most this sensitive.
    pub ceiling: Sensitivity,
    /// How many.
    pub limit: usize,
}

/// What is listed past the context policy. Rows come newest first by arrival.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ListQuery {
    /// Only these scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Only where subject or statement has this text, letters of either case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containing: Option<String>,
    /// Only this truth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
    /// Only this retrieval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieval: Option<Retrieval>,
    /// Only this security.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// Only this freshness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness: Option<Freshness>,
    /// Only what this session adopted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How many.
    pub limit: usize,
}

/// One change of a belief, as history.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRow {
    /// What changed.
    pub change: Change,
    /// The event that says so.
    pub at: LogPosition,
}

/// What speaks against a belief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disputes {
    /// The belief.
    pub belief: BeliefId,
    /// The newest that speak against it.
    pub against: Vec<BeliefId>,
    /// Whether there are more.
    pub more: bool,
}

/// How far a log was applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppliedLog {
    /// The installation that wrote it, by key id.
    pub signer: String,
    /// Which.
    pub log: LogName,
    /// The first event that was not looked at yet.
    pub next: u64,
}

/// How many rows stand where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Tally {
    /// On truth.
    pub truth: String,
    /// On retrieval.
    pub retrieval: String,
    /// On security.
    pub security: String,
    /// On freshness.
    pub freshness: String,
    /// How many.
    pub rows: u64,
}

/// A belief store.
///
/// All stores give the same rows in the same order for the same calls.
pub trait Store: Send {
    /// What and where it is, for people.
    fn describe(&self) -> String;

    /// Runs `work` once, in a transaction that no other writer of this store interferes with.
    ///
    /// It takes effect as a whole, if `work` says [`Verdict::Commit`] and met no error on the way:
    /// work that passes over one is told so by [`StoreError::PassedOver`].
    fn write(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Writing) -> Result<Verdict, StoreError>,
    ) -> Result<(), StoreError>;

    /// One row.
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError>;

    /// Rows whose id starts so, in the order of ids.
    fn rows_starting(&mut self, prefix: &str, limit: usize) -> Result<Vec<StoredRow>, StoreError>;

    /// Rows for the default context: eligible ones only.
    fn context(&mut self, query: &ContextQuery) -> Result<Vec<StoredRow>, StoreError>;

    /// Rows for audits.
    fn list(&mut self, query: &ListQuery) -> Result<Vec<StoredRow>, StoreError>;

    /// What speaks against each of these, at most `limit` per belief; those without are left out.
    /// In the order asked for.
    fn disputes(&mut self, beliefs: &[BeliefId], limit: usize)
    -> Result<Vec<Disputes>, StoreError>;

    /// The changes of a belief, in their order.
    fn history(&mut self, belief: &BeliefId) -> Result<Vec<HistoryRow>, StoreError>;

    /// Rows in the order of their ids, from behind `after` on.
    fn scan(&mut self, after: Option<&str>, limit: usize) -> Result<Vec<StoredRow>, StoreError>;

    /// Contradictions in their order, from behind `after` on.
    fn scan_contradictions(
        &mut self,
        after: Option<Contradiction>,
        limit: usize,
    ) -> Result<Vec<Contradiction>, StoreError>;

    /// How far each log was applied, in the order of signer and name.
    fn logs(&mut self) -> Result<Vec<AppliedLog>, StoreError>;

    /// How many rows stand where, in the order of the words.
    fn tally(&mut self) -> Result<Vec<Tally>, StoreError>;
}

/// A store, within a transaction.
pub trait Writing {
    /// One row.
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError>;

    /// Supported and contradicted rows with this key, newest first.
    fn settled(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError>;

    /// Unverified rows with this key, newest first.
    fn unverified(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError>;

    /// Rows whose freshness changes at or before this moment, longest due first.
    fn due(&mut self, at: Timestamp, limit: usize) -> Result<Vec<StoredRow>, StoreError>;

    /// Adds rows; a row that is there already is a conflict.
    fn insert(&mut self, rows: &[StoredRow]) -> Result<(), StoreError>;

    /// Puts a row in the place of the one with the same id and the revision before; anything else
    /// that is there is a conflict.
    fn replace(&mut self, row: &StoredRow) -> Result<(), StoreError>;

    /// Takes the rows with these ids out, whatever they say, and their history.
    fn remove(&mut self, ids: &[&str]) -> Result<(), StoreError>;

    /// Adds to the history of a belief; a second change with the same revision is a conflict.
    fn add_history(&mut self, row: &HistoryRow) -> Result<(), StoreError>;

    /// Adds contradictions; those that are there stay.
    fn add_contradictions(&mut self, pairs: &[Contradiction]) -> Result<(), StoreError>;

    /// The first event of the log that was not looked at yet.
    fn next(&mut self, signer: &str, log: &LogName) -> Result<u64, StoreError>;

    /// Says that the log was looked at up to, and without, `next`.
    fn advance(&mut self, signer: &str, log: &LogName, next: u64) -> Result<(), StoreError>;

    /// Takes out everything that this installation's logs of a project gave: rows that they adopted,
    /// and rows that it signed and nobody's log here adopted; their history and contradictions; and
    /// how far the logs were applied.
    fn forget(&mut self, signer: &str, project: &str) -> Result<(), StoreError>;
}
