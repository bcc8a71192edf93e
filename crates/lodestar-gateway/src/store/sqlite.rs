//! The gateway's store in one SQLite file, which one service has for itself.
//!
//! A commit is on disk when it returns: the write-ahead log is synchronised each time. That is dear, so the service puts
//! many requests into one. What must be true is held by triggers ([`schema`]), also against connections that have
//! foreign keys switched off.

mod schema;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use lodestar_core::id::AccountId;
use lodestar_firewall::database::keep_private;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};

use super::schema::tables::TABLES;
use super::schema::{Owner, Table};
use super::sql::DO_NOTHING;
use super::{Row, Sql, StoreError, Value};

/// A connection to a SQLite file.
#[derive(Debug)]
pub struct SqliteSql {
    connection: Connection,
    place: String,
    /// Whether it is in somebody's name.
    acting: bool,
    /// Statements that were looked at, and whether they have to be in somebody's name.
    owned: HashMap<(usize, usize), bool>,
    /// Locked for as long as this lives; the file itself says nothing.
    _lock: Option<File>,
}

impl SqliteSql {
    /// Opens the store in this file, or begins one there that only its owner may read.
    ///
    /// A second service is refused, by a lock on a file beside it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        let refused = |problem: String| StoreError::Open {
            place: place.clone(),
            problem,
        };
        keep_private(path).map_err(&refused)?;
        let lock = lock(path, &place)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| refused(error.to_string()))?;
        Self::over(connection, place, Some(lock))
    }

    /// A store that lives as long as this value.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory().map_err(failed)?;
        Self::over(connection, "memory".to_owned(), None)
    }

    /// For a harness that takes defences out: a store in memory that refuses nothing, since a database that holds
    /// the same line a second time would hide that the first is missing.
    pub(crate) fn unguarded() -> Result<Self, StoreError> {
        let store = Self::in_memory()?;
        schema::unguard(&store.connection).map_err(failed)?;
        Ok(store)
    }

    fn over(
        mut connection: Connection,
        place: String,
        lock: Option<File>,
    ) -> Result<Self, StoreError> {
        schema::prepare(&mut connection).map_err(|refused| refused.at(&place))?;
        Ok(Self {
            connection,
            place,
            acting: false,
            owned: HashMap::new(),
            _lock: lock,
        })
    }
}

/// The lock that a service holds: the system lets go of it when the process ends, however it ends.
fn lock(path: &Path, place: &str) -> Result<File, StoreError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let beside = PathBuf::from(beside);
    let refused = |problem: String| StoreError::Open {
        place: place.to_owned(),
        problem: format!("its lock `{}`: {problem}", beside.display()),
    };
    keep_private(&beside).map_err(&refused)?;
    let file = File::open(&beside).map_err(|error| refused(error.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse {
            place: place.to_owned(),
        }),
        Err(std::fs::TryLockError::Error(error)) => Err(refused(error.to_string())),
    }
}

fn failed(error: rusqlite::Error) -> StoreError {
    match error {
        rusqlite::Error::SqliteFailure(code, Some(message))
            if code.code == ErrorCode::ConstraintViolation =>
        {
            StoreError::Refused(message)
        }
        other => StoreError::database(other),
    }
}

fn is_there_already(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(code, Some(message))
        if code.code == ErrorCode::ConstraintViolation && message == schema::THERE)
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(found: ValueRef<'_>, column: usize) -> Result<Value<'static>, StoreError> {
    let unreadable = |problem: &str| StoreError::Unreadable {
        column: column + 1,
        problem: problem.to_owned(),
    };
    match found {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Int(number)),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::Text(text.to_owned().into())),
            Err(_) => Err(unreadable("the text is not UTF-8")),
        },
        ValueRef::Blob(bytes) => Ok(Value::Blob(bytes.to_owned().into())),
        ValueRef::Real(_) => Err(unreadable("there are no fractions here")),
    }
}

impl SqliteSql {
    /// Code that forgets in whose name it acts is told here too, though only PostgreSQL would act on it.
    fn look(&mut self, text: &'static str) -> Result<(), StoreError> {
        let names_rows_of_somebody = || {
            let words = text.split(|c: char| !c.is_ascii_alphabetic() && c != '_');
            let owned = |table: &Table| !matches!(table.owner, Owner::Nobody);
            words
                .flat_map(|word| TABLES.iter().find(|table| table.name == word))
                .any(owned)
        };
        if self.acting
            || !*self
                .owned
                .entry((text.as_ptr().addr(), text.len()))
                .or_insert_with(names_rows_of_somebody)
        {
            return Ok(());
        }
        Err(StoreError::Refused("it is in nobody's name".to_owned()))
    }

    fn run(&self, text: &'static str) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(text).map_err(failed)?;
        statement.execute([]).map(drop).map_err(failed)
    }
}

impl Sql for SqliteSql {
    fn describe(&self) -> String {
        format!("SQLite, {}", self.place)
    }

    fn execute(&mut self, text: &'static str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.look(text)?;
        let mut statement = self.connection.prepare_cached(text).map_err(failed)?;
        debug_assert!(is_numbered(&statement), "{text}");
        match statement.execute(params_from_iter(values)) {
            Ok(changed) => Ok(changed as u64),
            // A trigger speaks before the clause is looked at; it means the same.
            Err(error) if text.ends_with(DO_NOTHING) && is_there_already(&error) => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }

    fn query(&mut self, text: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        self.look(text)?;
        let mut statement = self.connection.prepare_cached(text).map_err(failed)?;
        debug_assert!(is_numbered(&statement), "{text}");
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(values)).map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failed)? {
            let read = |column| value(row.get_ref(column).map_err(failed)?, column);
            rows.push(Row::new((0..columns).map(read).collect::<Result<_, _>>()?));
        }
        Ok(rows)
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.acting = false;
        self.run("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.run("ROLLBACK"),
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        self.acting = false;
        self.run("SAVEPOINT attempt")
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.acting = false;
        self.run("RELEASE attempt")
    }

    fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.acting = false;
        self.run("ROLLBACK TO attempt")?;
        self.run("RELEASE attempt")
    }

    fn act_for(&mut self, _account: AccountId) -> Result<(), StoreError> {
        self.acting = true;
        Ok(())
    }

    fn act_as_server(&mut self) -> Result<(), StoreError> {
        self.acting = true;
        Ok(())
    }
}

/// Whether parameters are numbered in the order of their appearance, as [`Sql`] asks.
fn is_numbered(statement: &rusqlite::Statement<'_>) -> bool {
    (1..=statement.parameter_count())
        .all(|n| statement.parameter_name(n) == Some(&*format!("${n}")))
}
