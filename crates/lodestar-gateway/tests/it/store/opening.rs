//! Opening: files, locks, versions, addresses, roles.

use std::time::Duration;

use lodestar_gateway::store::{self, PostgresSql, Sql, SqliteSql, StoreError, accounts};

use super::place::{Place, Schema, on_both};
use super::world::{account, an_account, furnish, write};

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    on_both(|place| {
        furnish(&mut *place.open());
        let mut again = place.open();
        let found = write(&mut *again, |sql| accounts::get(sql, account(1)));
        assert_eq!(found, Some(an_account(1)));
    });
}

#[test]
fn a_second_service_is_refused_while_the_first_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.db");
    let first = SqliteSql::open(&path).unwrap();
    let error = SqliteSql::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    drop(first);
    SqliteSql::open(&path).unwrap();

    let Some(schema) = Schema::new() else { return };
    let first = schema.open();
    let error = PostgresSql::connect(schema.url(), Some(schema.name())).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("another service"), "{error}");
    drop(first);
    schema.open();
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let place = Place::sqlite();
    drop(place.open());
    let Place::Sqlite(folder) = &place else {
        unreachable!()
    };
    let path = folder.path().join("gateway.db");
    // The owner of the file can do anything with it, and a newer program would.
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer
        .execute_batch("UPDATE schema_version SET version = 99")
        .unwrap();
    let error = SqliteSql::open(&path).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::TooNew {
                found: 99,
                known: 1
            }
        ),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("use the newer program"),
        "{error}"
    );

    let Some(schema) = Schema::new() else { return };
    schema.open();
    let newer = "UPDATE schema_version SET version = 99";
    schema.client().batch_execute(newer).unwrap();
    let error = PostgresSql::connect(schema.url(), Some(schema.name())).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::TooNew {
                found: 99,
                known: 1
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    let error = SqliteSql::open(&path).unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    std::fs::write(
        &path,
        "This is not a database, but it is long enough to be taken for one. ".repeat(20),
    )
    .unwrap();
    let error = SqliteSql::open(&path).unwrap_err();
    assert!(
        error.to_string().contains("not a SQLite database"),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn the_files_are_their_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::sqlite();
    let mut sql = place.open();
    furnish(&mut *sql);
    let Place::Sqlite(folder) = &place else {
        unreachable!()
    };
    let mut files = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{entry:?}");
        files += 1;
    }
    assert!(files >= 3, "database, log, lock");
}

#[test]
fn a_place_is_an_address_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.db");
    let sql = store::open(path.to_str().unwrap()).unwrap();
    assert!(sql.describe().starts_with("SQLite"));
    for address in [
        "postgres://ada@db.example/gateway",
        "postgresql://ada@192.0.2.7/gateway",
    ] {
        let error = store::open(address).map(|sql| sql.describe()).unwrap_err();
        assert!(error.to_string().contains("ssh -L"), "{error}");
    }
    let error = store::open("postgres://ada:tops3cret@127.0.0.1:1/x?connect_timeout=1");
    let shown = format!("{:?}", error.map(|sql| sql.describe()));
    assert!(
        shown.contains("Open") && !shown.contains("tops3cret"),
        "{shown}"
    );
}

#[test]
fn a_service_with_the_runtime_role_alone_works_as_well() {
    let Some(schema) = Schema::new() else { return };
    // Before there is anything, it can make nothing.
    let nobody = schema.client();
    drop(nobody);
    drop(schema.open());
    let url = schema.login_url();
    let mut sql = PostgresSql::connect(&url, Some(schema.name())).unwrap();
    assert!(sql.describe().contains("_login@"));
    furnish(&mut sql);
    let found = write(&mut sql, |sql| accounts::get(sql, account(2)));
    assert_eq!(found, Some(an_account(2)));
}

#[test]
fn a_login_that_may_not_make_the_schema_is_told_so() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    let url = schema.login_url();
    let error = PostgresSql::connect(&url, Some(&format!("{}_x", schema.name()))).unwrap_err();
    assert!(error.to_string().contains("permission denied"), "{error}");
}

#[test]
fn a_runtime_role_with_too_many_rights_is_refused() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    let name = schema.name();
    let give = format!("GRANT CREATE ON SCHEMA {name} TO {name}_runtime");
    schema.client().batch_execute(&give).unwrap();
    let error = PostgresSql::connect(schema.url(), Some(name)).unwrap_err();
    assert!(error.to_string().contains("rights beyond"), "{error}");
    let take = format!("REVOKE CREATE ON SCHEMA {name} FROM {name}_runtime");
    schema.client().batch_execute(&take).unwrap();
    schema.open();
}

#[test]
fn it_outlives_its_connection_and_keeps_its_lock() {
    let Some(schema) = Schema::new() else { return };
    let mut sql = schema.open();
    furnish(&mut sql);
    let mut client = schema.client();
    let mut end = || {
        let own = format!("lodestar {}", schema.name());
        let text =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        client.query(text, &[&own]).unwrap().len()
    };
    assert!(end() >= 1);
    while end() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // As when the server is restarted: one transaction may fail, and no more.
    let _ = store::transaction(&mut sql, |sql| accounts::get(sql, account(1)));
    let found = write(&mut sql, |sql| accounts::get(sql, account(1)));
    assert_eq!(found, Some(an_account(1)));
    let error = PostgresSql::connect(schema.url(), Some(schema.name())).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
}
