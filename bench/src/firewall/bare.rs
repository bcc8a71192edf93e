//! The statements of the SQLite store, without the firewall: the limit that it is measured against.

use std::hint::black_box;
use std::path::Path;

use lodestar_core::digest::{encode_hex, sha256};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::row::{StoredBelief, StoredRow};
use lodestar_firewall::{Outcome, text};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement, ToSql};

/// The rows of one result, with the words that those in the index are found by.
pub(super) struct Batch {
    rows: Vec<(StoredRow, Option<String>)>,
    next: i64,
}

impl Batch {
    /// What the firewall kept of an intake.
    pub(super) fn of(outcome: &Outcome, keys: &Keyring) -> Self {
        let mut rows: Vec<_> = StoredBelief::adopted(&outcome.adopted, &outcome.at)
            .map(|belief| StoredRow::of(&belief))
            .collect();
        keys.sign(&mut rows);
        let with_words = |row: StoredRow| {
            let words = row.is_eligible().then(|| indexed(&row));
            (row, words)
        };
        Self {
            rows: rows.into_iter().map(with_words).collect(),
            next: outcome.at.seq.cast_signed() + 1,
        }
    }
}

/// How the store's index knows a scope.
fn scope_word(scope: &str) -> String {
    let mut hex = Vec::new();
    encode_hex(&sha256(scope.as_bytes()).as_bytes()[..8], &mut hex);
    format!("§{}", String::from_utf8(hex).expect("hex is ASCII"))
}

fn indexed(row: &StoredRow) -> String {
    let mut all = scope_word(&row.scope);
    for word in text::indexed_words(row) {
        all.push(' ');
        all.push_str(&word);
    }
    all
}

/// Opens a database that the store made, with the store's settings.
pub(super) fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database that is there");
    let settings = [
        ("synchronous", "NORMAL"),
        ("cache_size", "-65536"),
        ("wal_autocheckpoint", "4096"),
    ];
    for (name, value) in settings {
        let set = connection.pragma_update(None, name, value);
        set.expect("a setting that SQLite knows");
    }
    connection
}

/// The columns that the store writes and reads, as the schema has them.
fn columns(connection: &Connection) -> Vec<String> {
    let mut statement = prepare(connection, "SELECT name FROM pragma_table_info('beliefs')");
    let names = statement.query_map([], |row| row.get(0)).expect("names");
    let names = names.map(|name: rusqlite::Result<String>| name.expect("a name"));
    names.filter(|name| name != "n").collect()
}

fn prepare<'a>(connection: &'a Connection, statement: &str) -> Statement<'a> {
    connection.prepare(statement).expect("a sound statement")
}

/// Words that wait until they go into the index together.
pub(super) const MAX_WAITING: u64 = 512;

/// Inserts, prepared.
pub(super) struct Inserts<'a> {
    begin: Statement<'a>,
    row: Statement<'a>,
    words: Statement<'a>,
    waiting: u64,
    index: Statement<'a>,
    indexed: Statement<'a>,
    log: Statement<'a>,
    commit: Statement<'a>,
}

impl<'a> Inserts<'a> {
    pub(super) fn prepare(connection: &'a Connection) -> Self {
        let columns = columns(connection);
        let places = vec!["?"; columns.len()].join(", ");
        let row = format!(
            "INSERT INTO beliefs ({}) VALUES ({places})",
            columns.join(", ")
        );
        Self {
            begin: prepare(connection, "BEGIN IMMEDIATE"),
            row: prepare(connection, &row),
            words: prepare(connection, "INSERT INTO waiting (n, words) VALUES (?, ?)"),
            waiting: 0,
            index: prepare(
                connection,
                "INSERT INTO search (rowid, words) SELECT -n, words FROM waiting ORDER BY n DESC",
            ),
            indexed: prepare(connection, "DELETE FROM waiting"),
            log: prepare(
                connection,
                "INSERT INTO logs (signer, project, session, next) VALUES (?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET next = excluded.next",
            ),
            commit: prepare(connection, "COMMIT"),
        }
    }

