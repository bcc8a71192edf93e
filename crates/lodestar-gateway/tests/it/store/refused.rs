//! SQL that tries to break what must be true, past the store: as the role that serves requests, and with a shell on the
//! file. Each attempt stands beside its lawful counterpart, which the same connection is allowed.

mod attempts;
pub(crate) mod fill;
mod levels;

use lodestar_core::execution::Effect;
use lodestar_gateway::store::Sql;
use lodestar_gateway::store::effects::{self, EffectRow};

use super::place::{Direct, Place, on_both};
use super::world::{at, furnish, submission, write};
use fill::fill;

/// What a database says when it refuses: SQLite's words, PostgreSQL's.
#[derive(Debug, Clone, Copy)]
struct Words(&'static str, &'static str);

/// Both say what the rule says.
const fn rule(because: &'static str) -> Words {
    Words(because, because)
}

/// A row of another account, or none.
const NOT_OWN: Words = Words(
    "refers to what is not there",
    "violates foreign key constraint",
);
/// A column that never changes.
const FIXED: Words = Words("never changed", "permission denied");
/// A row that is there already.
const DOUBLE: Words = Words("there already", "duplicate key");
/// A value that a column does not take.
const UNFIT: Words = Words("CHECK constraint failed", "violates check constraint");

struct Attempt {
    what: &'static str,
    /// What the scene is set with, lawfully.
    before: &'static [&'static str],
    unlawful: &'static str,
    because: Words,
    lawful: &'static str,
}

fn check(direct: &mut Direct, attempt: &Attempt) {
    let Attempt {
        what,
        unlawful,
        lawful,
        ..
    } = attempt;
    let before: Vec<_> = attempt.before.iter().map(|text| fill(text)).collect();
    let said = match direct.attempt(&before, &fill(unlawful)) {
        Err(said) => said,
        Ok(rows) => panic!("{what}: the database took it, {rows} rows"),
    };
    let expected = match direct.is_sqlite() {
        true => attempt.because.0,
        false => attempt.because.1,
    };
    assert!(said.contains(expected), "{what}: refused, but for `{said}`");
    let done = direct.attempt(&before, &fill(lawful));
    assert!(matches!(done, Ok(1..)), "{what}, lawfully: {done:?}");
}

fn every_attempt(place: &Place) {
    let mut sql = place.open();
    furnish(&mut *sql);
    let mut direct = place.direct();
    let all = attempts::all();
    for attempt in &all {
        check(&mut direct, attempt);
    }
    assert!(all.len() > 50);
}

#[test]
fn in_sqlite_what_must_be_true_cannot_be_broken() {
    every_attempt(&Place::sqlite());
}

#[test]
fn in_postgres_what_must_be_true_cannot_be_broken() {
    if let Some(place) = Place::postgres() {
        every_attempt(&place);
    }
}

/// Columns that may change, by table: everything else in every table may not.
const CHANGING: &[(&str, &[&str])] = &[
    (
        "devices",
        &[
            "last_heartbeat",
            "continuous_since",
            "compromised_since",
            "paused",
            "gateway_status",
            "daemon_version",
        ],
    ),
    ("challenges", &["passed_at"]),
    ("tokens", &["used_at", "revoked_at"]),
    ("runners", &["last_heartbeat"]),
    ("bindings", &["unbound_at"]),
    ("control", &["kill_switch", "since", "reason"]),
];

/// Tables that forget.
const FORGETTING: &[&str] = &["nonces", "strikes", "outbox"];

/// Tables and their columns, as the database itself has them.
fn columns(direct: &mut Direct) -> Vec<(String, Vec<String>)> {
    let rows: Vec<(String, String)> = match direct {
        Direct::Sqlite(connection) => {
            let mut statement = connection
                .prepare(
                    "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                     WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid",
                )
                .unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().collect::<Result<_, _>>().unwrap()
        }
        Direct::Postgres(client) => {
            let text = "SELECT table_name::text, column_name::text FROM information_schema.columns
                 WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position";
            let rows = client.query(text, &[]).unwrap();
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        }
    };
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    for (table, column) in rows {
        match tables.last_mut() {
            Some((last, columns)) if *last == table => columns.push(column),
            _ => tables.push((table, vec![column])),
        }
    }
    tables
}

