//! Edited rows, planted sessions, changed logs: named, and without effect.

use std::fs;

use lodestar_core::chain::{Security, Truth};
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::store::{MemoryStore, Store as _};
use lodestar_firewall::{ContextPolicy, Finding, Firewall};
use lodestar_guard::{GuardError, Operator, OperatorSession, SystemSurroundings};
use lodestar_log::{LogWriter, WriterOptions};
use lodestar_replay::{ReplayError, StoreFinding, catch_up, rebuild};
use rusqlite::Connection;
use serde_json::json;

use crate::world::{World, key, measure, read, rows, scope};

fn world_with_a_fact() -> World {
    let world = World::new();
    let mut session = world.open();
    measure(&mut session, "a.md", "status", json!("kept"));
    read(&mut session, "a.md", "POISON");
    session.close("done").unwrap();
    world
}

#[test]
fn an_edited_row_is_named_and_reaches_no_context() {
    let world = world_with_a_fact();
    let edits = [
        "UPDATE beliefs SET truth = 'supported', retrieval = 'normal' WHERE truth = 'unverified'",
        "UPDATE beliefs SET statement = 'all is well' WHERE truth = 'supported'",
        "UPDATE beliefs SET scope = 'global' WHERE truth = 'supported'",
        "UPDATE beliefs SET observed_at = observed_at + 1",
        "UPDATE beliefs SET project = 'elsewhere', session = 'other'",
        "UPDATE beliefs SET leaf = zeroblob(32), changed_seq = 0",
    ];
    let original = fs::read(world.database()).unwrap();
    for edit in edits {
        fs::write(world.database(), &original).unwrap();
        let edited = Connection::open(world.database())
            .unwrap()
            .execute(edit, [])
            .unwrap();
        assert!(edited > 0);
        let report = world.examine();
        let named = report
            .findings
            .iter()
            .filter(|finding| matches!(finding, StoreFinding::Edited { .. }))
            .count();
        assert_eq!(named, edited, "{edit}: {:?}", report.findings);
        assert!(!report.is_sound());
        let (mut firewall, _) = Firewall::open(
            Box::new(world.store()),
            world.keyring(),
            Extractors::built_in(),
            Box::new(SystemSurroundings::default()),
        );
        let policy = ContextPolicy::default();
        let context = firewall.context(&policy, &scope(), None, 10).unwrap();
        let shown = serde_json::to_string(&context.beliefs).unwrap();
        assert!(
            !shown.contains("POISON") && !shown.contains("all is well"),
            "{edit}"
        );
        assert!(context.beliefs.len() + edited >= 2 || edited >= 2, "{edit}");
        drop(firewall);
        world.rebuild_into(&mut world.store());
        assert!(world.examine().is_sound());
    }
}

#[test]
fn a_deleted_row_and_one_put_back_to_an_older_state_are_named() {
    let world = world_with_a_fact();
    let old = fs::read(world.database()).unwrap();
    let mut session = world.open();
    measure(&mut session, "a.md", "status", json!("changed"));
    session.close("done").unwrap();
    // The older row is genuine; only the log knows that it was superseded since.
    let database = Connection::open(world.database()).unwrap();
    let scratch = world.folder.join("old.db");
    fs::write(&scratch, old).unwrap();
    let columns = "truth, revision, changed_project, changed_session, changed_seq, changed_leaf, \
                   signer, signature, seal";
    database
        .execute_batch(&format!(
            "ATTACH '{}' AS old;
             UPDATE beliefs SET ({columns}) =
                 (SELECT {columns} FROM old.beliefs AS o WHERE o.id = beliefs.id)
             WHERE truth = 'superseded';",
            scratch.display()
        ))
        .unwrap();
    let report = world.examine();
    assert!(
        report.findings.iter().any(
            |f| matches!(f, StoreFinding::Differs { columns, .. } if columns.contains(&"truth"))
        ),
        "{:?}",
        report.findings
    );
    database
        .execute("DELETE FROM beliefs WHERE truth = 'supported'", [])
        .unwrap();
    let report = world.examine();
    assert!(
        report
            .findings
            .iter()
            .any(|f| matches!(f, StoreFinding::Missing { .. }))
    );
}

