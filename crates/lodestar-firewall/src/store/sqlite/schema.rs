//! The SQLite schema, its versions, and how the connection is set up.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::store::StoreError;

/// How long a writer waits for others. A transaction takes milliseconds; who waits this long waits
/// for a process that hangs.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// KiB of pages kept in memory, as a negative number: SQLite's way of saying KiB. Small, since a session's
/// memory is counted in megabytes: the system keeps what this one does not.
const CACHE_KIB: i64 = -4 * 1024;

/// Pages of log after which SQLite carries them over to the database: 64 MiB. A page that several
/// transactions changed is carried over once.
const CHECKPOINT_PAGES: i64 = 16 * 1024;

/// Statements kept prepared: more than there are in this store.
const STATEMENTS: usize = 48;

/// Says in the file's header whose it is: `LODE`.
const APPLICATION_ID: i64 = 0x4C4F_4445;

/// What each version adds to the one before; the first makes an empty database version 1.
const MIGRATIONS: [&str; 2] = [FIRST, CONFIRMATIONS];

/// The newest version known here.
pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Why a database is not taken.
pub(super) enum Refused {
    TooNew(i64),
    Foreign,
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Refused {
    pub(super) fn at(self, place: &str) -> StoreError {
        let problem = match self {
            Self::TooNew(found) => {
                return StoreError::TooNew {
                    found,
                    known: KNOWN,
                };
            }
            Self::Foreign => "it is a SQLite database of another program".to_owned(),
            Self::Database(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                "it is not a SQLite database; move it away and rebuild the store".to_owned()
            }
            Self::Database(error) => error.to_string(),
        };
        StoreError::Open {
            place: place.to_owned(),
            problem,
        }
    }
}

/// Sets the connection up and brings the schema to the version known here.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), Refused> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A plan may otherwise depend on the bound value of a limit, so that each new value has the
    // statement prepared again: a third of an intake.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if version(connection)? != KNOWN {
        migrate(connection)?;
    } else if !is_own(connection)? {
        return Err(Refused::Foreign);
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The log is the durable truth: after a power cut the store may lack its last transactions,
    // never have half of one, and catches up.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn is_own(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(id == APPLICATION_ID)
}

fn migrate(connection: &mut Connection) -> Result<(), Refused> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again: another process may have done it meanwhile.
    let found = version(&transaction)?;
    match found {
        0 if !is_empty(&transaction)? => return Err(Refused::Foreign),
        1.. if !is_own(&transaction)? => return Err(Refused::Foreign),
        _ if found > KNOWN => return Err(Refused::TooNew(found)),
        _ => {}
    }
    let done = usize::try_from(found).map_err(|_| Refused::Foreign)?;
    for migration in &MIGRATIONS[done..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    transaction.commit()?;
    Ok(())
}

fn is_empty(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    transaction.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |r| {
        r.get(0)
    })
}

/// `beliefs.n` is the order of arrival. `phase` tells apart what the firewall looks for by key; its
/// small numbers take no room in the index. `search` has the words of eligible rows and nothing
/// else: no content, no positions; `waiting` has those that go there next. Its row ids are arrivals
/// negated, because it is much faster upwards, and the newest come first. Its tokenizer leaves our
/// words as they are, for it splits at ASCII characters only, and takes every other for a letter.
const FIRST: &str = "
CREATE TABLE beliefs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    key INTEGER,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    relation TEXT NOT NULL,
    object TEXT NOT NULL,
    statement TEXT NOT NULL,
    claim TEXT NOT NULL,
    evidence TEXT NOT NULL,
    authority TEXT NOT NULL,
    confidence REAL NOT NULL,
    class TEXT NOT NULL,
    sensitivity INTEGER NOT NULL,
    quality TEXT NOT NULL,
    truth TEXT NOT NULL,
    retrieval TEXT NOT NULL,
    security TEXT NOT NULL,
    freshness TEXT NOT NULL,
    observed_at INTEGER NOT NULL,
    adopted_at INTEGER NOT NULL,
    due_at INTEGER,
    server TEXT,
    tool TEXT,
    revision INTEGER NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    leaf BLOB NOT NULL,
    changed_project TEXT NOT NULL,
    changed_session TEXT NOT NULL,
    changed_seq INTEGER NOT NULL,
    changed_leaf BLOB NOT NULL,
    signer TEXT NOT NULL,
    signature BLOB NOT NULL,
    seal BLOB NOT NULL,
    phase INTEGER GENERATED ALWAYS AS (CASE truth
        WHEN 'unverified' THEN 0
        WHEN 'supported' THEN 1
        WHEN 'contradicted' THEN 1
        ELSE 2 END) VIRTUAL
) STRICT;
CREATE INDEX beliefs_by_key ON beliefs (key, phase) WHERE key IS NOT NULL;
CREATE INDEX beliefs_by_due ON beliefs (due_at) WHERE due_at IS NOT NULL;
CREATE VIRTUAL TABLE search USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE TABLE waiting (
    n INTEGER PRIMARY KEY,
    words TEXT NOT NULL
) STRICT;
CREATE TABLE history (
    belief TEXT NOT NULL,
    revision INTEGER NOT NULL,
    change TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    leaf BLOB NOT NULL,
    PRIMARY KEY (belief, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE contradictions (
    belief TEXT NOT NULL,
    against TEXT NOT NULL,
    PRIMARY KEY (belief, against)
) STRICT, WITHOUT ROWID;
CREATE TABLE logs (
    signer TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    next INTEGER NOT NULL,
    PRIMARY KEY (signer, project, session)
) STRICT, WITHOUT ROWID;
";

/// Who spent which confirmation: an entry is made once and never changed.
const CONFIRMATIONS: &str = "
CREATE TABLE confirmations (
    id TEXT NOT NULL PRIMARY KEY,
    statement TEXT NOT NULL,
    operator TEXT NOT NULL,
    session TEXT NOT NULL,
    action TEXT NOT NULL,
    spent_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";
