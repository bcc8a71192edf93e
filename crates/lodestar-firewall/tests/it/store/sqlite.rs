//! What is SQLite's alone: its file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lodestar_firewall::store::{SqliteStore, Store, StoreError, Verdict};

use super::rows::{self, Sketch, hide, moved};

fn insert(store: &mut SqliteStore, numbers: std::ops::Range<u64>) {
    let rows = rows::rows(numbers);
    store
        .write(&mut |writing| writing.insert(&rows).map(|()| Verdict::Commit))
        .unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn only_its_owner_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut store = SqliteStore::open(&path).unwrap();
    insert(&mut store, 0..3);
    let files = std::fs::read_dir(folder.path()).unwrap();
    let modes: Vec<_> = files.map(|file| mode(&file.unwrap().path())).collect();
    assert!(modes.len() > 1, "the log of SQLite lies beside it");
    assert!(modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
    drop(store);

    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    SqliteStore::open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn it_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    insert(&mut SqliteStore::open(&path).unwrap(), 0..5);
    let mut again = SqliteStore::open(&path).unwrap();
    assert_eq!(again.scan(None, 9).unwrap(), rows::rows(0..5));
    assert!(again.describe().contains("state.db"));
}

#[test]
fn readers_see_what_is_committed_while_a_writer_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut writer = SqliteStore::open(&path).unwrap();
    let mut reader = SqliteStore::open(&path).unwrap();
    insert(&mut writer, 0..2);
    writer
        .write(&mut |writing| {
            writing.insert(&rows::rows(2..9))?;
            assert_eq!(reader.scan(None, 99)?.len(), 2);
            Ok(Verdict::Commit)
        })
        .unwrap();
    assert_eq!(reader.scan(None, 99).unwrap().len(), 9);
}

#[test]
fn work_that_panics_leaves_nothing_and_the_store_goes_on() {
    let mut store = SqliteStore::in_memory().unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.write(&mut |writing| {
            writing.insert(&rows::rows(0..3))?;
            panic!("the work broke")
        })
    }));
    assert!(outcome.is_err());
    insert(&mut store, 0..2);
    assert_eq!(store.scan(None, 99).unwrap().len(), 2);
}

/// What was read must not come back by way of the search index, not even as bytes on the disk.
#[test]
fn the_search_index_has_no_word_of_gated_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let eligible = Sketch::new(1).says("alphaword");
    let gated = Sketch::new(2).says("betaword").gated();
    let hidden = Sketch::new(3).says("gammaword");
    store
        .write(&mut |writing| {
            writing.insert(&[eligible.row(), gated.row(), hidden.row()])?;
            writing.replace(&moved(&hidden.row(), hide))?;
            Ok(Verdict::Commit)
        })
        .unwrap();
    // Enough for the words to go from where they wait into the index.
    insert(&mut store, 10..700);
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE VIRTUAL TABLE terms USING fts5vocab(search, 'instance')")
        .unwrap();
    let terms: Vec<String> = connection
        .prepare("SELECT DISTINCT term FROM terms")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(terms.contains(&"alphaword".to_owned()), "{terms:?}");
    assert!(!terms.contains(&"betaword".to_owned()), "{terms:?}");
    assert!(!terms.contains(&"gammaword".to_owned()), "{terms:?}");
}

#[test]
fn a_store_within_a_missing_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let refused = SqliteStore::open(&folder.path().join("missing/state.db"));
    assert!(matches!(refused, Err(StoreError::Open { .. })));
}
