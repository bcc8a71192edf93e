//! What makes every transaction all or nothing, also for work that passes over an error.
//!
//! Databases differ in what is left after an error: one has kept the rows before it, the other takes
//! no further statement and answers a commit by rolling back in silence.

use lodestar_core::id::BeliefId;
use lodestar_core::time::Timestamp;

use super::{HistoryRow, StoreError, Verdict, Writing};
use crate::event::{Contradiction, LogName};
use crate::row::{Key, StoredRow};

/// Runs work in an open transaction and says whether to commit.
pub(super) fn run(
    transaction: &mut dyn Writing,
    work: &mut dyn FnMut(&mut dyn Writing) -> Result<Verdict, StoreError>,
) -> Result<Verdict, StoreError> {
    let mut guarded = Guarded {
        transaction,
        failed: false,
    };
    match work(&mut guarded)? {
        Verdict::Commit if guarded.failed => Err(StoreError::PassedOver),
        verdict => Ok(verdict),
    }
}

struct Guarded<'a> {
    transaction: &'a mut dyn Writing,
    failed: bool,
}

impl Guarded<'_> {
    fn note<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        self.failed |= outcome.is_err();
        outcome
    }
}

impl Writing for Guarded<'_> {
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        let outcome = self.transaction.row(id);
        self.note(outcome)
    }

    fn settled(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let outcome = self.transaction.settled(key, limit);
        self.note(outcome)
    }

    fn unverified(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let outcome = self.transaction.unverified(key, limit);
        self.note(outcome)
    }

    fn due(&mut self, at: Timestamp, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let outcome = self.transaction.due(at, limit);
        self.note(outcome)
    }

    fn insert(&mut self, rows: &[StoredRow]) -> Result<(), StoreError> {
        let outcome = self.transaction.insert(rows);
        self.note(outcome)
    }

    fn replace(&mut self, row: &StoredRow) -> Result<(), StoreError> {
        let outcome = self.transaction.replace(row);
        self.note(outcome)
    }

    fn remove(&mut self, ids: &[&str]) -> Result<(), StoreError> {
        let outcome = self.transaction.remove(ids);
        self.note(outcome)
    }

    fn add_history(&mut self, row: &HistoryRow) -> Result<(), StoreError> {
        let outcome = self.transaction.add_history(row);
        self.note(outcome)
    }

    fn add_contradictions(&mut self, pairs: &[Contradiction]) -> Result<(), StoreError> {
        let outcome = self.transaction.add_contradictions(pairs);
        self.note(outcome)
    }

    fn next(&mut self, signer: &str, log: &LogName) -> Result<u64, StoreError> {
        let outcome = self.transaction.next(signer, log);
        self.note(outcome)
    }

    fn advance(&mut self, signer: &str, log: &LogName, next: u64) -> Result<(), StoreError> {
        let outcome = self.transaction.advance(signer, log, next);
        self.note(outcome)
    }

    fn forget(&mut self, signer: &str, project: &str) -> Result<(), StoreError> {
        let outcome = self.transaction.forget(signer, project);
        self.note(outcome)
    }
}