/// Work that has earned something, so that no table is empty.
fn earn(sql: &mut dyn Sql) {
    let earned = EffectRow {
        submission: submission(1),
        effect: Effect::SubmissionCompleted,
        evaluation: None,
        at: at(70),
    };
    write(sql, |sql| {
        assert!(effects::grant(sql, &earned)?);
        Ok(())
    });
}

/// Exhaustive: of every row of every table, each column stays as it is unless it is in the list above, and the row stays.
#[test]
fn what_was_written_stays() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        earn(&mut *sql);
        let mut direct = place.direct();
        let (mut kept, mut moved) = (0, 0);
        for (table, columns) in columns(&mut direct) {
            // The file is its owner's, and the version is what a newer program sets.
            if table == "schema_version" && direct.is_sqlite() {
                continue;
            }
            let count = format!("SELECT count(*) FROM {table}");
            for column in &columns {
                let may = CHANGING
                    .iter()
                    .any(|(name, may)| *name == table && may.contains(&&**column));
                // The only change that a database cannot take for none.
                let other = match () {
                    () if column.ends_with("_at") || column.ends_with("_since") => {
                        "1700000100000000"
                    }
                    () if ["at", "since", "last_heartbeat", "last_attested"]
                        .contains(&&**column) =>
                    {
                        "1700000100000000"
                    }
                    () if ["n", "size", "bytes", "facts", "one", "version"]
                        .contains(&&**column) =>
                    {
                        "77"
                    }
                    () if ["attests", "permanent", "paused", "kill_switch"]
                        .contains(&&**column) =>
                    {
                        "1"
                    }
                    () if [
                        "valid",
                        "signature_ok",
                        "gateway_verified",
                        "policy_passed",
                        "runner_bound",
                        "runner_fresh",
                    ]
                    .contains(&&**column) =>
                    {
                        "0"
                    }
                    () => "'something else'",
                };
                let mut text = format!("UPDATE {table} SET {column} = {other}");
                if table == "devices" && column == "compromised_since" {
                    text += " WHERE level = 'revoked'";
                }
                if (&*table, &**column) == ("challenges", "passed_at") {
                    text += " WHERE passed_at IS NULL";
                }
                direct.begin(super::place::As::Server);
                let rows = direct.number(&count);
                let done = direct.run(&text);
                direct.rollback();
                match may {
                    true => assert!(done.is_ok(), "`{text}`: {done:?}"),
                    // Nothing to refuse where there is no row, but PostgreSQL refuses by right.
                    false if rows == 0 && direct.is_sqlite() => {}
                    false => assert!(done.is_err(), "`{text}` was taken"),
                }
                moved += u64::from(may);
                kept += u64::from(!may);
            }
            let gone = direct.attempt(&[], &format!("DELETE FROM {table}"));
            match FORGETTING.contains(&&*table) {
                true => assert!(gone.is_ok(), "{table}: {gone:?}"),
                false => assert!(gone.is_err(), "{table}: rows go"),
            }
        }
        assert!(moved == 14 && kept > 120, "{moved} {kept}");
    });
}

/// `INSERT OR REPLACE` asks no trigger about the row that it takes away.
#[test]
fn in_sqlite_no_row_is_put_in_the_place_of_another() {
    let place = Place::sqlite();
    let mut sql = place.open();
    furnish(&mut *sql);
    earn(&mut *sql);
    let mut direct = place.direct();
    let mut refused = 0;
    for (table, columns) in columns(&mut direct) {
        if FORGETTING.contains(&&*table) || table == "schema_version" {
            continue;
        }
        let all = columns.join(", ");
        for verb in ["INSERT OR REPLACE", "REPLACE", "INSERT"] {
            let text = format!("{verb} INTO {table} ({all}) SELECT {all} FROM {table}");
            let done = direct.attempt(&[], &text);
            assert!(done.is_err(), "{text}: {done:?}");
            refused += 1;
        }
        let text = format!("INSERT OR IGNORE INTO {table} ({all}) SELECT {all} FROM {table}");
        assert!(!matches!(direct.attempt(&[], &text), Ok(1..)), "{text}");
    }
    assert!(refused >= 3 * 22, "{refused}");
}