    /// One transaction.
    pub(super) fn run(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        self.begin.execute([])?;
        for (row, words) in &batch.rows {
            let n = self.row.insert(&values(row)[..])?;
            if let Some(words) = words {
                self.words.execute((n, words))?;
                self.waiting += 1;
            }
        }
        if self.waiting >= MAX_WAITING {
            self.index.execute([])?;
            self.indexed.execute([])?;
            self.waiting = 0;
        }
        if let Some((row, _)) = batch.rows.first() {
            let log = (&row.signer, &row.project, &row.session, batch.next);
            self.log.execute(log)?;
        }
        self.commit.execute([])?;
        Ok(())
    }
}

fn values(row: &StoredRow) -> [&dyn ToSql; 35] {
    [
        &row.id,
        &row.key,
        &row.scope,
        &row.subject,
        &row.relation,
        &row.object,
        &row.statement,
        &row.claim,
        &row.evidence,
        &row.authority,
        &row.confidence,
        &row.class,
        &row.sensitivity,
        &row.quality,
        &row.truth,
        &row.retrieval,
        &row.security,
        &row.freshness,
        &row.observed_at,
        &row.adopted_at,
        &row.due_at,
        &row.server,
        &row.tool,
        &row.revision,
        &row.project,
        &row.session,
        &row.seq,
        &row.leaf,
        &row.changed_project,
        &row.changed_session,
        &row.changed_seq,
        &row.changed_leaf,
        &row.signer,
        &row.signature,
        &row.seal,
    ]
}

/// What a retrieval asks, prepared.
pub(super) struct Selects<'a> {
    waiting: Statement<'a>,
    by_arrival: Statement<'a>,
    in_index: Statement<'a>,
    disputes: Statement<'a>,
    width: usize,
}

impl<'a> Selects<'a> {
    pub(super) fn prepare(connection: &'a Connection) -> Self {
        let columns = columns(connection);
        let by_arrival = format!("SELECT {} FROM beliefs WHERE n = ?1", columns.join(", "));
        let in_index = format!(
            "SELECT b.{}, b.n FROM search CROSS JOIN beliefs AS b ON b.n = -search.rowid
             WHERE search MATCH ?1 AND observed_at >= ?2 AND sensitivity <= ?3
             AND truth = 'supported' AND retrieval = 'normal' AND security = 'clean'
             AND freshness <> 'expired'
             ORDER BY search.rowid",
            columns.join(", b.")
        );
        Self {
            waiting: prepare(connection, "SELECT n, words FROM waiting ORDER BY n DESC"),
            by_arrival: prepare(connection, &by_arrival),
            in_index: prepare(connection, &in_index),
            disputes: prepare(
                connection,
                "SELECT against FROM contradictions WHERE belief = ?1
                 ORDER BY against DESC LIMIT ?2",
            ),
            width: columns.len(),
        }
    }

    /// Reads all columns of the newest rows with this word in one of these scopes, and what speaks
    /// against each; gives the number of rows.
    pub(super) fn run(
        &mut self,
        word: &str,
        scopes: &[String],
        limit: usize,
    ) -> rusqlite::Result<usize> {
        let scopes: Vec<_> = scopes.iter().map(|scope| scope_word(scope)).collect();
        let mut ids: Vec<String> = Vec::with_capacity(limit);
        // What waits is newer than what is in the index.
        let mut waiting = self.waiting.query([])?;
        while let Some(row) = waiting.next()? {
            let mut words = row.get_ref(1)?.as_str()?.split(' ');
            let scope = words.next().unwrap_or_default();
            if scopes.iter().any(|s| s == scope) && words.any(|w| w == word) {
                let mut rows = self.by_arrival.query([row.get::<_, i64>(0)?])?;
                while let Some(row) = rows.next()? {
                    ids.push(row.get(0)?);
                    read_all(row, self.width)?;
                }
            }
        }
        let wanted = format!("\"{word}\" AND (\"{}\")", scopes.join("\" OR \""));
        let mut rows = self.in_index.query((wanted, 0, 1))?;
        while ids.len() < limit
            && let Some(row) = rows.next()?
        {
            ids.push(row.get(0)?);
            read_all(row, self.width + 1)?;
        }
        drop(rows);
        for id in &ids {
            let mut against = self.disputes.query((id, 4))?;
            while let Some(row) = against.next()? {
                read_all(row, 1)?;
            }
        }
        Ok(ids.len())
    }
}

fn read_all(row: &Row<'_>, width: usize) -> rusqlite::Result<()> {
    for column in 0..width {
        let value: ValueRef<'_> = row.get_ref(column)?;
        black_box(value);
    }
    Ok(())
}
