//! Whoever edits a row past the store is found out.

use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::store::{SqliteStore, Store, Verdict};

use super::cluster::Schema;
use super::rows::{Sketch, hide, id, keys, moved};

/// The columns of a row with one edit each, in SQL that both databases read, or `None` where the
/// edit depends on the database.
const TEXTS: [&str; 23] = [
    "scope",
    "subject",
    "relation",
    "object",
    "statement",
    "claim",
    "evidence",
    "authority",
    "class",
    "quality",
    "truth",
    "retrieval",
    "security",
    "freshness",
    "server",
    "tool",
    "project",
    "session",
    "changed_project",
    "changed_session",
    "signer",
    "id",
    "confidence",
];
const NUMBERS: [&str; 8] = [
    "key",
    "sensitivity",
    "observed_at",
    "adopted_at",
    "due_at",
    "revision",
    "seq",
    "changed_seq",
];
const HASHES: [&str; 2] = ["leaf", "changed_leaf"];

/// Every edit of one column: an addition, nothing, and for bytes other lengths.
fn edits(bytes: fn(&str) -> String) -> Vec<(&'static str, String)> {
    let mut edits = Vec::new();
    for column in TEXTS {
        match column {
            "confidence" => edits.push((column, "confidence * 0.5".to_owned())),
            "server" | "tool" => {
                edits.push((column, format!("{column} || 'x'")));
                edits.push((column, "NULL".to_owned()));
            }
            _ => {
                edits.push((column, format!("{column} || 'x'")));
                edits.push((column, "''".to_owned()));
            }
        }
    }
    for column in NUMBERS {
        edits.push((column, format!("{column} + 1")));
        edits.push((column, format!("{column} - 1")));
    }
    edits.push(("key", "NULL".to_owned()));
    edits.push(("due_at", "NULL".to_owned()));
    for column in HASHES {
        for hex in ["00", "", &"0".repeat(64), &"f".repeat(66)] {
            edits.push((column, bytes(hex)));
        }
    }
    edits
}

/// Takes each edit, reads the only row, and puts the row back.
fn every_edit_is_found(
    store: &mut dyn Store,
    bytes: fn(&str) -> String,
    edit: &mut dyn FnMut(&str),
) {
    let ring = keys(1);
    let before = moved(&Sketch::new(1).row(), hide);
    store
        .write(&mut |writing| {
            writing.insert(std::slice::from_ref(&before))?;
            Ok(Verdict::Commit)
        })
        .unwrap();
    edit("CREATE TABLE kept AS SELECT * FROM beliefs");
    let edits = edits(bytes);
    for (column, value) in &edits {
        edit(&format!("UPDATE beliefs SET {column} = {value}"));
        let row = only(store);
        assert_ne!(row, before, "{column} = {value} changed nothing");
        let standing = ring.standing(&row);
        assert_ne!(standing, Standing::Genuine, "{column} = {value}");
        edit(&format!(
            "UPDATE beliefs SET {column} = (SELECT {column} FROM kept)"
        ));
        assert_eq!(only(store), before, "{column} is put back");
    }
    signature_and_seal(store, bytes, edit);
}

/// Each of the two proves the row alone; without both there is no proof.
fn signature_and_seal(
    store: &mut dyn Store,
    bytes: fn(&str) -> String,
    edit: &mut dyn FnMut(&str),
) {
    let ring = keys(1);
    let other = keys(2).trusting([lodestar_core::key::SecretKey::from_seed([1; 32]).public()]);
    edit(&format!("UPDATE beliefs SET signature = {}", bytes("00")));
    let row = only(store);
    assert_eq!(ring.standing(&row), Standing::Genuine, "by its seal");
    assert!(!ring.has_right_signature(&row), "an audit tells");
    assert_eq!(other.standing(&row), Standing::Edited, "others see no seal");

    edit("UPDATE beliefs SET signature = (SELECT signature FROM kept)");
    for seal in ["00".repeat(32), "00".to_owned(), String::new()] {
        edit(&format!("UPDATE beliefs SET seal = {}", bytes(&seal)));
        let standing = ring.standing(&only(store));
        assert_eq!(standing, Standing::Genuine, "by its signature");
    }
    edit(&format!("UPDATE beliefs SET signature = {}", bytes("00")));
    assert_eq!(ring.standing(&only(store)), Standing::Edited);
}

fn only(store: &mut dyn Store) -> StoredRow {
    let rows = store.scan(None, 9).unwrap();
    match <[StoredRow; 1]>::try_from(rows) {
        Ok([row]) => row,
        // An id that is empty or longer is behind nothing, or not the one asked for.
        Err(_) => store.list(&everything()).unwrap().remove(0),
    }
}

fn everything() -> lodestar_firewall::store::ListQuery {
    lodestar_firewall::store::ListQuery {
        limit: 9,
        ..Default::default()
    }
}

#[test]
fn in_sqlite_every_column_is_under_the_signature() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    every_edit_is_found(&mut store, |hex| format!("x'{hex}'"), &mut |statement| {
        connection.execute_batch(statement).unwrap()
    });
}

#[test]
fn in_postgres_every_column_is_under_the_signature() {
    let Some(schema) = Schema::new() else { return };
    let mut store = schema.open();
    let mut client = schema.client();
    every_edit_is_found(
        &mut store,
        |hex| format!("decode('{hex}', 'hex')"),
        &mut |statement| client.batch_execute(statement).unwrap(),
    );
}

/// One bad row must not hide the others, whatever was written into it.
#[test]
fn in_sqlite_a_row_of_the_wrong_types_is_read_and_left_for_edited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let rows = super::rows::rows([1, 2]);
    store
        .write(&mut |writing| writing.insert(&rows).map(|()| Verdict::Commit))
        .unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute(
            "UPDATE beliefs SET statement = CAST(x'ff00fe' AS TEXT) WHERE id = ?1",
            [id(1).to_string()],
        )
        .unwrap();
    let read = store.scan(None, 9).unwrap();
    let standings: Vec<_> = read.iter().map(|row| keys(1).standing(row)).collect();
    assert_eq!(standings, [Standing::Edited, Standing::Genuine]);
}
