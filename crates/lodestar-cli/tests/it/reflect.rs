//! `lodestar reflect`

use serde_json::json;

use crate::governed::{Governed, keyring, stable, state_db};
use crate::world::{World, log_key};
use lodestar_core::chain::Truth;
use lodestar_firewall::Finding;
use lodestar_firewall::store::SqliteStore;
use lodestar_guard::{Operator, OperatorSession};
use lodestar_log::Trust;

/// A decision on a belief that is contradicted afterwards.
fn contradicted() -> World {
    let world = World::new();
    let mut session = Governed::open(&world, "s-1");
    let read = session.read("DEVELOPMENT.md", "# Setup\n\nrun make\n");
    let predicate = read.adopted.claims[1].predicate.clone();
    let rumour = read.beliefs()[1].id;
    session.decide("run make?", &[rumour]);
    let direct = session.measure(&predicate.subject, &predicate.relation, json!("other"));
    session.close();
    let mut session = OperatorSession::open(Operator {
        log: world.log("web"),
        key: log_key().into(),
        trust: Trust::only(log_key().public()),
        keyring: keyring(),
        store: Box::new(SqliteStore::open(&state_db(&world)).expect("opened")),
        actor: crate::world::actor(),
        purpose: "a sentinel's finding",
    })
    .expect("opened");
    let (firewall, seats, recorder) = session.parts();
    firewall
        .shift(
            &seats.sentinel,
            rumour,
            Truth::Contradicted.into(),
            Finding::SaysOtherwise(direct),
            recorder,
        )
        .expect("moved");
    session.close("done").expect("closed");
    world
}

#[test]
fn a_decision_on_what_turned_out_wrong_is_proposed_for_another_look() {
    let world = contradicted();
    let sessions = world.log("web").sessions_on_disk().expect("read").len();
    let run = world.run(&["reflect", "s-1"]).expect(0);
    insta::assert_snapshot!("proposed", stable(&world, &run.out));
    let again = world.run(&["reflect", "s-1"]).expect(0);
    assert_eq!(run.out, again.out);
    assert_eq!(
        world.log("web").sessions_on_disk().expect("read").len(),
        sessions
    );
    let run = world.run(&["reflect", "s-1", "--apply"]).expect(0);
    insta::assert_snapshot!("applied", stable(&world, &run.out));
    let events = world
        .run(&["log", "show", "latest", "--json"])
        .expect(0)
        .ndjson();
    let kinds: Vec<_> = events.iter().filter_map(|e| e["type"].as_str()).collect();
    assert!(kinds.contains(&"reflection.completed@1"), "{kinds:?}");
    assert!(kinds.contains(&"revision.made@1"), "{kinds:?}");
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn nothing_to_say_is_said() {
    let world = World::new();
    let mut session = Governed::open(&world, "s-1");
    session.measure("file:a.txt", "exists", json!(true));
    session.close();
    let run = world.run(&["reflect", "latest"]).expect(0);
    assert!(
        run.out.contains("nothing to propose for s-1"),
        "{}",
        run.out
    );
    let report = world.run(&["reflect", "latest", "--json"]).expect(0).json();
    assert_eq!(report["reflected"]["proposals"], json!([]));
    world.run(&["reflect", "nope"]).expect(3);
}