#[test]
fn a_planted_session_counts_for_nothing_and_is_named() {
    let world = world_with_a_fact();
    let honest = rows(&mut world.store());
    // A whole session out of another project of the same installation: every signature in it is good.
    let elsewhere = World::new();
    let mut session = elsewhere.open();
    measure(&mut session, "a.md", "status", json!("planted"));
    let name = session.id().clone();
    session.close("done").unwrap();
    let from = elsewhere.log.session(&name);
    let to = world.log.session(&name);
    fs::create_dir_all(to.dir()).unwrap();
    for entry in fs::read_dir(from.dir()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.dir().join(entry.file_name())).unwrap();
        }
    }
    let mut store = MemoryStore::new();
    let followed = world.rebuild_into(&mut store);
    assert_eq!(followed.refused.len(), 1);
    assert_eq!(followed.refused[0].session, name.to_string());
    assert_eq!(rows(&mut store), honest);
    let caught_up = catch_up(
        &mut world.store(),
        &world.keyring(),
        &world.log,
        &world.trust(),
    );
    assert_eq!(caught_up.unwrap().events, 0);
    let report = world.examine();
    let named = |f: &StoreFinding| matches!(f, StoreFinding::RefusedSession { session, .. } if *session == name.to_string());
    assert!(report.findings.iter().any(named) && !report.is_sound());
}

#[test]
fn a_session_whose_log_was_changed_is_passed_over_and_a_changed_ledger_stops_everything() {
    let world = world_with_a_fact();
    let before = rows(&mut world.store());
    let session = world.log.sessions_on_disk().unwrap().remove(0);
    let events = world.log.session(&session).events_path();
    let text = fs::read_to_string(&events).unwrap();
    fs::write(&events, text.replace("\"kept\"", "\"lost\"")).unwrap();
    let mut store = MemoryStore::new();
    let followed = world.rebuild_into(&mut store);
    assert_eq!((followed.refused.len(), followed.events), (1, 0));
    fs::write(&events, text).unwrap();

    let ledger = world.log.ledger_path();
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(
        &ledger,
        text.replace("ledger.session_closed", "ledger.session_clozed"),
    )
    .unwrap();
    let mut store = world.store();
    let refused = rebuild(
        &mut store,
        &world.keyring(),
        &world.log,
        &world.trust(),
        &mut |_| (),
    );
    assert!(
        matches!(refused, Err(ReplayError::Ledger(_))),
        "{refused:?}"
    );
    assert_eq!(rows(&mut store), before, "and the store is as it was");
}

#[test]
fn a_session_with_defences_taken_out_is_refused() {
    let world = world_with_a_fact();
    let mut session = world.open();
    session.parts();
    session.close("done").unwrap();
    let name = "probe".parse().unwrap();
    let actor = "probe".parse().unwrap();
    let opening = json!({"defences_off": ["gate"]});
    let options = WriterOptions::new(key());
    let writer = LogWriter::create(&world.log, &name, &actor, &opening, &options).unwrap();
    writer.close(&actor, &json!({})).unwrap();
    drop(writer);
    let followed = world.rebuild_into(&mut MemoryStore::new());
    assert_eq!(followed.refused.len(), 1);
    assert!(followed.refused[0].reason.contains("defences_off"));
    assert!(
        world
            .store()
            .logs()
            .unwrap()
            .iter()
            .all(|log| log.log.session.as_str() != "probe")
    );
}

/// A fact in one session, and its quarantine in another.
fn world_with_a_quarantine() -> (World, lodestar_core::name::SessionId) {
    let world = World::new();
    let mut session = world.open();
    let fact = measure(&mut session, "a.md", "status", json!("kept"));
    session.close("done").unwrap();
    let mut session = world.open();
    let name = session.id().clone();
    let (firewall, seats, recorder) = session.parts();
    let finding = Finding::Words("it is an attack");
    let to = Security::Quarantined.into();
    firewall
        .shift(&seats.sentinel, fact, to, finding, recorder)
        .unwrap();
    session.close("done").unwrap();
    (world, name)
}

fn lose_the_store(world: &World) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(world.database().with_file_name(format!("state.db{suffix}")));
    }
}

fn try_open(world: &World) -> Result<OperatorSession, GuardError> {
    OperatorSession::open(Operator {
        log: world.log.clone(),
        key: key(),
        trust: world.trust(),
        keyring: world.keyring(),
        store: Box::new(world.store()),
        actor: "tester".parse().unwrap(),
        purpose: "a test",
    })
}

