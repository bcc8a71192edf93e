//! What becomes of a firewall that a harness takes one rule out of: it lacks that rule and keeps the others,
//! and a ring that lacks nothing does not follow it.

use std::time::Duration;

use lodestar_core::chain::transition::AxisMove;
use lodestar_core::chain::{EvidenceQuality, Retrieval, Security, Truth};
use lodestar_core::defence::Defence;
use lodestar_core::id::BeliefId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_firewall::import::{ExportFormat, read_export};
use lodestar_firewall::row::keys::{Keyring, Standing};
use lodestar_firewall::store::{MemoryStore, Store as _, Verdict};
use lodestar_firewall::{Finding, ImportBatch, Measurement, fold};
use serde_json::json;

use crate::world::{World, about, scope};

fn told(world: &mut World, words: &str) -> bool {
    let context = world.context(None);
    serde_json::to_string(&context).unwrap().contains(words)
}

fn shift_by_reflection(world: &mut World, id: BeliefId) -> bool {
    let (seat, finding) = (&world.seats.reflection, Finding::Words("seen often"));
    [Truth::Supported.into(), Retrieval::Normal.into()]
        .into_iter()
        .all(|to| {
            let moved = world.firewall.shift(seat, id, to, finding, &mut world.tape);
            moved.is_ok()
        })
}

/// Whether something went wrong that this rule keeps from going wrong: for each rule a small story.
fn goes_wrong(defence: Defence, world: &mut World) -> bool {
    match defence {
        Defence::IndirectWeighsNothing => {
            world.read("a.md", "owner = EVE");
            told(world, "EVE")
        }
        Defence::NoVetoByReading => {
            world.read("a.md", "owner = EVE");
            world
                .measure("fs", "a.md", "owner", json!("ann"))
                .axes
                .truth
                != Truth::Supported
        }
        Defence::Supersession => {
            let older = world.measure("fs", "a.md", "owner", json!("ann"));
            world.weather.pass(Duration::from_secs(1));
            world.measure("git", "a.md", "owner", json!("bob"));
            world.truth(older.id) == Truth::Supported
        }
        Defence::Lineage => {
            let measured = world.measure("fs", "a.md", "lines", json!(3));
            let read = world.read("b.md", "owner = EVE");
            let sources = [measured.id, about(&read, "owner")];
            let summary = world.derive(&sources, "file:a.md", "owner", json!("EVE"));
            let summary = world.belief(summary.unwrap().id);
            summary.claim.lineage.quality() > EvidenceQuality::ExternalDocument
                && summary.record.axes.truth == Truth::Supported
        }
        Defence::GatedStartsRestricted => {
            let read = world.read("a.md", "owner = EVE");
            world.axes(about(&read, "owner")).retrieval == Retrieval::Normal
        }
        Defence::TransitionTable => {
            let read = world.read("a.md", "owner = EVE");
            shift_by_reflection(world, about(&read, "owner")) && told(world, "EVE")
        }
        Defence::ContextTruth => {
            let read = world.read("a.md", "owner = EVE");
            let id = about(&read, "owner");
            let lift = AxisMove::new(Retrieval::Restricted, Retrieval::Normal).unwrap();
            let order = world.order(id, vec![lift]);
            let envelope = world.sign(order, &world.operator);
            world.follow(&envelope).unwrap();
            told(world, "EVE")
        }
        Defence::ContextSecurity => {
            let bad = world.measure("fs", "a.md", "owner", json!("EVE"));
            let (seat, to) = (&world.seats.sentinel, Security::Quarantined.into());
            let finding = Finding::Words("tampered with");
            let firewall = &mut world.firewall;
            firewall
                .shift(seat, bad.id, to, finding, &mut world.tape)
                .unwrap();
            told(world, "EVE")
        }
        Defence::ContextSensitivity => {
            let mut observation = world.observation("fs", "");
            observation.sensitivity = Sensitivity::Secret;
            let measurement = Measurement {
                observation: &observation,
                scope: &scope(),
                subject: "file:a.md",
                relation: "pin",
                object: json!("EVE"),
            };
            let (firewall, seat) = (&mut world.firewall, &world.seats.measuring);
            firewall
                .measure(seat, measurement, &mut world.tape)
                .unwrap();
            told(world, "EVE")
        }
        Defence::ContradictionChannel => {
            world.measure("fs", "a.md", "owner", json!("ann"));
            world.read("a.md", "owner = EVE");
            told(world, "EVE")
        }
        Defence::ImportsAreReadings => {
            let export = br#"{"results": [{"id": "m", "memory": "EVE", "verified": true}]}"#;
            let export = read_export(ExportFormat::Mem0, export).unwrap();
            let observation = world.observation("import/mem0", "EVE");
            let batch = ImportBatch {
                observation: &observation,
                format: ExportFormat::Mem0,
                memories: &export.memories,
                scope: &scope(),
            };
            world.firewall.import(batch, &mut world.tape).unwrap();
            told(world, "EVE")
        }
        Defence::ContentSplit => {
            let read = world.read("a.md", "owner = EVE");
            world.truth(about(&read, "owner")) == Truth::Supported
        }
        _ => false,
    }
}

