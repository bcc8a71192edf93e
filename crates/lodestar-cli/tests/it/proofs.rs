//! `lodestar log prove` and `lodestar log check-proof`

use std::fs;

use lodestar_core::key::SecretKey;
use serde_json::Value;

use crate::world::{HOSTILE, World, actor, assert_inert, fill, log_key, vkey};

#[test]
fn a_proof_is_checked_on_a_machine_without_the_log() {
    let world = World::new();
    world.closed("web", "s-1");
    let proof = world.run(&["log", "prove", "3"]).expect(0).out;
    let elsewhere = World::bare();
    let file = elsewhere.write("proof.json", &proof);
    let file = file.to_str().expect("UTF-8");
    let key = vkey("any", &log_key());
    let run = elsewhere
        .run(&["log", "check-proof", file, "--key", &key])
        .expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!(elsewhere.stable(&run.out));
    let report = elsewhere
        .run(&["log", "check-proof", file, "--key", &key, "--json"])
        .expect(0)
        .json();
    assert_eq!(report["holds"], true);
    assert_eq!(report["proven"]["event"]["payload"]["content"], HOSTILE);
    assert_eq!(report["proven"]["event"]["seq"], 3);
    assert_eq!(report["proven"]["size"], 5);
    // Without a key nothing is proven.
    elsewhere.run(&["log", "check-proof", file]).expect(2);
    let other = vkey("any", &SecretKey::from_seed([9; 32]));
    let run = elsewhere
        .run(&["log", "check-proof", file, "--key", &other])
        .expect(1);
    assert!(run.err.contains("help: "), "{}", run.err);
    assert!(run.err.contains("pass --key"), "{}", run.err);
    assert!(!run.err.contains("log verify"), "{}", run.err);
}

#[test]
fn a_head_only_proof_shows_no_content() {
    let world = World::new();
    world.closed("web", "s-1");
    let run = world
        .run(&["log", "prove", "3", "--head-only", "--json"])
        .expect(0);
    assert!(!run.out.contains("IGNORE"));
    let file = world.write("proof.json", &run.out);
    let run = world
        .run(&["log", "check-proof", file.to_str().expect("UTF-8")])
        .expect(0);
    assert!(run.out.contains("without its payload"), "{}", run.out);
    assert!(!run.out.contains("  payload "));
}

#[test]
fn every_change_to_a_proof_is_noticed() {
    let world = World::new();
    world.closed("web", "s-1");
    let proof = world.run(&["log", "prove", "3", "--json"]).expect(0).out;
    let parsed: Value = serde_json::from_str(&proof).expect("JSON");
    for step in (0..proof.len()).step_by(37) {
        let mut bytes = proof.clone().into_bytes();
        bytes[step] ^= 1;
        // A flip may leave the meaning alone, such as the case of a `\u` escape.
        if serde_json::from_slice::<Value>(&bytes).is_ok_and(|same| same == parsed) {
            continue;
        }
        let file = world.path("changed.json");
        fs::write(&file, bytes).expect("written");
        let file = file.to_str().expect("UTF-8");
        let run = world.run(&["log", "check-proof", file]).expect(1);
        assert_inert(&run.err);
        let report = world
            .run(&["log", "check-proof", file, "--json"])
            .expect(1)
            .json();
        assert_eq!(report["holds"], false);
    }
}

#[test]
fn a_consistency_proof_starts_from_the_checkpoint_that_was_kept() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    let dir = world.session("web", "s-1");
    let old = world.write(
        "old",
        &fs::read_to_string(dir.checkpoint_path()).expect("readable"),
    );
    fill(&writer);
    writer
        .close(&actor(), &serde_json::json!({}))
        .expect("closed");
    let out = world.path("grown.json");
    let (out, old) = (out.to_str().expect("UTF-8"), old.to_str().expect("UTF-8"));
    let run = world
        .run(&["log", "prove", "--since", "1", "--out", out])
        .expect(0);
    insta::assert_snapshot!("grown", world.stable(&run.out));
    let run = world.run(&["log", "check-proof", out]).expect(0);
    assert!(
        run.out
            .contains("compare with what you kept: 1 event, root "),
        "{}",
        run.out
    );
    let run = world
        .run(&["log", "check-proof", out, "--old", old])
        .expect(0);
    assert!(!run.out.contains("compare with"), "{}", run.out);

    // From another size, for another log, and for an event.
    let other = world.path("other.json");
    let other = other.to_str().expect("UTF-8");
    world
        .run(&["log", "prove", "--since", "2", "--out", other])
        .expect(0);
    let run = world
        .run(&["log", "check-proof", other, "--old", old])
        .expect(1);
    assert!(
        run.err.contains("the proof starts from size 2"),
        "{}",
        run.err
    );
    world.closed("web", "s-2");
    world
        .run(&[
            "log",
            "prove",
            "--since",
            "1",
            "--session",
            "s-2",
            "--out",
            other,
        ])
        .expect(0);
    world
        .run(&["log", "check-proof", other, "--old", old])
        .expect(1);
    world.run(&["log", "prove", "1", "--out", other]).expect(0);
    world
        .run(&["log", "check-proof", other, "--old", old])
        .expect(2);
}