#[test]
fn losing_a_session_and_the_store_does_not_lift_a_quarantine_in_silence() {
    let spoil: [fn(&World, &lodestar_core::name::SessionId); 2] = [
        |world, name| fs::remove_dir_all(world.log.session(name).dir()).unwrap(),
        |world, name| {
            let path = world.log.session(name).events_path();
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("an attack", "a mistake")).unwrap();
        },
    ];
    for spoil in spoil {
        let (world, name) = world_with_a_quarantine();
        spoil(&world, &name);
        // While the store is there, nothing is lost.
        try_open(&world).unwrap().close("done").unwrap();
        lose_the_store(&world);
        let refused = try_open(&world).unwrap_err();
        assert!(
            matches!(&refused, GuardError::Replay(ReplayError::Lost { session, .. }) if *session == name),
            "{refused}"
        );
        // A person may go on without it, and is told so.
        let followed = world.rebuild_into(&mut world.store());
        assert_eq!(followed.refused[0].session, name.to_string());
        try_open(&world).unwrap().close("done").unwrap();
        assert!(!world.examine().is_sound(), "the log is still damaged");
    }
}

#[test]
fn a_rebuild_waits_until_nobody_writes() {
    let world = world_with_a_fact();
    let session = world.open();
    let mut store = world.store();
    let refused = rebuild(
        &mut store,
        &world.keyring(),
        &world.log,
        &world.trust(),
        &mut |_| (),
    );
    assert!(
        matches!(&refused, Err(ReplayError::Live { session: live }) if live == session.id()),
        "{refused:?}"
    );
    session.close("done").unwrap();
    world.rebuild_into(&mut store);
}

#[test]
fn a_neighbours_quarantine_survives_a_rebuild_here() {
    let world = world_with_a_fact();
    let fact = rows(&mut world.store())
        .into_iter()
        .find(|row| row.truth == Truth::Supported.as_str() && row.subject == "file:a.md")
        .unwrap();
    let neighbour = std::sync::Arc::new(lodestar_core::key::SecretKey::from_seed([2; 32]));
    let elsewhere = World::new();
    let keyring =
        lodestar_firewall::row::keys::Keyring::new(neighbour.clone()).trusting([key().public()]);
    let mut theirs = OperatorSession::open(Operator {
        log: elsewhere.log.clone(),
        key: neighbour.clone(),
        trust: lodestar_log::Trust::only(neighbour.public()),
        keyring,
        store: Box::new(world.store()),
        actor: "neighbour".parse().unwrap(),
        purpose: "a test",
    })
    .unwrap();
    let (firewall, seats, recorder) = theirs.parts();
    let id = fact.belief_id().unwrap();
    let to = Security::Quarantined.into();
    let finding = Finding::Words("seen elsewhere");
    firewall
        .shift(&seats.sentinel, id, to, finding, recorder)
        .unwrap();
    theirs.close("done").unwrap();
    let keyring = world.keyring().trusting([neighbour.public()]);
    let mut store = world.store();
    rebuild(
        &mut store,
        &keyring,
        &world.log,
        &world.trust(),
        &mut |_| (),
    )
    .unwrap();
    let row = store.row(&id).unwrap().unwrap();
    assert_eq!(row.security, Security::Quarantined.as_str());
}

fn has(world: &World, wanted: impl Fn(&StoreFinding) -> bool) -> bool {
    world.examine().findings.iter().any(wanted)
}

#[test]
fn a_store_that_lags_or_runs_ahead_is_named() {
    let world = world_with_a_fact();
    let old = fs::read(world.database()).unwrap();
    let mut session = world.open();
    measure(&mut session, "b.md", "status", json!("new"));
    session.close("done").unwrap();
    fs::write(world.database(), old).unwrap();
    assert!(has(&world, |f| matches!(f, StoreFinding::Behind { .. })));
    assert!(has(&world, |f| matches!(f, StoreFinding::Missing { .. })));
    catch_up(
        &mut world.store(),
        &world.keyring(),
        &world.log,
        &world.trust(),
    )
    .unwrap();
    assert!(world.examine().findings.is_empty());
    let database = Connection::open(world.database()).unwrap();
    database.execute("UPDATE logs SET next = 1000", []).unwrap();
    assert!(has(&world, |f| matches!(
        f,
        StoreFinding::Ahead { next: 1000, .. }
    )));
}

