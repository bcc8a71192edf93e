//! `lodestar belief why`

use std::fs;

use serde_json::json;

use crate::governed::{Governed, stable, state_db, told};
use crate::world::{World, assert_inert};

#[test]
fn the_chain_leads_from_the_poisoned_file_to_the_decision() {
    let world = World::new();
    world.add_operator();
    let told = told(&world);
    let id = told.content.to_string();
    let args = [
        "belief",
        "promote",
        &id,
        "--yes",
        "--reason",
        "asked the team",
    ];
    world.run(&args).expect(0);
    let run = world.run(&["belief", "why", &id]).expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!("why-promoted", stable(&world, &run.out));
    let why = world
        .run(&["belief", "why", &id, "--json"])
        .expect(0)
        .json();
    assert_eq!(why["log"]["leaf_in_row"], why["log"]["leaf_in_log"]);
    assert_eq!(
        why["observations"][0]["at"],
        json!({"session": "s-1", "seq": 1})
    );
    assert_eq!(why["claim"]["at"], json!({"session": "s-1", "seq": 2}));
    assert_eq!(why["changes"][0]["signed"]["by"], "alice");
    assert_eq!(why["decisions"][0]["question"], "publish the fix?");
}

#[test]
fn a_derived_belief_leads_back_to_all_it_was_made_from() {
    let world = World::new();
    let told = told(&world);
    let run = world
        .run(&["belief", "why", &told.derived.to_string()])
        .expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!("why-derived", stable(&world, &run.out));
    for source in [told.content, told.measured] {
        assert!(run.out.contains(&source.to_string()), "{}", run.out);
    }
}

#[test]
fn a_newer_measurement_is_named_with_what_it_took_the_place_of() {
    let world = World::new();
    let mut session = Governed::open(&world, "s-1");
    let older = session.measure("file:a.txt", "lines", json!(1));
    session.measure("file:a.txt", "lines", json!(2));
    session.close();
    let run = world.run(&["belief", "why", &older.to_string()]).expect(0);
    insta::assert_snapshot!("why-superseded", stable(&world, &run.out));
}

#[test]
fn what_the_log_does_not_bear_out_is_said_and_is_exit_1() {
    let world = World::new();
    let told = told(&world);
    world.run(&["belief", "list"]).expect(0);
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path).expect("readable");
    fs::write(&path, text.replace("evil.example", "good.example")).expect("written");
    let run = world
        .run(&["belief", "why", &told.measured.to_string()])
        .expect(1);
    assert!(
        run.out.contains("✗ session s-1 does not count"),
        "{}",
        run.out
    );
    assert!(state_db(&world).exists());
}
