//! The ledger of spent confirmations in a PostgreSQL database.

use std::fmt;

use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, Consumption, LedgerError, Spent};

use super::{SCHEMA, connect, failed};
use crate::database::{Connection, Place};
use crate::store::StoreError;
use crate::store::ledger::{self, Entry};

/// Spent confirmations, in the schema of a [`PostgresStore`](crate::store::PostgresStore).
pub struct PostgresLedger {
    place: Place,
    client: Connection,
}

impl fmt::Debug for PostgresLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresLedger")
            .field(&self.place.shown)
            .finish()
    }
}

impl PostgresLedger {
    /// Connects as [`PostgresStore::connect`](crate::store::PostgresStore::connect) does.
    pub fn connect(url: &str, schema: Option<&str>) -> Result<Self, StoreError> {
        let place = Place::of(url, schema.unwrap_or(SCHEMA))?;
        let client = durable(&place)?;
        Ok(Self { place, client })
    }

    fn revive(&mut self) -> Result<(), StoreError> {
        if self.client.is_closed() {
            self.client = durable(&self.place)?;
        }
        Ok(())
    }
}

/// Whatever the server is set up with, what is spent waits for its disk.
fn durable(place: &Place) -> Result<Connection, StoreError> {
    let mut client = connect(place)?;
    client
        .batch_execute("SET synchronous_commit TO on")
        .map_err(failed)?;
    Ok(client)
}

impl ConsumeLedger for PostgresLedger {
    fn is_spent(&mut self, id: ConfirmationId) -> Result<bool, LedgerError> {
        self.revive()?;
        let text = "SELECT EXISTS (SELECT 1 FROM confirmations WHERE id = $1)";
        let found = self.client.query_one(text, &[&id.to_string()]);
        Ok(found.map_err(failed)?.get(0))
    }

    fn consume(&mut self, consumption: &Consumption) -> Result<Spent, LedgerError> {
        self.revive()?;
        let entry = Entry::from(consumption);
        let text = "INSERT INTO confirmations (id, statement, operator, session, action, spent_at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING";
        let inserted = self.client.execute(
            text,
            &[
                &entry.id,
                &entry.statement,
                &entry.operator,
                &entry.session,
                &entry.action,
                &entry.spent_at,
            ],
        );
        Ok(ledger::spent(inserted.map_err(failed)?))
    }
}