#[test]
fn a_genuine_row_that_no_log_here_has_is_named() {
    let world = world_with_a_fact();
    let elsewhere = world_with_a_fact();
    let database = Connection::open(world.database()).unwrap();
    let columns = "id, key, scope, subject, relation, object, statement, claim, evidence, authority, \
                   confidence, class, sensitivity, quality, truth, retrieval, security, freshness, \
                   observed_at, adopted_at, due_at, server, tool, revision, project, session, seq, leaf, \
                   changed_project, changed_session, changed_seq, changed_leaf, signer, signature, seal";
    let from = elsewhere.database().display().to_string();
    let batch = format!(
        "ATTACH '{from}' AS other; INSERT INTO beliefs ({columns}) SELECT {columns} FROM other.beliefs;"
    );
    database.execute_batch(&batch).unwrap();
    assert!(has(&world, |f| matches!(f, StoreFinding::NotInLog { .. })));
    assert!(!world.examine().is_sound());
}

#[test]
fn a_redacted_change_is_named_since_what_it_set_apart_may_stand_again() {
    let (world, name) = world_with_a_quarantine();
    let operator = lodestar_core::key::SecretKey::from_seed([9; 32]);
    let trust = lodestar_log::Trust {
        operators: vec![operator.public()],
        ..world.trust()
    };
    let mut events = lodestar_log::Reader::open(&world.log.session(&name)).unwrap();
    let moved = events
        .find_map(|event| event.ok().filter(|event| event.kind == "belief.moved@1"))
        .unwrap();
    lodestar_log::redact(
        &world.log,
        &name,
        &[moved.seq].into(),
        "a name stood in it",
        &operator,
        &trust,
        &WriterOptions::new(key()),
    )
    .unwrap();
    let mut store = world.store();
    let keyring = world.keyring();
    let followed = rebuild(&mut store, &keyring, &world.log, &trust, &mut |_| ()).unwrap();
    assert_eq!(followed.redacted, [(name.to_string(), moved.seq)]);
    let report =
        lodestar_replay::examine(&mut store, &keyring, &world.log, &trust, &mut |_| ()).unwrap();
    let is_named = |f: &StoreFinding| matches!(f, StoreFinding::Redacted { .. });
    assert!(report.findings.iter().any(is_named) && !report.is_sound());
}

#[test]
fn a_deleted_row_leaves_no_trace_that_a_rebuild_stumbles_over() {
    let world = world_with_a_fact();
    let before = rows(&mut world.store());
    let database = Connection::open(world.database()).unwrap();
    database
        .execute("DELETE FROM beliefs WHERE truth = 'supported'", [])
        .unwrap();
    let (mut firewall, _) = Firewall::open(
        Box::new(world.store()),
        world.keyring(),
        Extractors::built_in(),
        Box::new(SystemSurroundings::default()),
    );
    let policy = ContextPolicy::default();
    let context = firewall.context(&policy, &scope(), None, 10).unwrap();
    assert!(context.beliefs.is_empty());
    world.rebuild_into(&mut world.store());
    assert_eq!(rows(&mut world.store()), before);
    let context = firewall.context(&policy, &scope(), None, 10).unwrap();
    assert_eq!(context.beliefs.len(), 2);
    // The index alone: a rebuild makes it again.
    database.execute_batch("DELETE FROM waiting").unwrap();
    world.rebuild_into(&mut world.store());
    let context = firewall.context(&policy, &scope(), None, 10).unwrap();
    assert_eq!(context.beliefs.len(), 2);
}

#[test]
fn a_forged_history_and_a_forged_contradiction_are_named() {
    let (world, _) = world_with_a_quarantine();
    assert!(world.examine().findings.is_empty());
    let database = Connection::open(world.database()).unwrap();
    database
        .execute(
            "UPDATE history SET change = replace(change, 'sentinel', 'policy')",
            [],
        )
        .unwrap();
    let id = rows(&mut world.store()).remove(0).id;
    database
        .execute("INSERT INTO contradictions VALUES (?1, ?1)", [&id])
        .unwrap();
    assert!(has(&world, |f| matches!(
        f,
        StoreFinding::HistoryDiffers { .. }
    )));
    let is_forged =
        |f: &StoreFinding| matches!(f, StoreFinding::ContradictionDiffers { in_store: true, .. });
    assert!(has(&world, is_forged));
    world.rebuild_into(&mut world.store());
    assert!(world.examine().findings.is_empty());
}
