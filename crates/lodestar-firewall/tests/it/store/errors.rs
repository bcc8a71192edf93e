//! Each way in which a store refuses, and what it says then.

use std::path::PathBuf;

use lodestar_firewall::store::{SqliteStore, Store, StoreError, Verdict};

use super::rows;

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file() -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    File {
        _folder: folder,
        path,
    }
}

fn refusal(file: &File) -> StoreError {
    SqliteStore::open(&file.path).unwrap_err()
}

fn tamper(file: &File, statement: &str) {
    let connection = rusqlite::Connection::open(&file.path).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[test]
fn a_file_that_is_no_database() {
    let file = file();
    std::fs::write(&file.path, "these are my notes. ".repeat(100)).unwrap();
    let error = refusal(&file);
    assert!(matches!(error, StoreError::Open { .. }));
    let text = error.to_string();
    assert!(text.contains("not a SQLite database"), "{text}");
    assert!(text.contains("state.db"), "{text}");
    let kept = std::fs::read_to_string(&file.path).unwrap();
    assert!(kept.starts_with("these are my notes"), "left as it was");
}

#[test]
fn a_database_of_another_program() {
    let file = file();
    tamper(&file, "CREATE TABLE beliefs (mine)");
    let text = refusal(&file).to_string();
    assert!(text.contains("another program"), "{text}");

    tamper(&file, "PRAGMA user_version = 1");
    let text = refusal(&file).to_string();
    assert!(text.contains("another program"), "{text}");
}

#[test]
fn a_store_of_a_newer_program() {
    let file = file();
    SqliteStore::open(&file.path).unwrap();
    tamper(&file, "PRAGMA user_version = 99");
    let error = refusal(&file);
    assert!(
        matches!(error, StoreError::TooNew { found: 99, known } if known < 99),
        "{error:?}"
    );
    assert!(error.to_string().contains("schema version 99"));
}

#[test]
fn a_link_and_a_folder() {
    let file = file();
    std::os::unix::fs::symlink("elsewhere.db", &file.path).unwrap();
    let text = refusal(&file).to_string();
    assert!(text.contains("symbolic link"), "{text}");
    std::fs::remove_file(&file.path).unwrap();
    std::fs::create_dir(&file.path).unwrap();
    assert!(matches!(refusal(&file), StoreError::Open { .. }));
}

#[test]
fn a_database_that_fails_in_the_middle() {
    let file = file();
    let mut store = SqliteStore::open(&file.path).unwrap();
    tamper(&file, "DROP TABLE contradictions");
    let error = store.scan_contradictions(None, 1).unwrap_err();
    assert!(matches!(error, StoreError::Database(_)), "{error:?}");
    assert!(error.to_string().contains("the belief store failed"));
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_conflict_names_the_belief() {
    let mut store = SqliteStore::in_memory().unwrap();
    let error = store
        .write(&mut |writing| {
            writing.insert(&rows::rows([1, 1]))?;
            Ok(Verdict::Commit)
        })
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&rows::id(1).to_string()), "{text}");
    assert!(text.ends_with("it is there already"), "{text}");
}

#[test]
fn an_error_that_was_passed_over() {
    let mut store = SqliteStore::in_memory().unwrap();
    let error = store
        .write(&mut |writing| {
            let _ = writing.insert(&rows::rows([1, 1]));
            Ok(Verdict::Commit)
        })
        .unwrap_err();
    assert!(matches!(error, StoreError::PassedOver));
    assert!(error.to_string().contains("none of it was kept"));
}
