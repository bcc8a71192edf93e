//! A transaction of the SQLite store.

use lodestar_core::id::BeliefId;
use lodestar_core::time::Timestamp;
use rusqlite::{ErrorCode, OptionalExtension, Params, Transaction};

use super::{Statements, failed, one, rows, search, select};
use crate::event::{Contradiction, LogName};
use crate::row::{Key, StoredRow};
use crate::store::query::{self, Indexed};
use crate::store::{HistoryRow, StoreError, Writing};

pub(super) struct Writer<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(super) statements: &'a Statements,
}

/// `phase` of the rows that [`Writing::settled`] and [`Writing::unverified`] give.
const SETTLED: u8 = 1;
const UNVERIFIED: u8 = 0;

impl Writer<'_> {
    fn execute(&self, statement: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.transaction.prepare_cached(statement)?.execute(params)
    }

    fn in_phase(&self, key: &Key, phase: u8, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let params = (
            key.hash,
            phase,
            &key.scope,
            &key.subject,
            &key.relation,
            query::limit(limit),
        );
        select(
            self.transaction,
            &self.statements.in_phase,
            params,
            |_| true,
            limit,
        )
    }

    /// The arrival and the words of the row that is to be replaced.
    fn before(&self, row: &StoredRow) -> Result<Option<(i64, Option<Indexed>)>, StoreError> {
        let mut statement = self
            .transaction
            .prepare_cached("SELECT n FROM beliefs WHERE id = ?1 AND revision = ?2")
            .map_err(failed)?;
        let n: Option<i64> = statement
            .query_row((&row.id, row.revision - 1), |found| found.get(0))
            .optional()
            .map_err(failed)?;
        let Some(n) = n else { return Ok(None) };
        let found = select(
            self.transaction,
            &self.statements.row,
            [&row.id],
            |_| true,
            1,
        )?;
        Ok(found.first().map(|before| (n, Indexed::of(before))))
    }
}

fn is_double(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

impl Writing for Writer<'_> {
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        one(self.transaction, &self.statements.row, id)
    }

    fn settled(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.in_phase(key, SETTLED, limit)
    }

    fn unverified(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.in_phase(key, UNVERIFIED, limit)
    }

    fn due(&mut self, at: Timestamp, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let params = (at.unix_micros(), query::limit(limit));
        select(
            self.transaction,
            &self.statements.due,
            params,
            |_| true,
            limit,
        )
    }

    fn insert(&mut self, rows: &[StoredRow]) -> Result<(), StoreError> {
        let mut statement = self
            .transaction
            .prepare_cached(&self.statements.insert)
            .map_err(failed)?;
        for row in rows {
            let n = statement.insert(&rows::values(row)[..]).map_err(|error| {
                match is_double(&error) {
                    true => StoreError::there_already(&row.id),
                    false => failed(error),
                }
            })?;
            if let Some(indexed) = Indexed::of(row) {
                search::add(self.transaction, n, &indexed)?;
            }
        }
        search::settle(self.transaction)
    }

    fn replace(&mut self, row: &StoredRow) -> Result<(), StoreError> {
        let Some((n, before)) = self.before(row)? else {
            return Err(StoreError::not_before(&row.id));
        };
        let changed = self
            .execute(&self.statements.update, &rows::values(row)[..])
            .map_err(failed)?;
        if changed != 1 {
            return Err(StoreError::not_before(&row.id));
        }
        let after = Indexed::of(row);
        if before != after {
            if before.is_some() {
                search::remove(self.transaction, n)?;
            }
            if let Some(indexed) = after {
                search::add(self.transaction, n, &indexed)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, ids: &[&str]) -> Result<(), StoreError> {
        for id in ids {
            let n: Option<i64> = self
                .transaction
                .prepare_cached("SELECT n FROM beliefs WHERE id = ?1")
                .and_then(|mut statement| statement.query_row([id], |row| row.get(0)).optional())
                .map_err(failed)?;
            if let Some(n) = n {
                search::remove(self.transaction, n)?;
                self.execute("DELETE FROM beliefs WHERE n = ?1", [n])
                    .map_err(failed)?;
            }
            self.execute("DELETE FROM history WHERE belief = ?1", [id])
                .map_err(failed)?;
        }
        Ok(())
    }

    fn add_history(&mut self, row: &HistoryRow) -> Result<(), StoreError> {
        let change = serde_json::to_string(&row.change).map_err(StoreError::database)?;
        let belief = row.change.belief.to_string();
        let params = (
            &belief,
            query::revision(row.change.revision),
            change,
            row.at.log.project.as_str(),
            row.at.log.session.as_str(),
            row.at.seq.cast_signed(),
            row.at.leaf.as_bytes(),
        );
        let statement =
            "INSERT INTO history (belief, revision, change, project, session, seq, leaf)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        match self.execute(statement, params) {
            Ok(_) => Ok(()),
            Err(error) if is_double(&error) => Err(StoreError::changed_already(&belief)),
            Err(error) => Err(failed(error)),
        }
    }

    fn add_contradictions(&mut self, pairs: &[Contradiction]) -> Result<(), StoreError> {
        let statement = "INSERT INTO contradictions (belief, against) VALUES (?1, ?2)
             ON CONFLICT DO NOTHING";
        for pair in pairs {
            let params = [pair.belief.to_string(), pair.against.to_string()];
            self.execute(statement, params).map_err(failed)?;
        }
        Ok(())
    }

    fn next(&mut self, signer: &str, log: &LogName) -> Result<u64, StoreError> {
        let mut statement = self
            .transaction
            .prepare_cached(
                "SELECT next FROM logs WHERE signer = ?1 AND project = ?2 AND session = ?3",
            )
            .map_err(failed)?;
        let place = (signer, log.project.as_str(), log.session.as_str());
        let next = statement
            .query_row(place, |row| row.get::<_, i64>(0))
            .optional()
            .map_err(failed)?;
        Ok(next.unwrap_or_default().cast_unsigned())
    }

    fn advance(&mut self, signer: &str, log: &LogName, next: u64) -> Result<(), StoreError> {
        let (project, session) = (log.project.as_str(), log.session.as_str());
        let statement = "INSERT INTO logs (signer, project, session, next) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET next = excluded.next";
        self.execute(statement, (signer, project, session, next.cast_signed()))
            .map(drop)
            .map_err(failed)
    }

    fn forget(&mut self, signer: &str, project: &str) -> Result<(), StoreError> {
        let own = (signer, project);
        self.transaction
            .execute_batch("CREATE TEMP TABLE gone (id TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID")
            .and_then(|()| {
                self.execute(
                    "INSERT INTO temp.gone SELECT id, n FROM beliefs WHERE project = ?2 AND
                     (session IN (SELECT session FROM logs WHERE signer = ?1 AND project = ?2)
                      OR (signer = ?1 AND session NOT IN
                         (SELECT session FROM logs WHERE signer <> ?1 AND project = ?2)))",
                    own,
                )?;
                self.execute("DELETE FROM logs WHERE signer = ?1 AND project = ?2", own)?;
                self.transaction.execute_batch(
                    "DELETE FROM history WHERE belief IN (SELECT id FROM temp.gone);
                     DELETE FROM contradictions WHERE belief IN (SELECT id FROM temp.gone)
                         OR against IN (SELECT id FROM temp.gone);
                     DELETE FROM beliefs WHERE id IN (SELECT id FROM temp.gone);
                     DROP TABLE temp.gone;",
                )
            })
            .map_err(failed)?;
        search::make_again(self.transaction)
    }
}
