//! Several sessions over one store, rows that were edited, stores that lag, reflection.

use std::sync::Arc;

use lodestar_core::chain::{
    BeliefAuthority, Choice, Decision, DecisionOrigin, NonEmpty, Retrieval, Truth,
};
use lodestar_core::id::DecisionId;
use lodestar_firewall::event::{FirewallEvent, Proposal};
use lodestar_firewall::fold::{self, FoldError};
use lodestar_firewall::reflect::{Window, apply, propose};
use lodestar_firewall::row::keys::{Keyring, Standing};
use lodestar_firewall::store::{ListQuery, MemoryStore, SqliteStore, Store, Verdict};
use serde_json::json;

use crate::world::{DAY, World, about, key};

fn sqlite(dir: &tempfile::TempDir) -> Box<dyn Store> {
    Box::new(SqliteStore::open(&dir.path().join("state.db")).unwrap())
}

#[test]
fn another_session_sees_poisoned_memory_as_unverified_and_the_envelope_in_its_context() {
    let dir = tempfile::tempdir().unwrap();
    let mut a = World::over(sqlite(&dir), "session-a", World::new().weather);
    let read = a.read("DEVELOPMENT.md", "POISON-MARKER\nstatus = POISON-MARKER");
    let poisoned = about(&read, "status");
    let weather = a.weather.clone();
    drop(a);
    let mut b = World::over(sqlite(&dir), "session-b", weather);
    let belief = b.belief(poisoned);
    assert_eq!(belief.record.axes.truth, Truth::Unverified);
    assert_eq!(belief.record.axes.retrieval, Retrieval::Restricted);
    assert_eq!(belief.adopted.log.session.as_str(), "session-a");
    assert_eq!(belief.source.unwrap().tool.as_str(), "read_file");
    let context = b.context(None);
    assert_eq!(context.beliefs.len(), 1);
    assert!(context.beliefs[0].predicate.subject.starts_with("call:"));
    assert!(!serde_json::to_string(&context).unwrap().contains("POISON"));
    assert!(b.context(Some("poison")).beliefs.is_empty());
}

#[test]
fn rows_of_an_installation_that_is_not_trusted_count_as_imported() {
    let dir = tempfile::tempdir().unwrap();
    let weather = World::new().weather;
    let mut theirs = World::with_keys(sqlite(&dir), "t", weather.clone(), key(2), vec![]);
    let fact = theirs.measure("fs", "a.md", "size", json!(1));
    drop(theirs);
    let mut ours = World::with_keys(sqlite(&dir), "o", weather.clone(), key(1), vec![]);
    let context = ours.context(None);
    assert!(context.beliefs.is_empty());
    assert_eq!(context.left_out[0].standing, Standing::Foreign);
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let audit = ours.firewall.audit(&query, "look", &mut ours.tape).unwrap();
    let counts = audit.rows[0].counts_as().unwrap();
    assert_eq!(counts.authority, BeliefAuthority::Imported);
    assert_eq!(counts.axes.truth, Truth::Unverified);
    // Nor does it promote, link or get promoted here.
    assert!(ours.promote(fact.id).is_err());
    let read = ours.read("a.md", "size = 1");
    assert_eq!(ours.truth(about(&read, "size")), Truth::Unverified);
    drop(ours);
    let mut trusting = World::with_keys(sqlite(&dir), "u", weather, key(1), vec![key(2)]);
    assert!(
        trusting
            .context(None)
            .beliefs
            .iter()
            .any(|belief| belief.id == fact.id)
    );
}

/// All rows in their order.
fn all_rows(store: &mut dyn Store) -> Vec<lodestar_firewall::row::StoredRow> {
    store.scan(None, 100_000).unwrap()
}

