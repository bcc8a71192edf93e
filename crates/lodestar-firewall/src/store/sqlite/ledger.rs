//! The ledger of spent confirmations in a SQLite file.

use std::path::Path;

use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, Consumption, LedgerError, Spent};
use rusqlite::Connection;

use super::{connect, failed};
use crate::store::StoreError;
use crate::store::ledger::{self, Entry};

/// Spent confirmations, in the file of a [`SqliteStore`](crate::store::SqliteStore).
#[derive(Debug)]
pub struct SqliteLedger {
    connection: Connection,
}

impl SqliteLedger {
    /// Opens the ledger in this file, or begins one there that only its owner may read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (connection, _) = connect(path)?;
        // What is spent must stay spent after a power cut, so that each commit waits for the disk.
        connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(failed)?;
        Ok(Self { connection })
    }
}

impl ConsumeLedger for SqliteLedger {
    fn is_spent(&mut self, id: ConfirmationId) -> Result<bool, LedgerError> {
        let text = "SELECT EXISTS (SELECT 1 FROM confirmations WHERE id = ?1)";
        let found = self.connection.prepare_cached(text);
        let found = found.and_then(|mut of| of.query_row([id.to_string()], |row| row.get(0)));
        found.map_err(|error| failed(error).into())
    }

    fn consume(&mut self, consumption: &Consumption) -> Result<Spent, LedgerError> {
        let entry = Entry::from(consumption);
        let text = "INSERT INTO confirmations (id, statement, operator, session, action, spent_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO NOTHING";
        let values = (
            &entry.id,
            &entry.statement,
            &entry.operator,
            &entry.session,
            &entry.action,
            entry.spent_at,
        );
        let inserted = self.connection.prepare_cached(text);
        let inserted = inserted.and_then(|mut of| of.execute(values));
        inserted
            .map(|rows| ledger::spent(rows as u64))
            .map_err(|error| failed(error).into())
    }
}
