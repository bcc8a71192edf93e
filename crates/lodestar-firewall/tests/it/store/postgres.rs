//! What is PostgreSQL's alone: its address, its schema, its connection.

use std::time::Duration;

use lodestar_firewall::store::{PostgresStore, Store, StoreError, Verdict};

use super::cluster::Schema;
use super::rows;

fn refusal(url: &str, schema: Option<&str>) -> String {
    let error = PostgresStore::connect(url, schema).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn without_tls_it_stays_on_this_machine() {
    for url in [
        "postgres://ada@db.example/beliefs",
        "postgres://ada@192.0.2.7/beliefs",
        "postgres://ada@localhost,db.example/beliefs",
        "host=localhost hostaddr=192.0.2.7 user=ada",
        "host=localhost sslmode=require user=ada",
    ] {
        let text = refusal(url, None);
        assert!(text.contains("ssh -L"), "{url}: {text}");
    }
}

#[test]
fn the_password_is_never_told() {
    let url = "postgres://ada:tops3cret@127.0.0.1:1/beliefs?connect_timeout=1";
    let unreachable = refusal(url, None);
    assert!(
        unreachable.contains("ada@127.0.0.1/beliefs"),
        "{unreachable}"
    );
    for (url, schema) in [
        (url, None),
        (url, Some("No Schema")),
        ("postgres://ada:tops3cret@db.example/beliefs", None),
        ("postgres://ada:tops3cret@[/beliefs", None),
        ("postgres://ada:tops3cret@localhost:tops3cret/x", None),
        ("host=localhost password=tops3cret tops3cret=1", None),
        ("tops3cret", None),
    ] {
        let error = PostgresStore::connect(url, schema).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("tops3cret"), "{shown}");
    }
}

#[test]
fn a_schema_has_a_plain_name() {
    let long = "x".repeat(64);
    for name in ["", "Upper", "a\"b", "a;b", "1a", "ä", &long] {
        let text = refusal("host=localhost user=ada", Some(name));
        assert!(text.contains("name of the schema"), "{name}: {text}");
    }
}

#[test]
fn it_describes_itself_and_outlives_the_connection() {
    let Some(schema) = Schema::new() else { return };
    let rows = rows::rows(0..5);
    let mut store = schema.open();
    store
        .write(&mut |writing| writing.insert(&rows).map(|()| Verdict::Commit))
        .unwrap();
    assert!(store.describe().contains(schema.name()));
    assert!(format!("{store:?}").contains("PostgreSQL"));
    assert_eq!(schema.open().scan(None, 9).unwrap(), rows);

    // As when the server is restarted: one call may fail, and no more.
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
    let _ = store.scan(None, 9);
    assert_eq!(store.scan(None, 9).unwrap(), rows);
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let Some(schema) = Schema::new() else { return };
    schema.open();
    schema
        .client()
        .batch_execute("UPDATE schema_version SET version = 99")
        .unwrap();
    let error = PostgresStore::connect(schema.url(), Some(schema.name())).unwrap_err();
    assert!(
        matches!(error, StoreError::TooNew { found: 99, known } if known < 99),
        "{error:?}"
    );
}

#[test]
fn a_database_that_fails_in_the_middle_says_why() {
    let Some(schema) = Schema::new() else { return };
    let mut store = schema.open();
    let drop = "DROP TABLE contradictions";
    schema.client().batch_execute(drop).unwrap();
    let error = store.scan_contradictions(None, 1).unwrap_err();
    assert!(matches!(error, StoreError::Database(_)), "{error:?}");
    assert!(error.to_string().contains("contradictions"), "{error}");
}

#[test]
fn a_database_of_another_encoding_is_refused() {
    let Some(schema) = Schema::new() else { return };
    let name = format!("latin_{}", schema.name());
    schema
        .client()
        .batch_execute(&format!(
            "CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0"
        ))
        .unwrap();
    let url = schema
        .url()
        .replace("dbname=postgres", &format!("dbname={name}"));
    let text = refusal(&url, None);
    let dropped = schema
        .client()
        .batch_execute(&format!("DROP DATABASE {name}"));
    assert!(text.contains("UTF-8"), "{text}");
    dropped.unwrap();
}

#[test]
fn gated_rows_have_no_words() {
    let Some(schema) = Schema::new() else { return };
    let mut store = schema.open();
    let hidden = rows::moved(&rows::Sketch::new(3).row(), rows::hide);
    let all = [
        rows::Sketch::new(1).row(),
        rows::Sketch::new(2).gated().row(),
    ];
    store
        .write(&mut |writing| {
            writing.insert(&all)?;
            writing.insert(&rows::rows([3]))?;
            writing.replace(&hidden).map(|()| Verdict::Commit)
        })
        .unwrap();
    let text = "SELECT words IS NULL FROM beliefs ORDER BY n";
    let found = schema.client().query(text, &[]).unwrap();
    let without: Vec<bool> = found.iter().map(|row| row.get(0)).collect();
    assert_eq!(without, [false, true, true]);
}