#[test]
fn rows_follow_from_the_events_whatever_order_the_sessions_come_in() {
    let dir = tempfile::tempdir().unwrap();
    let weather = World::new().weather;
    let mut tapes = Vec::new();
    for number in 0..6 {
        let mut world = World::over(sqlite(&dir), &format!("s{number}"), weather.clone());
        let read = world.read("shared.md", &format!("status = v{}", number % 3));
        world.measure("fs", "shared.md", "status", json!(format!("v{number}")));
        let note = world.read("note.md", "owner = ann");
        world.promote(about(&note, "owner")).unwrap();
        world.weather.pass(3 * DAY);
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap();
        let _ = world.derive(&[about(&read, "status")], "file:x", "y", json!(number));
        tapes.push(world.tape);
    }
    let live = all_rows(sqlite(&dir).as_mut());
    assert!(live.iter().any(|row| row.revision >= 2));
    for order in [
        vec![0, 1, 2, 3, 4, 5],
        vec![5, 4, 3, 2, 1, 0],
        vec![3, 0, 5, 1, 4, 2],
    ] {
        let keys = Keyring::new(key(1));
        let mut store = MemoryStore::new();
        store
            .write(&mut |tx| {
                let mut rebuild = fold::Rebuild::default();
                for &session in &order {
                    for (event, at) in &tapes[session].events {
                        rebuild.apply(tx, &keys, event, at).unwrap();
                    }
                }
                let left = std::mem::take(&mut rebuild).finish(tx, &keys).unwrap();
                assert!(left.is_empty(), "{left:?}");
                Ok(Verdict::Commit)
            })
            .unwrap();
        assert_eq!(all_rows(&mut store), live, "{order:?}");
    }
}

#[test]
fn an_event_is_applied_once_and_a_forged_one_not_at_all() {
    let mut world = World::new();
    world.read("a.md", "status = done");
    let (event, at) = world.tape.events[0].clone();
    let keys = Keyring::new(key(1));
    let mut store = MemoryStore::new();
    let mut apply = |event: &FirewallEvent, at: &lodestar_firewall::event::LogPosition| {
        let mut outcome = None;
        let _ = store.write(&mut |tx| {
            let applied = fold::apply(tx, &keys, event, at);
            let verdict = if applied.is_ok() {
                Verdict::Commit
            } else {
                Verdict::Rollback
            };
            outcome = Some(applied);
            Ok(verdict)
        });
        outcome.unwrap()
    };
    apply(&event, &at).unwrap();
    apply(&event, &at).unwrap();
    // A belief that does not follow from its evidence.
    let FirewallEvent::Adopted(mut forged) = event else {
        panic!("an adoption")
    };
    let gated = forged
        .beliefs
        .iter()
        .position(|b| b.axes.truth == Truth::Unverified)
        .unwrap();
    forged.beliefs[gated].axes.truth = Truth::Supported;
    let mut later = at.clone();
    later.seq += 1;
    let refused = apply(&FirewallEvent::Adopted(forged), &later).unwrap_err();
    assert!(matches!(refused, FoldError::BadEvent { .. }), "{refused}");
    assert!(
        refused
            .to_string()
            .contains("does not follow from its evidence")
    );
}

fn decision(world: &World, on: lodestar_core::id::BeliefId) -> Decision {
    Decision {
        id: DecisionId::from_parts(1, [3; 10]),
        question: "push?".to_owned(),
        choice: Choice::new(NonEmpty::one("push".to_owned()), "push".to_owned()).unwrap(),
        belief_dependencies: vec![on],
        policy_dependencies: Vec::new(),
        made_by: "agent".parse().unwrap(),
        made_at: world.weather.now_is(),
        origin: DecisionOrigin::Declared,
    }
}

#[test]
fn reflection_flags_decisions_that_rest_on_what_turned_out_wrong() {
    let mut world = World::new();
    let read = world.read("a.md", "status = done");
    let id = about(&read, "status");
    let decision = decision(&world, id);
    let window = Window {
        decisions: vec![(1, decision.clone())],
        beliefs: vec![(0, id)],
        from: 0,
        until: 2,
    };
    let log = world.tape.log.clone();
    assert!(
        propose(&mut world.firewall, &log, &window)
            .unwrap()
            .proposals
            .is_empty()
    );
    let order = world.order(
        id,
        vec![
            lodestar_core::chain::transition::AxisMove::new(Truth::Unverified, Truth::Contradicted)
                .unwrap(),
        ],
    );
    let envelope = world.sign(order, &world.operator);
    world.follow(&envelope).unwrap();
    let reflected = propose(&mut world.firewall, &log, &window).unwrap();
    assert_eq!(
        reflected.proposals,
        [Proposal::FlagDecision {
            decision: decision.id,
            made_at: 1,
            belief: id
        }]
    );
    let events = world.tape.events.len();
    assert_eq!(
        propose(&mut world.firewall, &log, &window).unwrap(),
        reflected
    );
    assert_eq!(world.tape.events.len(), events, "proposing changes nothing");
    let applied = apply(
        &mut world.firewall,
        &world.seats.reflection,
        &reflected,
        &mut world.tape,
    )
    .unwrap();
    assert_eq!((applied.done.len(), applied.left.len()), (1, 0));
    let kinds: Vec<_> = world.tape.events[events..]
        .iter()
        .map(|(event, _)| event.event_type().as_str())
        .collect();
    assert_eq!(kinds, ["reflection.completed@1", "revision.made@1"]);
}

