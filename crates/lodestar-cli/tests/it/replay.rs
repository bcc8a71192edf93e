//! `lodestar replay`: does everything follow from the log?

use std::fs;

use crate::gated::{followed, forge, project, renumbered, seq_of};
use crate::world::{World, log_key, vkey};

#[test]
fn a_session_follows_from_its_log() {
    let world = project();
    followed(&world, "s-1");
    let run = world.run(&["replay", "latest"]).expect(0);
    insta::assert_snapshot!(run.out);
    let report = world.run(&["replay", "s-1", "--json"]).expect(0).json();
    assert_eq!(report["agrees"], true);
    assert_eq!(report["replay"]["verdicts"], 3);
    assert_eq!(report["integrity"], serde_json::json!([]));
}

#[test]
fn a_verdict_that_does_not_follow_is_named_with_its_event() {
    let world = project();
    world.will_be_edited();
    followed(&world, "s-1");
    forge(&world, "s-1", "s-2", |kind, payload| {
        if kind == "action.judged@1" && payload["verdict"] == "hold" {
            payload["verdict"] = "allow".into();
        }
    });
    world.run(&["log", "verify", "s-2"]).expect(0);
    let run = world.run(&["replay", "s-2"]).expect(1);
    assert!(run.out.contains("✗ differs  #"), "{}", run.out);
    assert!(run.out.contains("the log says allow"), "{}", run.out);
    let report = world.run(&["replay", "s-2", "--json"]).expect(1).json();
    assert!(report["replay"]["differences"][0]["seq"].is_u64());
}

#[test]
fn an_edited_log_is_not_intact() {
    let world = project();
    world.will_be_edited();
    followed(&world, "s-1");
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path).expect("readable");
    fs::write(
        &path,
        text.replacen("\"verdict\":\"hold\"", "\"verdict\":\"deny\"", 1),
    )
    .expect("written");
    let run = world.run(&["replay", "s-1"]).expect(1);
    assert!(run.out.starts_with("✗ not intact"), "{}", run.out);
    let report = world.run(&["replay", "s-1", "--json"]).expect(1).json();
    assert!(!report["integrity"].as_array().expect("a list").is_empty());
}

#[test]
fn another_policy_shows_what_it_would_have_decided() {
    let world = project();
    followed(&world, "s-1");
    world.write(
        "work/closed.cedar",
        "@id(\"closed\")\nforbid (principal, action, resource);\n",
    );
    let run = world
        .run(&["replay", "s-1", "--policy", "closed.cedar"])
        .expect(0);
    // The numbers' own width is not what this is about.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = run.out.lines().map(words).collect();
    insta::assert_snapshot!(renumbered(&lines.join("\n")));
    let report = world
        .run(&["replay", "s-1", "--policy", "closed.cedar", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        report["replay"]["otherwise"].as_array().map(Vec::len),
        Some(2)
    );
    let shown = world.run(&["policy", "show"]).expect(0).out;
    world.write("work/same.cedar", &shown);
    let run = world
        .run(&["replay", "s-1", "--policy", "same.cedar"])
        .expect(0);
    assert!(run.out.contains("everything alike"), "{}", run.out);
    world.write(
        "work/odd.cedar",
        "permit (principal, action, resource) when { context.levle > 1 };\n",
    );
    world
        .run(&["replay", "s-1", "--policy", "odd.cedar"])
        .expect(2);
    world
        .run(&["replay", "s-1", "--policy", "none.cedar"])
        .expect(3);
}

#[test]
fn what_was_redacted_cannot_be_derived() {
    let world = project();
    world.will_be_edited();
    world.add_operator();
    followed(&world, "s-1");
    let seq = seq_of(&world, "s-1", "action.proposed@1").to_string();
    let redact = |seq: &str| {
        world
            .run(&[
                "log", "redact", "s-1", "--seq", seq, "--reason", "r", "--yes",
            ])
            .expect(0);
    };
    redact(&seq);
    let run = world.run(&["replay", "s-1"]);
    assert!(
        run.out
            .contains(&format!("redacted, so not derived: #{seq}")),
        "{run:?}"
    );
    redact("0");
    let run = world.run(&["replay", "s-1"]).expect(1);
    assert!(
        run.err
            .contains("opening event of session `s-1` was redacted"),
        "{}",
        run.err
    );
    let run = world.run(&["tools", "list", "--session", "s-1"]).expect(1);
    assert!(run.err.contains("was redacted"), "{}", run.err);
}

#[test]
fn an_unknown_session_is_not_found_and_an_unknown_key_is_named() {
    let world = project();
    world.run(&["replay", "latest"]).expect(3);
    followed(&world, "s-1");
    world.run(&["replay", "s-9"]).expect(3);
    world.run(&["replay", "../etc"]).expect(2);
    let auditor = World::bare();
    let root = world.root();
    let root = root.to_str().expect("UTF-8");
    auditor.run(&["replay", "s-1", "--root", root]).expect(2);
    let key = vkey("lodestar-log", &log_key());
    auditor
        .run(&["replay", "s-1", "--root", root, "--key", &key])
        .expect(0);
}

#[test]
fn a_session_of_a_person_has_no_verdicts() {
    let world = World::new();
    world.closed("web", "s-1");
    let report = world.run(&["replay", "s-1", "--json"]).expect(0).json();
    assert_eq!(report["replay"]["verdicts"], 0);
}
