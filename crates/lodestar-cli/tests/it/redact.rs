//! `lodestar log redact`

use std::fs;

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::note::encode_secret;
use serde_json::json;

use crate::world::{World, actor, vkey};

const YES: [&str; 3] = ["--reason", "a customer's address", "--yes"];

fn redact(args: &[&str]) -> Vec<String> {
    let all = ["log", "redact"].iter().chain(args).chain(&YES);
    all.map(|arg| (*arg).to_owned()).collect()
}

#[test]
fn content_goes_and_the_session_still_verifies() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let proof = world
        .run(&["log", "prove", "3", "--head-only"])
        .expect(0)
        .out;
    let run = world.run(&redact(&["s-1", "--seq", "1,3"])).expect(0);
    insta::assert_snapshot!(world.stable(&run.out));
    let events = fs::read_to_string(world.session("web", "s-1").events_path()).expect("readable");
    assert!(!events.contains("IGNORE"));
    let run = world.run(&["log", "verify"]).expect(0);
    assert!(
        run.out
            .contains("2 payloads are redacted by #5, signed by `alice`: "),
        "{}",
        run.out
    );
    assert!(run.out.contains("a customer's address"), "{}", run.out);
    let shown = world
        .run(&["log", "show", "--from", "3", "--limit", "1"])
        .expect(0)
        .out;
    assert!(shown.contains("▒ redacted by #5"), "{shown}");
    let file = world.write("proof.json", &proof);
    world
        .run(&["log", "check-proof", file.to_str().expect("UTF-8")])
        .expect(0);
    // Who does not know the operator does not accept the gap.
    fs::remove_dir_all(world.path("config/operators")).expect("removed");
    let run = world.run(&["log", "verify"]).expect(1);
    assert!(run.out.contains("pass --operator"), "{}", run.out);
    let alice = world.write("alice.pub", &vkey("alice", &crate::world::operator_key()));
    world
        .run(&[
            "log",
            "verify",
            "--operator",
            alice.to_str().expect("UTF-8"),
        ])
        .expect(0);
}

#[test]
fn a_blob_goes_with_every_event_that_refers_to_it() {
    let world = World::new();
    world.add_operator();
    let writer = world.open("web", "s-1");
    let content = "secret content ".repeat(5_000);
    for _ in 0..2 {
        writer
            .append(
                EventType::OBSERVATION_RECORDED,
                &actor(),
                &[],
                &json!({"content": content}),
            )
            .expect("appended");
    }
    writer.close(&actor(), &json!({})).expect("closed");
    drop(writer);
    let mut args = redact(&["s-1", "--seq", "1"]);
    args.push("--json".to_owned());
    let report = world.run(&args).expect(0).json();
    assert_eq!(report["redacted"]["events"], json!([1, 2]));
    assert_eq!(
        report["redacted"]["blobs"].as_array().map(Vec::len),
        Some(1)
    );
    let blobs = fs::read_dir(world.session("web", "s-1").blobs_dir()).expect("readable");
    assert_eq!(blobs.count(), 0);
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn the_wrong_events_and_sessions_are_refused_and_nothing_changes() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let path = world.session("web", "s-1").events_path();
    let before = fs::read(&path).expect("readable");
    world.run(&redact(&["s-1", "--seq", "9"])).expect(3);
    world.run(&redact(&["nope", "--seq", "1"])).expect(3);
    world.run(&redact(&["s-1", "--seq", "x"])).expect(2);
    world
        .run(&[
            "log", "redact", "s-1", "--seq", "1", "--reason", " ", "--yes",
        ])
        .expect(2);
    assert_eq!(before, fs::read(&path).expect("readable"));
    world.run(&redact(&["s-1", "--seq", "1"])).expect(0);
    world.run(&redact(&["s-1", "--seq", "1"])).expect(2);
    world.run(&redact(&["s-1", "--seq", "5"])).expect(2);
    // A session that is being written has another owner.
    let _live = world.open("web", "live");
    let run = world.run(&redact(&["live", "--seq", "0"])).expect(2);
    assert!(run.err.contains("being written"), "{}", run.err);
    assert!(run.err.contains("help: stop the process"), "{}", run.err);
}

#[test]
fn only_a_pinned_operator_who_is_not_the_log_may_redact() {
    let world = World::new();
    world.closed("web", "s-1");
    let args = redact(&["s-1", "--seq", "1"]);
    let run = world.run(&args).expect(4);
    assert!(run.err.contains("lodestar approve keygen"), "{}", run.err);
    let mallory = SecretKey::from_seed([9; 32]);
    let secret = encode_secret("mallory", &mallory).expect("a name");
    let file = world.write_private("mallory.key", &secret);
    let by_file = |file: &std::path::Path| {
        let mut args = args.clone();
        args.extend([
            "--operator-key".to_owned(),
            file.to_string_lossy().into_owned(),
        ]);
        args
    };
    let run = world.run(&by_file(&file)).expect(4);
    assert!(
        run.err.contains("not one of the operators pinned here"),
        "{}",
        run.err
    );
    // The log key redacts nothing, even pinned.
    let log = world.path("config/keys/log.key");
    let run = world.run(&by_file(&log)).expect(4);
    assert!(run.err.contains("is the log key"), "{}", run.err);
    assert!(run.err.contains("lodestar approve keygen"), "{}", run.err);
    assert!(!run.err.contains("put its public key"), "{}", run.err);
    world.write(
        "config/operators/log-key.pub",
        &fs::read_to_string(world.path("config/keys/log.pub")).expect("readable"),
    );
    world.run(&by_file(&log)).expect(4);
    world.add_operator();
    world
        .run(&redact(&["s-1", "--seq", "1", "--operator", "nobody"]))
        .expect(3);
    world.write_private("config/keys/bob.key", "x");
    let run = world.run(&args).expect(2);
    assert!(run.err.contains("--operator: alice, bob"), "{}", run.err);
    world
        .run(&redact(&["s-1", "--seq", "1", "--operator", "alice"]))
        .expect(0);
}

#[test]
fn a_tampered_session_is_not_redacted() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path)
        .expect("readable")
        .replace("allow", "ALLOW");
    fs::write(&path, &text).expect("written");
    let run = world.run(&redact(&["s-1", "--seq", "1"])).expect(1);
    assert!(run.err.contains("nothing was redacted"), "{}", run.err);
    assert!(
        run.err.contains("`lodestar log verify` lists everything"),
        "{}",
        run.err
    );
    assert_eq!(fs::read_to_string(&path).expect("readable"), text);
}