#[test]
fn reflection_supersedes_the_older_of_two_supported_beliefs_and_never_the_other_way() {
    let mut world = World::new();
    let one = world.read("a.md", "owner = ann");
    let two = world.read("a.md", "owner = bob");
    let (older, newer) = (about(&one, "owner"), about(&two, "owner"));
    world.promote(older).unwrap();
    world.promote(newer).unwrap();
    let window = Window {
        beliefs: vec![(0, older), (1, newer)],
        until: 4,
        ..Window::default()
    };
    let log = world.tape.log.clone();
    let reflected = propose(&mut world.firewall, &log, &window).unwrap();
    assert_eq!(reflected.proposals, [Proposal::Supersede { older, newer }]);
    let seat = &world.seats.reflection;
    let applied = apply(&mut world.firewall, seat, &reflected, &mut world.tape).unwrap();
    assert_eq!(applied.done.len(), 1);
    assert_eq!(world.truth(older), Truth::Superseded);
    assert_eq!(world.truth(newer), Truth::Supported);
    // What was done is not done again.
    let seat = &world.seats.reflection;
    let applied = apply(&mut world.firewall, seat, &reflected, &mut world.tape).unwrap();
    assert_eq!((applied.done.len(), applied.left.len()), (0, 1));
}

#[test]
fn keys_are_not_shown_where_a_ring_is_printed() {
    let ring = Keyring::new(Arc::new(lodestar_core::key::SecretKey::from_seed([7; 32])));
    let shown = format!("{ring:?}");
    assert!(
        !shown.contains("07, 7") && !shown.contains("0707"),
        "{shown}"
    );
}

#[test]
fn a_document_that_a_rule_promoted_does_not_take_the_place_of_a_measurement() {
    let mut world = World::new();
    let measured = world.measure("fs", "a.md", "status", json!("open"));
    world.weather.pass(DAY);
    let read = world.read("a.md", "status = EVIL");
    let planted = about(&read, "status");
    world.promote(planted).unwrap();
    let window = Window {
        beliefs: vec![(0, measured.id), (1, planted)],
        until: 3,
        ..Window::default()
    };
    let log = world.tape.log.clone();
    let reflected = propose(&mut world.firewall, &log, &window).unwrap();
    assert_eq!(reflected.proposals, []);
}

#[test]
fn rows_of_others_do_not_crowd_out_ours() {
    let dir = tempfile::tempdir().unwrap();
    let weather = World::new().weather;
    let mut ours = World::with_keys(sqlite(&dir), "o", weather.clone(), key(1), vec![]);
    let fact = ours.measure("fs", "a.md", "size", json!(1));
    let mut theirs = World::with_keys(sqlite(&dir), "t", weather, key(2), vec![]);
    for number in 0..120 {
        theirs.measure("fs", &format!("{number}.md"), "size", json!(number));
    }
    let policy = lodestar_firewall::ContextPolicy::default();
    let context = ours
        .firewall
        .context(&policy, &crate::world::scope(), None, 10)
        .unwrap();
    let found: Vec<_> = context.beliefs.iter().map(|belief| belief.id).collect();
    assert_eq!(found, [fact.id]);
    ours.weather.pass(8 * DAY);
    let project = crate::world::project();
    assert_eq!(ours.firewall.age(&project, &mut ours.tape).unwrap(), 1);
}
