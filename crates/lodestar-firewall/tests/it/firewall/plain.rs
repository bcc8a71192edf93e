//! Adoptions that say nothing beyond themselves: named in the log, and made again by whoever reads it.

use std::collections::BTreeMap;

use lodestar_core::canonical;
use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
use lodestar_core::digest::sha256;
use lodestar_core::name::ServerIdentity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::{FirewallEvent, LogPosition};
use lodestar_firewall::extract::{Extractors, ToolCall};
use lodestar_firewall::fold::{FoldError, Rebuild, Waiting};
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{MemoryStore, SqliteStore, Store, Verdict};
use lodestar_firewall::{Intake, Outcome, Plain};
use serde_json::{Value, json};

use crate::world::{DAY, Says, World, key, scope};

/// A call and what came back of it, as a log has them.
struct Call {
    server: ServerIdentity,
    arguments: Value,
    is_error: bool,
    observation: Observation,
}

impl Call {
    fn intake<'a>(&'a self, scope: &'a lodestar_core::scope::Scope, seq: u64) -> Intake<'a> {
        Intake {
            call: ToolCall {
                invocation: self.observation.invocation_id,
                server: &self.server,
                tool: &self.observation.tool,
                arguments: &self.arguments,
                definition: sha256(b"definition"),
                reviewed: seq.is_multiple_of(3),
                is_error: self.is_error,
            },
            observation: &self.observation,
            scope,
            recorded: Some(seq),
        }
    }

    /// Through text and back: what the log keeps is all that a reader has.
    fn read_back(&self) -> Self {
        let through = |value: &Value| canonical::parse(&canonical::to_vec(value).unwrap()).unwrap();
        let observation = serde_json::to_value(&self.observation).unwrap();
        Self {
            server: self.server.clone(),
            arguments: through(&self.arguments),
            is_error: self.is_error,
            observation: serde_json::from_value(through(&observation)).unwrap(),
        }
    }
}

/// Results of every shape, about few things, so that some are about what is known already.
fn call(world: &World, number: u64) -> Call {
    let path = format!("part{}.md", number % 5);
    let text = format!("# Part {number}\n\nstatus = v{}\n", number % 3);
    let mut observation = world.observation("read_file", &text);
    let mut arguments = json!({"path": path});
    match number % 8 {
        1 => observation.content = Vec::new(),
        2 => arguments["limit"] = json!(1.0),
        3 => {
            let value = json!({"b": 2.50, "a": [1e3, {"é": null}], "text": "x"});
            observation.content = vec![ContentBlock::Structured { value }];
        }
        4 => observation.content.push(ContentBlock::from_wire(
            json!({"type": "resource", "resource": {"uri": "file:///a", "text": "t", "n": 0.10}}),
        )),
        5 => observation
            .content
            .push(ContentBlock::from_wire(json!({"type": "later", "x": 1.0}))),
        6 => observation.trust = ObservationTrust::Synthetic,
        _ => {}
    }
    Call {
        server: ServerIdentity::new("files").unwrap(),
        arguments,
        is_error: number.is_multiple_of(7),
        observation,
    }
}

/// A store that follows a tape, and the calls that its events name.
fn made_again(world: &World, calls: &BTreeMap<u64, Call>) -> MemoryStore {
    let keys = Keyring::new(key(1));
    let mut store = MemoryStore::new();
    let extractors = Extractors::built_in().with(Says);
    let applied = store.write(&mut |tx| {
        let mut rebuild = Rebuild::default();
        for (event, at) in &world.tape.events {
            let FirewallEvent::ResultsAdopted(adopted) = event else {
                rebuild.apply(tx, &keys, event, at).unwrap();
                continue;
            };
            let plain = adopted.results.iter().map(|seq| {
                let call = calls[seq].read_back();
                Plain::of(
                    &extractors,
                    &call.intake(&scope(), *seq),
                    adopted.adopted_at,
                )
            });
            let plain: Vec<_> = plain.map(Result::unwrap).collect();
            for one in &plain {
                let contested = one.contested(tx, &keys, &at.log).unwrap();
                assert!(contested.is_empty(), "{contested:?}");
            }
            // Once, however often.
            rebuild.apply_results(tx, &keys, &plain, at).unwrap();
            rebuild.apply_results(tx, &keys, &plain, at).unwrap();
        }
        let left: Vec<Waiting> = rebuild.finish(tx, &keys).unwrap();
        assert!(left.is_empty());
        Ok(Verdict::Commit)
    });
    applied.unwrap();
    store
}

fn rows(store: &mut dyn Store) -> Vec<StoredRow> {
    store.scan(None, 100_000).unwrap()
}

