//! Finding eligible rows by scope and words.
//!
//! The index is FTS5, which is made for few large additions: one per transaction would cost more than
//! the rows themselves. So words first wait in a small table, which every search looks through, and go
//! into the index by the hundreds.

use rusqlite::{Connection, OptionalExtension, Row, Rows, Transaction};

use super::{Statements, failed, rows};
use crate::row::StoredRow;
use crate::store::columns::{self, ELIGIBLE};
use crate::store::query::{self, Indexed};
use crate::store::{ContextQuery, StoreError};

/// Rows whose words may wait. Looking through so many takes about a tenth of a millisecond; going into
/// the index together, they cost a fraction of what they cost one by one.
const MAX_WAITING: i64 = 512;

/// Makes a row findable.
pub(super) fn add(to: &Transaction<'_>, n: i64, indexed: &Indexed) -> Result<(), StoreError> {
    to.prepare_cached("INSERT INTO waiting (n, words) VALUES (?1, ?2)")
        .and_then(|mut statement| statement.execute((n, indexed.joined())))
        .map(drop)
        .map_err(failed)
}

/// Makes the index again from the rows that are there: whatever was in it, for rows that are gone or
/// never were, is gone too.
pub(super) fn make_again(within: &Transaction<'_>) -> Result<(), StoreError> {
    within
        .execute_batch("INSERT INTO search (search) VALUES ('delete-all'); DELETE FROM waiting;")
        .map_err(failed)?;
    let eligible = format!(
        "SELECT {}, n FROM beliefs WHERE {ELIGIBLE} ORDER BY n",
        columns::list("")
    );
    let mut statement = within.prepare(&eligible).map_err(failed)?;
    let mut found = statement.query([]).map_err(failed)?;
    while let Some(row) = found.next().map_err(failed)? {
        let n = row.get("n").map_err(failed)?;
        let row = rows::read(row).map_err(failed)?;
        if let Some(indexed) = Indexed::of(&row) {
            add(within, n, &indexed)?;
        }
    }
    settle(within)
}

/// Lets a row be found no longer.
pub(super) fn remove(from: &Transaction<'_>, n: i64) -> Result<(), StoreError> {
    let delete = |statement: &str| from.prepare_cached(statement)?.execute([n]);
    let was_waiting = delete("DELETE FROM waiting WHERE n = ?1").map_err(failed)? > 0;
    if !was_waiting {
        delete("DELETE FROM search WHERE rowid = -?1").map_err(failed)?;
    }
    Ok(())
}

/// Moves what waits into the index, if it is enough to be worth it.
pub(super) fn settle(within: &Transaction<'_>) -> Result<(), StoreError> {
    let waiting: i64 = within
        .prepare_cached("SELECT count(*) FROM waiting")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(failed)?;
    if waiting < MAX_WAITING {
        return Ok(());
    }
    within
        .execute_batch(
            "INSERT INTO search (rowid, words) SELECT -n, words FROM waiting ORDER BY n DESC;
             DELETE FROM waiting;",
        )
        .map_err(failed)
}

/// The rows for a query that is not void, newest first.
pub(super) fn find(
    connection: &mut Connection,
    statements: &Statements,
    query: &ContextQuery,
) -> Result<Vec<StoredRow>, StoreError> {
    // Both tables as they are at one moment: a row may be on its way from one to the other.
    let snapshot = connection.transaction().map_err(failed)?;
    merged(&snapshot, statements, query).map_err(failed)
}

/// Arrivals that wait and have the words, newest first.
struct Waiting<'stmt> {
    rows: Rows<'stmt>,
    scopes: Vec<String>,
    words: &'stmt [String],
}

impl Waiting<'_> {
    fn next(&mut self) -> rusqlite::Result<Option<i64>> {
        while let Some(row) = self.rows.next()? {
            let indexed = row.get_ref(1)?.as_str().unwrap_or_default();
            // The scope comes first.
            let (scope, words) = indexed.split_once(' ').unwrap_or((indexed, ""));
            let has = |wanted: &String| words.split(' ').any(|word| word == wanted);
            if self.scopes.iter().any(|own| own == scope) && self.words.iter().all(has) {
                return row.get(0).map(Some);
            }
        }
        Ok(None)
    }
}

/// Rows of the index and rows that wait, in one order.
fn merged(
    snapshot: &Transaction<'_>,
    statements: &Statements,
    query: &ContextQuery,
) -> rusqlite::Result<Vec<StoredRow>> {
    let mut all_waiting =
        snapshot.prepare_cached("SELECT n, words FROM waiting ORDER BY n DESC")?;
    let mut waiting = Waiting {
        rows: all_waiting.query([])?,
        scopes: query.scopes.iter().map(|s| query::scope_word(s)).collect(),
        words: &query.words,
    };
    let mut by_arrival = snapshot.prepare_cached(&statements.by_arrival)?;
    let mut in_index = snapshot.prepare_cached(&statements.context)?;
    let mut indexed = in_index.query((
        match_expression(query),
        query.not_before.unix_micros(),
        query.ceiling as i64,
    ))?;
    let mut found = Vec::new();
    let mut keep = |row: &Row<'_>| -> rusqlite::Result<bool> {
        let row = rows::read(row)?;
        if query::suits(&row, query) {
            found.push(row);
        }
        Ok(found.len() < query.limit)
    };
    let mut newest_waiting = waiting.next()?;
    let mut next = indexed.next()?;
    let mut wanting = true;
    while wanting {
        let arrival: Option<i64> = next.map(|row| row.get("n")).transpose()?;
        wanting = match (newest_waiting, next) {
            (Some(n), _) if arrival.is_none_or(|arrival| n > arrival) => {
                newest_waiting = waiting.next()?;
                // A row that somebody deleted may still wait.
                let kept = by_arrival.query_row([n], &mut keep).optional()?;
                kept.unwrap_or(true)
            }
            (_, Some(row)) => {
                let wanting = keep(row)?;
                next = indexed.next()?;
                wanting
            }
            (_, None) => false,
        };
    }
    Ok(found)
}

/// What to look for in the index: all words, and one of the scopes.
///
/// Void queries never come here, so words have no quotes.
fn match_expression(query: &ContextQuery) -> String {
    let words = query.words.iter().map(|word| format!("\"{word}\" AND "));
    let scopes = query.scopes.iter().map(|scope| query::scope_word(scope));
    let scopes: Vec<_> = scopes.map(|scope| format!("\"{scope}\"")).collect();
    format!("{}({})", words.collect::<String>(), scopes.join(" OR "))
}
