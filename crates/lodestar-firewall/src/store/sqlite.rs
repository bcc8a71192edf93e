//! The embedded store: one SQLite file in the project's `.lodestar/`.
//!
//! Readers never wait for writers; writers come one after another. [`schema`] has tables and
//! settings, [`rows`] the way in and out, [`search`] how words find rows, [`writing`] what happens
//! within a transaction.

mod ledger;
mod rows;
mod schema;
mod search;
mod statements;
mod writing;

pub use ledger::SqliteLedger;

use std::path::Path;

use lodestar_core::id::BeliefId;
use rusqlite::{Connection, OpenFlags, Params, TransactionBehavior};

use super::{
    AppliedLog, ContextQuery, Disputes, HistoryRow, ListQuery, Store, StoreError, Tally, Verdict,
    Writing, columns, guard, query,
};
use crate::database::keep_private;
use crate::event::Contradiction;
use crate::row::StoredRow;
use statements::Statements;

/// Rows in a SQLite database.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    place: String,
    statements: Statements,
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError::database(error)
}

impl SqliteStore {
    /// Opens the store in this file, or begins one there that only its owner may read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (connection, place) = connect(path)?;
        Ok(Self::over(connection, place))
    }

    /// A store that lives as long as this value.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory().map_err(failed)?;
        let (connection, place) = prepared(connection, "memory".to_owned())?;
        Ok(Self::over(connection, place))
    }

    fn over(connection: Connection, place: String) -> Self {
        Self {
            connection,
            place,
            statements: Statements::new(),
        }
    }
}

/// A connection to this file, and where that is, for people.
fn connect(path: &Path) -> Result<(Connection, String), StoreError> {
    let place = path.display().to_string();
    let refused = |problem: String| StoreError::Open {
        place: place.clone(),
        problem,
    };
    keep_private(path).map_err(&refused)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| refused(error.to_string()))?;
    prepared(connection, place)
}

fn prepared(mut connection: Connection, place: String) -> Result<(Connection, String), StoreError> {
    schema::prepare(&mut connection).map_err(|refused| refused.at(&place))?;
    Ok((connection, place))
}

/// The rows of a statement that pass, at most so many.
fn select(
    connection: &Connection,
    statement: &str,
    params: impl Params,
    wanted: impl Fn(&StoredRow) -> bool,
    limit: usize,
) -> Result<Vec<StoredRow>, StoreError> {
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    let mut statement = connection.prepare_cached(statement).map_err(failed)?;
    let mut rows = statement.query(params).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let row = rows::read(row).map_err(failed)?;
        if wanted(&row) {
            found.push(row);
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

fn one(
    connection: &Connection,
    statement: &str,
    id: &BeliefId,
) -> Result<Option<StoredRow>, StoreError> {
    Ok(select(connection, statement, [id.to_string()], |_| true, 1)?.pop())
}

impl Store for SqliteStore {
    fn describe(&self) -> String {
        format!("SQLite, {}", self.place)
    }

    fn write(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Writing) -> Result<Verdict, StoreError>,
    ) -> Result<(), StoreError> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let mut writing = writing::Writer {
            transaction: &transaction,
            statements: &self.statements,
        };
        match guard::run(&mut writing, work)? {
            Verdict::Commit => transaction.commit().map_err(failed),
            Verdict::Rollback => transaction.rollback().map_err(failed),
        }
    }

    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        one(&self.connection, &self.statements.row, id)
    }

    fn rows_starting(&mut self, prefix: &str, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let params = (prefix, query::limit(limit));
        let statement = &self.statements.from_id;
        let mut rows = select(&self.connection, statement, params, |_| true, limit)?;
        rows.retain(|row| row.id.starts_with(prefix));
        Ok(rows)
    }

    fn context(&mut self, query: &ContextQuery) -> Result<Vec<StoredRow>, StoreError> {
        if query::is_void(query) {
            return Ok(Vec::new());
        }
        search::find(&mut self.connection, &self.statements, query)
    }

    fn list(&mut self, query: &ListQuery) -> Result<Vec<StoredRow>, StoreError> {
        let params = (
            query.truth.map(|word| word.as_str()),
            query.retrieval.map(|word| word.as_str()),
            query.security.map(|word| word.as_str()),
            query.freshness.map(|word| word.as_str()),
            &query.session,
        );
        let listed = |row: &StoredRow| query::is_listed(row, query);
        let statement = &self.statements.listed;
        select(&self.connection, statement, params, listed, query.limit)
    }

    fn disputes(
        &mut self,
        beliefs: &[BeliefId],
        limit: usize,
    ) -> Result<Vec<Disputes>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT against FROM contradictions WHERE belief = ?1
                 ORDER BY against DESC LIMIT ?2",
            )
            .map_err(failed)?;
        let mut found = Vec::new();
        for belief in beliefs {
            let params = (belief.to_string(), query::limit(limit.saturating_add(1)));
            let against = statement
                .query_map(params, |row| row.get::<_, String>(0))
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(failed)?;
            found.extend(query::disputes(*belief, &against, limit)?);
        }
        Ok(found)
    }

    fn history(&mut self, belief: &BeliefId) -> Result<Vec<HistoryRow>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT change, project, session, seq, leaf FROM history WHERE belief = ?1
                 ORDER BY revision",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map([belief.to_string()], rows::read_history)
            .map_err(failed)?;
        rows.map(|row| row.map_err(failed)?).collect()
    }

    fn scan(&mut self, after: Option<&str>, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        // No id is empty.
        let params = (after.unwrap_or_default(), query::limit(limit));
        let statement = &self.statements.behind_id;
        select(&self.connection, statement, params, |_| true, limit)
    }

    fn scan_contradictions(
        &mut self,
        after: Option<Contradiction>,
        limit: usize,
    ) -> Result<Vec<Contradiction>, StoreError> {
        let (belief, against) = match after {
            Some(after) => (after.belief.to_string(), after.against.to_string()),
            None => Default::default(),
        };
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT belief, against FROM contradictions WHERE (belief, against) > (?1, ?2)
                 ORDER BY belief, against LIMIT ?3",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map((belief, against, query::limit(limit)), |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(failed)?;
        rows.map(|row| row.map_err(failed).and_then(query::contradiction))
            .collect()
    }

    fn logs(&mut self) -> Result<Vec<AppliedLog>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT signer, project, session, next FROM logs
                 ORDER BY signer, project, session",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map([], |row| {
                let names: [String; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
                Ok((names, row.get(3)?))
            })
            .map_err(failed)?;
        rows.map(|row| {
            let ([signer, project, session], next) = row.map_err(failed)?;
            columns::applied(signer, &project, &session, next)
        })
        .collect()
    }

    fn tally(&mut self) -> Result<Vec<Tally>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT truth, retrieval, security, freshness, count(*) FROM beliefs
                 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map([], |row| {
                Ok(Tally {
                    truth: row.get(0)?,
                    retrieval: row.get(1)?,
                    security: row.get(2)?,
                    freshness: row.get(3)?,
                    rows: row.get::<_, i64>(4)?.cast_unsigned(),
                })
            })
            .map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }
}