#[test]
fn of_a_redacted_event_only_the_head_can_be_proven() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    world
        .run(&[
            "log", "redact", "s-1", "--seq", "3", "--reason", "r", "--yes",
        ])
        .expect(0);
    let run = world.run(&["log", "prove", "3"]).expect(0);
    assert_eq!(
        run.err,
        "note: event #3 is redacted: the proof can only show its head\n"
    );
    let run = world.run(&["log", "prove", "3", "--head-only"]).expect(0);
    assert!(run.err.is_empty(), "{}", run.err);
}

#[test]
fn an_event_that_is_not_yet_under_a_checkpoint_is_told_from_one_that_is_not_there() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    writer
        .append(
            lodestar_core::event::EventType::AGENT_NOTE,
            &actor(),
            &[],
            &serde_json::json!({}),
        )
        .expect("appended")
        .wait(lodestar_log::Barrier::Disk)
        .expect("on disk");
    let run = world.run(&["log", "prove", "1"]).expect(3);
    assert!(
        run.err.contains("not yet under a checkpoint"),
        "{}",
        run.err
    );
    let run = world.run(&["log", "prove", "2"]).expect(3);
    assert!(run.err.contains("there is no event 2"), "{}", run.err);
}

#[test]
fn a_file_that_cannot_be_written_or_read_is_named() {
    let world = World::new();
    world.will_be_edited();
    world.closed("web", "s-1");
    for args in [
        &["log", "prove", "1", "--out"][..],
        &["log", "export", "--out"],
        &["log", "anchor", "--out"],
    ] {
        let mut all = args.to_vec();
        all.push("no/such/dir/file");
        let run = world.run(&all).expect(3);
        assert!(run.err.contains("`no/such/dir/file`: "), "{}", run.err);
        assert!(!run.err.contains(".lodestar-"), "{}", run.err);
        all.pop();
        all.push("/dev/full");
        let run = world.run(&all).expect(2);
        assert!(run.err.contains("`/dev/full`: "), "{}", run.err);
    }
    let path = world.session("web", "s-1").events_path();
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    let run = world.run(&["log", "prove", "1"]).expect(2);
    assert!(run.err.contains("/web/s-1`: "), "{}", run.err);
}

#[test]
fn what_cannot_be_proven_is_refused() {
    let world = World::new();
    world.closed("web", "s-1");
    let run = world.run(&["log", "prove", "5"]).expect(3);
    assert!(
        run.err
            .contains("there is no event 5 in session `s-1`, which has 5 events"),
        "{}",
        run.err
    );
    world.run(&["log", "prove", "--since", "6"]).expect(3);
    world
        .run(&["log", "prove", "18446744073709551615"])
        .expect(3);
    world.run(&["log", "prove", "-1"]).expect(2);
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path)
        .expect("readable")
        .replace("tester", "tamper");
    fs::write(path, text).expect("written");
    let run = world.run(&["log", "prove", "1"]).expect(1);
    assert!(run.err.contains("lodestar log verify"), "{}", run.err);
    let checkpoint = world.session("web", "s-1").checkpoint_path();
    fs::write(checkpoint, "no checkpoint\n").expect("written");
    let run = world.run(&["log", "prove", "1"]).expect(1);
    assert!(
        run.err.contains("help: `lodestar log verify`"),
        "{}",
        run.err
    );
    world.run(&["log", "check-proof", "missing.json"]).expect(3);
    let nonsense = world.write("nonsense.json", "{}");
    world
        .run(&["log", "check-proof", nonsense.to_str().expect("UTF-8")])
        .expect(1);
}
