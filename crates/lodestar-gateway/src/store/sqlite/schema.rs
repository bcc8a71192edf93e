//! The SQLite schema: tables with triggers around them.
//!
//! Some triggers say again what a constraint says already. Foreign keys hold only on connections that ask for them, and
//! `INSERT OR REPLACE` takes the row away that stands in its place without asking anybody; so both are told by triggers
//! too, which hold on every connection.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::store::StoreError;
use crate::store::schema::tables::{INDEXES, TABLES};
use crate::store::schema::{Consequence, KNOWN, On, Rule, Table, quoted, reference, rules};

/// How long a writer waits for another connection: an operator's, with a shell.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// KiB of pages kept in memory, as a negative number: SQLite's way of saying KiB. The nonces of ten minutes and the
/// devices they belong to fit in, at the rates that one machine can verify.
const CACHE_KIB: i64 = -64 * 1024;

/// Pages of log after which SQLite carries them over to the database: 64 MiB. A page that several transactions changed
/// is carried over once.
const CHECKPOINT_PAGES: i64 = 16 * 1024;

/// Statements kept prepared: more than there are in this store.
const STATEMENTS: usize = 160;

/// Says in the file's header whose it is: `LODG`.
const APPLICATION_ID: i64 = 0x4C4F_4447;

/// What a row that is there already says of itself. An insertion that may find one is not an error.
pub(super) const THERE: &str = "it is there already";

/// Tables that are written to with every heartbeat and protect nothing but themselves: what stands in the place of
/// a row there is as good as the row.
const FAST: &[&str] = &["nonces", "strikes", "outbox"];

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
                "it is not a SQLite database".to_owned()
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
    // A plan may otherwise depend on the bound value of a limit, so that each new value has the statement prepared
    // again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    migrate(connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "recursive_triggers", true)?;
    connection.pragma_update(None, "cache_size", CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), Refused> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_new = transaction.query_row(
        "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)",
        [],
        |row| row.get(0),
    )?;
    if is_new {
        begin(&transaction)?;
    } else {
        let id: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if id != APPLICATION_ID {
            return Err(Refused::Foreign);
        }
        let text = "SELECT version FROM schema_version";
        let found: i64 = transaction.query_row(text, [], |row| row.get(0))?;
        if found > KNOWN {
            return Err(Refused::TooNew(found));
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Makes version 1 of an empty database.
fn begin(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.execute_batch(&format!(
        "CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
         INSERT INTO schema_version VALUES ({KNOWN});"
    ))?;
    for table in TABLES {
        transaction.execute_batch(&created(table))?;
    }
    for index in INDEXES {
        transaction.execute_batch(index)?;
    }
    for statement in reference::rows() {
        transaction.execute_batch(&statement)?;
    }
    let rules = rules::rules();
    for table in TABLES {
        transaction.execute_batch(&kept(table))?;
        transaction.execute_batch(&inserted(transaction, table, &rules)?)?;
        transaction.execute_batch(&updated(table, &rules))?;
    }
    for table in TABLES {
        transaction.execute_batch(&numbered(table))?;
    }
    for (n, consequence) in rules::CONSEQUENCES.iter().enumerate() {
        transaction.execute_batch(&followed(n, consequence))?;
    }
    Ok(())
}

/// Takes every rule away again: what refuses, and what the engine itself checks. What follows from a row stays.
pub(super) fn unguard(connection: &Connection) -> rusqlite::Result<()> {
    let mut refusing = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND instr(sql, 'RAISE(ABORT') > 0",
    )?;
    let names = refusing.query_map([], |row| row.get(0))?;
    for name in names.collect::<rusqlite::Result<Vec<String>>>()? {
        connection.execute_batch(&format!("DROP TRIGGER {name};"))?;
    }
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "ignore_check_constraints", true)
}

/// Rows are kept by their key where that is no number: there is no second, hidden number by which they could be
/// replaced.
fn created(table: &Table) -> String {
    let numbered = table.columns.contains("INTEGER PRIMARY KEY")
        || table.columns.contains("INTEGER NOT NULL PRIMARY KEY");
    let kept = if numbered {
        "STRICT"
    } else {
        "STRICT, WITHOUT ROWID"
    };
    format!("CREATE TABLE {} ({}) {kept};", table.name, table.columns)
}

/// What is refused, and in which words.
struct Check {
    when: String,
    because: String,
}

fn check(when: impl Into<String>, because: &str) -> Check {
    Check {
        when: when.into(),
        because: quoted(because),
    }
}

/// A trigger that asks one thing after the other.
fn trigger(name: &str, on: &str, checks: &[Check]) -> String {
    let ask =
        |Check { when, because }: &Check| format!("SELECT RAISE(ABORT, {because}) WHERE {when};\n");
    match checks {
        [] => String::new(),
        some => format!(
            "CREATE TRIGGER {name} {on} FOR EACH ROW BEGIN {} END;",
            some.iter().map(ask).collect::<String>()
        ),
    }
}

/// What does not change stays, and so does the row.
fn kept(table: &Table) -> String {
    let name = table.name;
    let fixed = table.fixed();
    let differs = |column: &&str| format!("NEW.{column} IS DISTINCT FROM OLD.{column}");
    let differ: Vec<_> = fixed.iter().map(differs).collect();
    let mut text = match table.changing.is_empty() && table.following.is_empty() {
        true => trigger(
            &format!("{name}_do_not_change"),
            &format!("BEFORE UPDATE ON {name}"),
            &[check("1", "a row is never changed")],
        ),
        false => trigger(
            &format!("{name}_keep_what_they_are"),
            &format!("BEFORE UPDATE OF {} ON {name}", fixed.join(", ")),
            &[check(differ.join(" OR "), "the column is never changed")],
        ),
    };
    if !table.forgets {
        text += &trigger(
            &format!("{name}_do_not_go"),
            &format!("BEFORE DELETE ON {name}"),
            &[check("1", "a row is never taken out")],
        );
    }
    text
}

