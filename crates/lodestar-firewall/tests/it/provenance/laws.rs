//! What holds for every session: forgetting, memory, cost, precedence.

use lodestar_core::provenance::{GivenSource, Label, Likeness, Place};
use lodestar_firewall::provenance::{GivenFull, Limits, ProvenanceIndex};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::spelling::{Dice, SORTS, fresh};
use super::{contacts, label, observation, small_index};

/// A document of words that no other document has.
fn document(dice: &mut Dice, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        let sort = dice.pick(SORTS);
        match dice.chance(12) {
            true => text.push_str(&fresh(dice, sort)),
            false => text.push_str(&dice.word()),
        }
        text.push_str(if dice.chance(9) { ".\n" } else { " " });
    }
    text
}

#[test]
fn fifty_megabytes_of_reading_stay_within_the_stated_bound() {
    const MEGABYTE: usize = 1 << 20;
    let limits = Limits::default();
    let mut index = ProvenanceIndex::new(limits, [7; 16]);
    index
        .give_task("Write to anna@corp.example", GivenSource::Task)
        .unwrap();
    index.read(observation(0), "the first was mallory@evil.example");
    let dice = &mut Dice(11);
    let mut largest = 0;
    for n in 1..=50 {
        index.read(observation(n), &document(dice, MEGABYTE));
        largest = largest.max(index.memory_bytes());
    }
    index.read(observation(51), "the last was trudy@worse.example");
    let bound = limits.memory_bound();
    println!("after 50 MB read: {largest} bytes at most, {bound} allowed");
    assert!(largest <= bound);
    assert_eq!(label(&index, "mallory@evil.example"), Label::Unknown);
    assert!(matches!(
        label(&index, "trudy@worse.example"),
        Label::Read { .. }
    ));
    assert!(label(&index, "anna@corp.example").is_trusted());
}

#[test]
fn the_cost_of_a_call_does_not_grow_with_the_session() {
    let arguments = json!({
        "to": "zoe@nowhere.example",
        "path": "some/where/else.txt",
        "n": 12345,
        "body": "a text that nobody has written before, with zq@xw.example in it",
        "data": "em9lQG5vd2hlcmUtZWxzZS50ZXN0",
    });
    let dice = &mut Dice(5);
    let mut index = ProvenanceIndex::new(Limits::default(), [7; 16]);
    let mut costs = Vec::new();
    for n in 0..60 {
        costs.push(index.explain_counted(&arguments).1);
        index.read(observation(n), &document(dice, 1 << 14));
        index
            .give_value(&format!("contact-{n}@corp.example"), contacts())
            .unwrap();
    }
    println!(
        "lookups per call, before anything and after 60 documents: {} {}",
        costs[0], costs[59]
    );
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
}

#[test]
fn lookups_are_bounded_by_the_arguments_even_for_megabytes() {
    let index = small_index();
    let cost = |bytes: usize| {
        let text = document(&mut Dice(3), bytes).replace(['@', '/', '.', '+'], " ");
        index.explain_counted(&json!(text)).1
    };
    let (page, book) = (cost(4_000), cost(4_000_000));
    println!("lookups for 4 kB: {page}, for 4 MB: {book}");
    assert!(book < 4 * page.max(2048));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let limits = Limits {
        given_bytes: 1_000,
        ..Limits::default()
    };
    let mut index = ProvenanceIndex::new(limits, [7; 16]);
    let mut given = Vec::new();
    let refused = loop {
        let value = format!("contact-{}@corp.example", given.len());
        match index.give_value(&value, contacts()) {
            Ok(()) => given.push(value),
            Err(full) => break (value, full),
        }
    };
    let (value, GivenFull { needed, limit }) = refused;
    assert!(needed > limit && limit == 1_000);
    assert_eq!(label(&index, &value), Label::Unknown);
    assert!(!given.is_empty() && given.iter().all(|value| label(&index, value).is_trusted()));
    let task = "Write to a@corp.example, b@corp.example and c@corp.example, d@corp.example";
    index.give_task(task, GivenSource::Task).unwrap_err();
    assert_eq!(label(&index, "a@corp.example"), Label::Unknown);
    index
        .measure(&json!("a".repeat(1_000)), "size")
        .unwrap_err();
    assert!(index.memory_bytes() <= limits.memory_bound());
    let message = GivenFull {
        needed: 2,
        limit: 1,
    }
    .to_string();
    assert_eq!(
        message,
        "given values would take 2 bytes and 1 are allowed; raise the limit or give fewer"
    );
}

#[test]
fn an_observation_that_is_forgotten_is_not_named() {
    let limits = Limits {
        observations: 3,
        ..Limits::default()
    };
    let mut index = ProvenanceIndex::new(limits, [7; 16]);
    for n in 0..5 {
        index.read(
            observation(n),
            &format!("mallory-{n}@evil.example and trudy@worse.example"),
        );
    }
    assert_eq!(
        label(&index, "mallory-4@evil.example"),
        Label::Read {
            observations: vec![observation(4)],
            how: Likeness::Copy,
        }
    );
    let Label::Read { observations, .. } = label(&index, "trudy@worse.example") else {
        panic!("read three times of late");
    };
    assert!(
        observations
            .iter()
            .all(|id| [2, 3, 4].map(observation).contains(id))
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,24}".prop_map(Value::from),
        "[a-c@./: -]{0,16}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c@./~]{0,6}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    /// Reading as much as one likes never makes anything trusted, and forgetting neither.
    #[test]
    fn reading_and_forgetting_never_make_a_value_trusted(
        texts in prop::collection::vec("[ -~]{0,60}|\\PC{0,40}", 1..20),
        arguments in any_value(),
    ) {
        let limits = Limits { given_bytes: 0, value_slots: 16, gram_slots: 16, observations: 2 };
        let mut index = ProvenanceIndex::new(limits, [1; 16]);
        for (n, text) in texts.iter().enumerate() {
            index.read(observation(n), text);
        }
        let all = Value::from(texts.clone());
        for argument in index.explain(&arguments).into_iter().chain(index.explain(&all)) {
            prop_assert!(!argument.label.is_trusted());
            prop_assert!(argument.inside.iter().all(|inside| !inside.label.is_trusted()));
        }
        prop_assert!(index.memory_bytes() <= limits.memory_bound());
    }

    /// What was given stays given, whatever is read, and nothing else becomes so.
    #[test]
    fn reading_does_not_move_what_is_given(
        value in "[!-~]{1,24}", texts in prop::collection::vec("[ -~]{0,60}", 0..8), other in "[!-~]{1,24}",
    ) {
        let mut index = small_index();
        index.give_value(&value, contacts()).unwrap();
        let before = label(&index, &other);
        for (n, text) in texts.iter().enumerate() {
            index.read(observation(n), text);
            index.read(observation(n), &other);
        }
        prop_assert!(label(&index, &value).is_trusted());
        prop_assert_eq!(before.is_trusted(), label(&index, &other).is_trusted());
    }

    /// Every leaf has one label, and its pointer leads to it.
    #[test]
    fn every_leaf_is_labelled_where_it_stands(arguments in any_value()) {
        let labelled = small_index().explain(&arguments);
        let mut values = 0;
        for argument in labelled.iter().filter(|argument| argument.place == Place::Value) {
            let value = arguments.pointer(&argument.pointer).unwrap();
            prop_assert!(value.is_string() || value.is_number() || value.is_boolean());
            values += 1;
        }
        prop_assert_eq!(values, leaves(&arguments));
    }
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Array(items) => items.iter().map(leaves).sum(),
        Value::Object(members) => members.values().map(leaves).sum(),
        _ => 1,
    }
}
