//! `lodestar log show`

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_log::Barrier;
use serde_json::{Value, json};

use crate::world::{HOSTILE, World, actor, assert_inert, fill};

#[test]
fn one_line_per_event_with_hostile_content_inert() {
    let world = World::new();
    world.closed("web", "s-1");
    let run = world.run(&["log", "show"]).expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!(run.out);
}

#[test]
fn a_new_day_is_announced() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    world.wait(24 * 3600);
    fill(&writer);
    drop(writer);
    let run = world.run(&["log", "show"]).expect(0);
    let days: Vec<&str> = run.out.lines().filter(|l| l.starts_with("──")).collect();
    assert_eq!(days, ["── 2026-01-02 UTC ──", "── 2026-01-03 UTC ──"]);
}

#[test]
fn payloads_are_whole_and_inert() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    let large = format!("{}\u{202e}", "large ".repeat(10_000));
    writer
        .append(
            EventType::OBSERVATION_RECORDED,
            &actor(),
            &[0],
            &json!({"content": large}),
        )
        .expect("appended");
    writer.close(&actor(), &json!({})).expect("closed");
    let line = world
        .run(&["log", "show", "--from", "1", "--limit", "1"])
        .expect(0)
        .out;
    assert!(line.contains("content: (58.6 KiB in a blob)"), "{line}");
    let run = world
        .run(&["log", "show", "--payload", "--from", "1", "--limit", "1"])
        .expect(0);
    assert_inert(&run.out);
    assert!(run.out.contains("actor tester, caused by #0"));
    assert!(run.out.contains(&"large ".repeat(10_000)));
    assert!(run.out.contains(r"\u202e"));

    world.closed("web", "s-2");
    let run = world.run(&[
        "log",
        "show",
        "s-2",
        "--payload",
        "--from",
        "3",
        "--limit",
        "1",
    ]);
    insta::assert_snapshot!("payload", run.expect(0).out);
}

#[test]
fn types_beginning_and_number_narrow_it() {
    let world = World::new();
    world.closed("web", "s-1");
    let seqs = |args: &[&str]| -> Vec<u64> {
        let mut all = vec!["log", "show", "--json"];
        all.extend(args);
        let events = world.run(&all).expect(0).ndjson();
        events
            .iter()
            .map(|e| e["seq"].as_u64().expect("a number"))
            .collect()
    };
    assert_eq!(seqs(&[]), [0, 1, 2, 3, 4]);
    assert_eq!(seqs(&["--type", "action."]), [1, 2]);
    assert_eq!(
        seqs(&["--type", "action.judged@1", "--type", "session."]),
        [0, 2, 4]
    );
    assert_eq!(seqs(&["--from", "2"]), [2, 3, 4]);
    assert_eq!(seqs(&["--from", "1", "--limit", "2"]), [1, 2]);
    assert_eq!(seqs(&["--type", "nothing"]), [0; 0]);
    assert_eq!(seqs(&["--limit", "0"]), [0; 0]);
    assert_eq!(seqs(&["--from", "18446744073709551615"]), [0; 0]);
}

#[test]
fn where_nothing_matches_it_says_so_beside_the_output() {
    let world = World::new();
    world.closed("web", "s-1");
    for args in [["--from", "999"], ["--type", "nosuch"]] {
        let mut all = vec!["log", "show"];
        all.extend(args);
        let run = world.run(&all).expect(0);
        assert!(run.out.is_empty(), "{}", run.out);
        assert_eq!(
            run.err,
            "note: no event matches; session `s-1` has 5 events\n"
        );
        all.push("--json");
        let run = world.run(&all).expect(0);
        assert!(run.out.is_empty() && run.err.is_empty());
    }
    let run = world.run(&["log", "show", "--limit", "0"]).expect(0);
    assert!(run.err.is_empty());
}