/// What a new row is asked, in PostgreSQL's order: rules, keys, what it refers to.
fn inserted(
    transaction: &Transaction<'_>,
    table: &Table,
    rules: &[Rule],
) -> rusqlite::Result<String> {
    let name = table.name;
    let mut checks = Vec::new();
    if reference::FILLED.contains(&name) {
        checks.push(check("1", "the table comes with the program"));
    }
    let own = rules
        .iter()
        .filter(|rule| rule.table == name && rule.on == On::Insert);
    checks.extend(own.map(|rule| check(format!("({})", rule.when), rule.because)));
    if !FAST.contains(&name) {
        checks.extend(unreplaced(transaction, name)?);
        checks.extend(referring(transaction, name)?);
    }
    let on = format!("BEFORE INSERT ON {name}");
    Ok(trigger(&format!("{name}_are_asked"), &on, &checks))
}

/// Rows that stay number themselves, one after the other: a number from far ahead would be the last word for good.
/// Only behind the insertion is it known which number a row has.
fn numbered(table: &Table) -> String {
    let name = table.name;
    if table.forgets || !table.columns.contains("n INTEGER PRIMARY KEY CHECK") {
        return String::new();
    }
    let next = format!("(SELECT COALESCE(max(o.n), 0) + 1 FROM {name} AS o WHERE o.n < NEW.n)");
    trigger(
        &format!("{name}_number_themselves"),
        &format!("AFTER INSERT ON {name}"),
        &[check(format!("NEW.n <> {next}"), "rows number themselves")],
    )
}

/// No row is put in the place of another.
fn unreplaced(transaction: &Transaction<'_>, table: &str) -> rusqlite::Result<Vec<Check>> {
    let mut keys: Vec<Vec<String>> = Vec::new();
    let mut whole = transaction.prepare(
        "SELECT i.name FROM pragma_index_list(?1) AS i WHERE i.\"unique\" = 1 AND i.partial = 0",
    )?;
    let mut columns =
        transaction.prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
    let names = whole.query_map([table], |row| row.get::<_, String>(0))?;
    for index in names {
        let of = columns.query_map([index?], |row| row.get(0))?;
        keys.push(of.collect::<Result<_, _>>()?);
    }
    // A key that is a number has no index.
    let mut primary =
        transaction.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    let of = primary.query_map([table], |row| row.get(0))?;
    keys.push(of.collect::<Result<_, _>>()?);
    let same = |column: &String| format!("o.{column} = NEW.{column}");
    let mut all: Vec<_> = keys
        .iter()
        .map(|key| key.iter().map(same).collect::<Vec<_>>().join(" AND "))
        .collect();
    // The one key that holds for some rows only.
    if table == "bindings" {
        all.push(
            "o.device = NEW.device AND o.runner = NEW.runner AND o.unbound_at IS NULL".to_owned(),
        );
    }
    let there = |same: &String| {
        let exists = format!("EXISTS (SELECT 1 FROM {table} AS o WHERE {same})");
        check(exists, THERE)
    };
    Ok(all.iter().map(there).collect())
}

/// What a row refers to is there.
fn referring(transaction: &Transaction<'_>, table: &str) -> rusqlite::Result<Vec<Check>> {
    let mut statement = transaction.prepare(
        "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY id, seq",
    )?;
    let mut keys: BTreeMap<i64, (String, Vec<(String, String)>)> = BTreeMap::new();
    let mut rows = statement.query([table])?;
    while let Some(row) = rows.next()? {
        let (_, columns) = keys.entry(row.get(0)?).or_insert((row.get(1)?, Vec::new()));
        columns.push((row.get(2)?, row.get(3)?));
    }
    let missing = |(parent, columns): &(String, Vec<(String, String)>)| {
        let given: Vec<_> = columns
            .iter()
            .map(|(own, _)| format!("NEW.{own} IS NOT NULL"))
            .collect();
        let same: Vec<_> = columns
            .iter()
            .map(|(own, its)| format!("p.{its} = NEW.{own}"))
            .collect();
        let when = format!(
            "{} AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE {})",
            given.join(" AND "),
            same.join(" AND ")
        );
        check(
            when,
            "it refers to what is not there, or not of this account",
        )
    };
    Ok(keys.values().map(missing).collect())
}

fn event(on: On) -> String {
    match on {
        On::Insert => "INSERT".to_owned(),
        On::Update(columns) => format!("UPDATE OF {}", columns.join(", ")),
    }
}

/// What a change is asked.
fn updated(table: &Table, rules: &[Rule]) -> String {
    let own = rules
        .iter()
        .filter(|rule| rule.table == table.name && rule.on != On::Insert);
    let ask = |(n, rule): (usize, &Rule)| {
        let name = format!("{}_are_asked_{n}", table.name);
        let on = format!("BEFORE {} ON {}", event(rule.on), table.name);
        trigger(
            &name,
            &on,
            &[check(format!("({})", rule.when), rule.because)],
        )
    };
    own.enumerate().map(ask).collect()
}

fn followed(n: usize, consequence: &Consequence) -> String {
    let Consequence {
        table,
        on,
        when,
        statements,
    } = consequence;
    format!(
        "CREATE TRIGGER {table}_then_{n} AFTER {} ON {table} FOR EACH ROW WHEN {when}
         BEGIN {}; END;",
        event(*on),
        statements.join("; ")
    )
}