const STORIES: [Defence; 12] = [
    Defence::ContentSplit,
    Defence::IndirectWeighsNothing,
    Defence::NoVetoByReading,
    Defence::Lineage,
    Defence::Supersession,
    Defence::GatedStartsRestricted,
    Defence::TransitionTable,
    Defence::ContextTruth,
    Defence::ContextSecurity,
    Defence::ContextSensitivity,
    Defence::ContradictionChannel,
    Defence::ImportsAreReadings,
];

#[test]
fn nothing_goes_wrong_with_every_rule_and_what_a_rule_keeps_off_without_it() {
    for defence in STORIES {
        assert!(!goes_wrong(defence, &mut World::new()), "{defence}");
        let mut lax = World::without(&[defence]);
        assert!(goes_wrong(defence, &mut lax), "without {defence}");
    }
}

#[test]
fn a_rule_that_is_missing_leaves_the_context_its_others() {
    for missing in [
        Defence::ContextTruth,
        Defence::ContextSecurity,
        Defence::ContextSensitivity,
    ] {
        for defence in STORIES.into_iter().filter(|one| *one != missing) {
            let mut lax = World::without(&[missing]);
            assert!(
                !goes_wrong(defence, &mut lax),
                "{defence} without {missing}"
            );
        }
    }
}

/// What a store becomes by these events and this ring.
fn followed(world: &World, keys: &Keyring) -> Result<usize, String> {
    let mut store = MemoryStore::new();
    let mut outcome = Ok(());
    let written = store.write(&mut |tx| {
        let mut rebuild = fold::Rebuild::default();
        for (event, at) in &world.tape.events {
            if let Err(problem) = rebuild.apply(tx, keys, event, at) {
                outcome = Err(problem.to_string());
                return Ok(Verdict::Rollback);
            }
        }
        Ok(Verdict::Commit)
    });
    written.unwrap();
    outcome.map(|()| store.scan(None, 1000).unwrap().len())
}

#[test]
fn a_log_of_a_world_that_weighs_otherwise_is_followed_by_its_like_and_by_no_other() {
    for defence in [
        Defence::IndirectWeighsNothing,
        Defence::NoVetoByReading,
        Defence::GatedStartsRestricted,
        Defence::TransitionTable,
    ] {
        let mut lax = World::without(&[defence]);
        assert!(goes_wrong(defence, &mut lax));
        let refused = followed(&lax, &lax.keys()).unwrap_err();
        assert!(
            refused.contains("cannot be applied"),
            "{defence}: {refused}"
        );
        let same = lax.keys().without(&[defence]);
        assert!(followed(&lax, &same).unwrap() > 1, "{defence}");
    }
}

#[test]
fn an_edited_row_is_genuine_only_to_a_ring_that_does_not_look() {
    let mut world = World::new();
    world.read("a.md", "owner = EVE");
    let keys = world.keys();
    let mut store = MemoryStore::new();
    let (event, at) = world.tape.events[0].clone();
    store
        .write(&mut |tx| {
            fold::apply(tx, &keys, &event, &at).unwrap();
            Ok(Verdict::Commit)
        })
        .unwrap();
    let mut row = store.scan(None, 1).unwrap().remove(0);
    assert_eq!(keys.standing(&row), Standing::Genuine);
    row.statement.push_str(" and more");
    assert_eq!(keys.standing(&row), Standing::Edited);
    for &defence in Defence::ALL {
        let lax = world.keys().without(&[defence]);
        let expected = match defence {
            Defence::RowSignatures => Standing::Genuine,
            _ => Standing::Edited,
        };
        assert_eq!(lax.standing(&row), expected, "{defence}");
    }
}