#[test]
fn a_redaction_is_told_by_name_and_reason() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    world
        .run(&[
            "log",
            "redact",
            "s-1",
            "--seq",
            "1,3",
            "--reason",
            "leaked\x1b[31m",
            "--yes",
        ])
        .expect(0);
    let args = ["log", "show", "--type", "log.redacted"];
    let run = world.run(&args).expect(0);
    assert_inert(&run.out);
    assert!(
        run.out.contains("2 events redacted by alice: leaked␛[31m"),
        "{}",
        run.out
    );
    let run = world
        .run(&["log", "show", "--type", "log.redacted", "--payload"])
        .expect(0);
    assert_inert(&run.out);
    assert!(run.out.contains(r#""reason": "leaked\u001b[31m""#));
    // The statement as it was signed is for machines.
    let events = world
        .run(&["log", "show", "--type", "log.redacted", "--json"])
        .expect(0)
        .ndjson();
    assert!(events[0]["payload"]["statement"]["payload"].is_string());
    fs::remove_dir_all(world.path("config/operators")).expect("removed");
    let id = crate::world::operator_key().public().key_id().to_string();
    let run = world.run(&args).expect(0);
    assert!(run.out.contains("2 events redacted by "), "{}", run.out);
    assert!(run.out.contains(&id[..8]), "{}", run.out);
}

#[test]
fn json_is_the_whole_event() {
    let world = World::new();
    world.closed("web", "s-1");
    let events = world.run(&["log", "show", "--json"]).expect(0).ndjson();
    let event = &events[3];
    let keys: BTreeSet<&str> = event
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        BTreeSet::from([
            "actor",
            "leaf_hash",
            "parents",
            "payload",
            "project",
            "redacted_by",
            "seq",
            "session",
            "time",
            "type"
        ])
    );
    assert_eq!(event["payload"]["content"], HOSTILE);
    assert_eq!(event["type"], "observation.recorded@1");
    assert_eq!(event["parents"], json!([1, 2]));
    assert_eq!(event["redacted_by"], Value::Null);
    // Even as JSON it is safe to look at.
    assert_inert(&world.run(&["log", "show", "--json"]).out);
}

#[test]
fn damage_is_reported_behind_what_could_be_read() {
    let world = World::new();
    world.will_be_edited();
    world.closed("web", "s-1");
    let path = world.session("web", "s-1").events_path();
    let text = fs::read_to_string(&path).expect("readable");
    fs::write(
        &path,
        text.replacen("\"verdict\"", "\"verdict", 1).replacen(
            "action.judged",
            "action\x1bjudged",
            1,
        ),
    )
    .expect("written");
    let run = world.run(&["log", "show"]).expect(1);
    assert!(run.out.contains("action.proposed@1"), "{}", run.out);
    assert!(run.err.contains("events.ndjson`, byte "), "{}", run.err);
    assert!(run.err.contains("lodestar log verify"));
}

#[test]
fn follow_shows_events_as_they_arrive_and_ends_with_the_session() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    let mut child = world
        .command(&["log", "show", "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let (send, lines) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    std::thread::spawn(move || {
        stdout
            .lines()
            .for_each(|line| send.send(line.expect("UTF-8")).expect("heard"))
    });
    let next = || -> Value {
        let line = lines
            .recv_timeout(Duration::from_secs(20))
            .expect("an event in time");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(next()["seq"], 0);
    for seq in 1..=5 {
        writer
            .append(EventType::AGENT_NOTE, &actor(), &[], &json!({"note": seq}))
            .expect("appended")
            .wait(Barrier::Disk)
            .expect("on disk");
        assert_eq!(next()["payload"]["note"], seq);
    }
    assert!(
        child.try_wait().expect("known").is_none(),
        "it still follows"
    );
    writer.close(&actor(), &json!({})).expect("closed");
    assert_eq!(next()["type"], "session.closed@1");
    assert!(child.wait().expect("ended").success());
}

#[test]
fn follow_ends_at_once_on_a_closed_session_and_at_its_limit() {
    let world = World::new();
    world.closed("web", "s-1");
    let run = world.run(&["log", "show", "--follow", "--json"]).expect(0);
    assert_eq!(run.ndjson().len(), 5);
    let _live = world.open("web", "s-2");
    let run = world
        .run(&["log", "show", "s-2", "-f", "--json", "--limit", "1"])
        .expect(0);
    assert_eq!(run.ndjson().len(), 1);
}
