//! A store that was lost is made again, row by row.

use lodestar_core::chain::Truth;
use lodestar_core::defence::Defence;
use lodestar_firewall::store::{MemoryStore, Store};
use lodestar_guard::{Operator, OperatorSession};
use lodestar_log::Reader;
use serde_json::json;

use crate::world::{World, key, measure, promote, read, rows};

/// One session of many: reads what others read, measures what others measured, promotes something.
fn busy_session(world: &World, number: usize) {
    let mut session = world.open();
    let shared = format!("shared-{}.md", number % 7);
    read(
        &mut session,
        &shared,
        &format!("# Heading {number}\n\nRun `make x{number}`.\n"),
    );
    measure(&mut session, &shared, "status", json!(number));
    if number.is_multiple_of(3) {
        let outcome = read(&mut session, "notes.md", "# Notes\n");
        let rumour = outcome
            .beliefs()
            .iter()
            .find(|belief| belief.axes.truth == Truth::Unverified)
            .unwrap();
        promote(&mut session, rumour.id);
    }
    session.close("done").unwrap();
}

#[test]
fn a_store_made_again_from_a_hundred_sessions_equals_the_live_one() {
    let world = World::new();
    for number in 0..100 {
        busy_session(&world, number);
    }
    let mut live_store = world.store();
    let live = rows(&mut live_store);
    assert!(live.len() > 300);
    assert!(live.iter().any(|row| row.truth == "superseded"));
    let mut again = MemoryStore::new();
    let followed = world.rebuild_into(&mut again);
    assert_eq!(followed.sessions, 100);
    assert!(followed.refused.is_empty() && followed.left.is_empty());
    assert_eq!(rows(&mut again), live);
    for row in &live {
        let id = row.belief_id().unwrap();
        assert_eq!(
            again.history(&id).unwrap(),
            live_store.history(&id).unwrap()
        );
    }
    let pairs = |store: &mut dyn Store| store.scan_contradictions(None, 1_000_000).unwrap();
    assert_eq!(pairs(&mut again), pairs(&mut live_store));
    println!(
        "{} sessions, {} events, {} rows equal",
        followed.sessions,
        followed.events,
        live.len()
    );
    let report = world.examine();
    assert!(
        report.is_sound() && report.findings.is_empty(),
        "{:?}",
        report.findings
    );
}

#[test]
fn deleting_the_database_loses_nothing() {
    let world = World::new();
    busy_session(&world, 0);
    let before = rows(&mut world.store());
    for suffix in ["", "-wal", "-shm"] {
        let path = world.database().with_file_name(format!("state.db{suffix}"));
        let _ = std::fs::remove_file(path);
    }
    assert!(rows(&mut world.store()).is_empty());
    // The next session catches up by itself.
    let session = world.open();
    assert!(session.followed().events >= 4);
    session.close("done").unwrap();
    assert_eq!(rows(&mut world.store()), before);
}

#[test]
fn a_rebuild_leaves_the_same_store_when_it_is_made_twice() {
    let world = World::new();
    for number in 0..4 {
        busy_session(&world, number);
    }
    let before = rows(&mut world.store());
    let mut store = world.store();
    for _ in 0..2 {
        world.rebuild_into(&mut store);
        assert_eq!(rows(&mut store), before);
    }
}

#[test]
fn an_operators_session_that_lacks_a_defence_says_so_and_counts_for_nobody() {
    let world = World::new();
    let lacking = world.keyring().without(&[Defence::Supersession]);
    let mut session = OperatorSession::open(Operator {
        log: world.log.clone(),
        key: key(),
        trust: world.trust(),
        keyring: lacking,
        store: Box::new(MemoryStore::new()),
        actor: "tester".parse().unwrap(),
        purpose: "a test",
    })
    .unwrap();
    measure(&mut session, "a.md", "status", json!("kept"));
    let id = session.id().clone();
    session.close("done").unwrap();
    let dir = world.log.session(&id);
    let opened = Reader::open(&dir).unwrap().next().unwrap().unwrap();
    let opened = opened.whole(&dir).unwrap().unwrap();
    assert_eq!(opened["defences_off"], json!(["supersession"]));
    let mut store = MemoryStore::new();
    assert_eq!(world.rebuild_into(&mut store).refused.len(), 1);
    assert!(rows(&mut store).is_empty());
}