#[test]
fn what_is_made_again_of_named_results_is_what_was_adopted_live() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    let store = Box::new(SqliteStore::open(&file).unwrap());
    let mut world = World::over(store, "s1", World::new().weather);
    let (mut calls, mut number) = (BTreeMap::new(), 0);
    for round in 0..40_u64 {
        let size = 1 + round * 7 % 23;
        let new: Vec<_> = (number..number + size)
            .map(|n| (n, call(&world, n)))
            .collect();
        number += size;
        let scope = scope();
        let intakes: Vec<_> = new.iter().map(|(n, one)| one.intake(&scope, *n)).collect();
        let outcomes = world.firewall.observe_all(&intakes, &mut world.tape);
        assert_eq!(outcomes.unwrap().len(), new.len());
        calls.extend(new);
        match round % 8 {
            3 => drop(world.measure("fs", "part1.md", "status", json!(format!("v{}", round % 3)))),
            6 => world.weather.pass(5 * DAY),
            7 => drop(
                world
                    .firewall
                    .age(&crate::world::project(), &mut world.tape)
                    .unwrap(),
            ),
            _ => {}
        }
    }
    let named = |event: &FirewallEvent| match event {
        FirewallEvent::ResultsAdopted(adopted) => adopted.results.len(),
        _ => 0,
    };
    let named: usize = world
        .tape
        .events
        .iter()
        .map(|(event, _)| named(event))
        .sum();
    let whole = calls.len() - named;
    assert!(named > 300 && whole > 20, "{named} named, {whole} whole");
    let live = rows(&mut SqliteStore::open(&file).unwrap());
    let mut again = made_again(&world, &calls);
    assert_eq!(rows(&mut again), live);
    for row in &live {
        let id = row.belief_id().unwrap();
        let history = SqliteStore::open(&file).unwrap().history(&id).unwrap();
        assert_eq!(again.history(&id).unwrap(), history);
    }
}

fn observe(world: &mut World, numbers: &[u64]) -> Vec<Outcome> {
    let calls: Vec<_> = numbers.iter().map(|n| (*n, call(world, 8 * n))).collect();
    let scope = scope();
    let intakes: Vec<_> = calls
        .iter()
        .map(|(n, one)| one.intake(&scope, *n))
        .collect();
    let outcomes = world.firewall.observe_all(&intakes, &mut world.tape);
    outcomes.unwrap()
}

fn kinds(world: &World) -> Vec<&'static str> {
    let events = world.tape.events.iter();
    events
        .map(|(event, _)| event.event_type().as_str())
        .collect()
}

#[test]
fn reading_one_thing_many_times_is_one_line_and_reading_what_was_measured_is_written_out() {
    let mut world = World::new();
    let outcomes = observe(&mut world, &[5, 10, 15, 20]);
    assert_eq!(kinds(&world), ["belief.adopted@2"]);
    assert!(outcomes.iter().all(|one| one.at == outcomes[0].at));
    let FirewallEvent::ResultsAdopted(adopted) = &world.tape.events[0].0 else {
        panic!("they are named")
    };
    assert_eq!(adopted.results, [5, 10, 15, 20]);
    world.measure("fs", "part0.md", "status", json!("other"));
    // In their order: what gathered before is recorded before.
    observe(&mut world, &[1, 2, 5, 3]);
    assert_eq!(
        kinds(&world)[2..],
        ["belief.adopted@2", "belief.adopted@1", "belief.adopted@2"]
    );
}

#[test]
fn a_result_that_no_event_of_the_log_has_is_written_out() {
    let mut world = World::new();
    world.read("a.md", "status = done");
    assert_eq!(kinds(&world), ["belief.adopted@1"]);
}

#[test]
fn an_event_that_names_results_means_nothing_by_itself() {
    let mut world = World::new();
    observe(&mut world, &[1]);
    let (event, at): (FirewallEvent, LogPosition) = world.tape.events[0].clone();
    let mut store = MemoryStore::new();
    let written = store.write(&mut |tx| {
        let refused = Rebuild::default().apply(tx, &Keyring::new(key(1)), &event, &at);
        assert!(matches!(refused, Err(FoldError::BadEvent { .. })));
        Ok(Verdict::Rollback)
    });
    written.unwrap();
    assert!(rows(&mut store).is_empty());
}

/// Logs name results, and what is believed of them is made by this code, years later: where this digest
/// changes, stores that were made before cannot be made again. A change that is meant needs a new version
/// of `belief.adopted`, and this version's way kept beside it.
#[test]
fn what_is_made_of_results_that_were_recorded_long_ago_stays_the_same() {
    let world = World::new();
    let at = Timestamp::from_unix_micros(1_800_000_000_000_000).unwrap();
    let mut made = Vec::new();
    for number in 0..24 {
        let mut call = call(&world, number);
        call.observation.captured_at = at;
        let plain = Plain::of(&Extractors::built_in(), &call.intake(&scope(), number), at);
        let plain = plain.unwrap();
        made.extend(canonical::to_vec(plain.adopted()).unwrap());
    }
    assert_eq!(sha256(&made).to_string(), GOLDEN);
}

const GOLDEN: &str = "c88d40b0cef013bef4ba1a4f922e719a4a35ce36a7d5b36c41cee792d4b656a8";
