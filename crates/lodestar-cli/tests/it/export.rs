//! `lodestar log export`

use std::fs;

use lodestar_core::event::EventType;
use serde_json::{Value, json};

use crate::world::{World, actor};

#[test]
fn blobs_are_back_in_their_places() {
    let world = World::new();
    let large = "content of a large file\n".repeat(5_000);
    let writer = world.open("web", "s-1");
    writer
        .append(
            EventType::OBSERVATION_RECORDED,
            &actor(),
            &[],
            &json!({"content": large, "n": 1}),
        )
        .expect("appended");
    writer.close(&actor(), &json!({})).expect("closed");
    let events = world
        .run(&["log", "export", "--type", "observation."])
        .expect(0)
        .ndjson();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["payload"], json!({"content": large, "n": 1}));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let world = World::new();
    world.will_be_edited();
    world.closed("web", "s-1");
    let out = world.path("out.ndjson");
    let out_text = out.to_str().expect("UTF-8");
    let run = world.run(&["log", "export", "--out", out_text]).expect(0);
    assert!(run.out.starts_with("5 events written to "), "{}", run.out);
    let direct = world.run(&["log", "export"]).expect(0).out;
    assert_eq!(fs::read_to_string(&out).expect("written"), direct);
    let summary = world
        .run(&["log", "export", "--out", out_text, "--json"])
        .expect(0)
        .json();
    assert_eq!(summary["events"], 5);

    // A log that breaks off in the middle leaves the old export.
    let path = world.session("web", "s-1").events_path();
    let broken =
        fs::read_to_string(&path)
            .expect("readable")
            .replacen("action.judged", "action judged", 1);
    fs::write(&path, broken).expect("written");
    world.run(&["log", "export", "--out", out_text]).expect(1);
    assert_eq!(fs::read_to_string(&out).expect("still there"), direct);
    let leftovers = fs::read_dir(world.path("."))
        .expect("readable")
        .filter(|e| {
            e.as_ref()
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .starts_with(".lodestar-")
        });
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn an_event_whose_blob_is_missing_goes_without_it_and_the_exit_code_says_so() {
    let world = World::new();
    let writer = world.open("web", "s-1");
    writer
        .append(
            EventType::OBSERVATION_RECORDED,
            &actor(),
            &[],
            &json!({"content": "x".repeat(100_000)}),
        )
        .expect("appended");
    writer.close(&actor(), &json!({})).expect("closed");
    fs::remove_dir_all(world.session("web", "s-1").blobs_dir()).expect("removed");
    let run = world.run(&["log", "export"]).expect(1);
    assert!(
        run.err
            .contains("the payload of 1 event could not be restored"),
        "{}",
        run.err
    );
    let events = run.ndjson();
    assert_eq!(events.len(), 3);
    assert_eq!(events[1]["payload"], Value::Null);
    let error = events[1]["error"].as_str().expect("text");
    assert!(error.contains("the blob is missing"), "{error}");
    assert_eq!(events[2]["type"], "session.closed@1");
    assert!(events[2].get("error").is_none());
    let out = world.path("out.ndjson");
    let out_text = out.to_str().expect("UTF-8");
    let summary = world
        .run(&["log", "export", "--out", out_text, "--json"])
        .expect(1)
        .json();
    assert_eq!(summary["events"], 3);
    assert_eq!(summary["incomplete"], 1);
    assert_eq!(fs::read_to_string(&out).expect("written"), run.out);
    let shown = world.run(&["log", "show", "--json"]).expect(1);
    assert_eq!(shown.out, run.out);
}

#[test]
fn a_redacted_event_has_no_payload_and_names_who_took_it() {
    let world = World::new();
    world.closed("web", "s-1");
    world.add_operator();
    world
        .run(&[
            "log", "redact", "s-1", "--seq", "3", "--reason", "test", "--yes",
        ])
        .expect(0);
    let events = world.run(&["log", "export"]).expect(0).ndjson();
    assert_eq!(events[3]["payload"], Value::Null);
    assert_eq!(events[3]["redacted_by"], 5);
    assert_eq!(events[2]["redacted_by"], Value::Null);
}

#[test]
fn nothing_is_written_through_a_link_and_what_is_no_file_is_not_replaced_by_one() {
    use std::os::unix::fs::FileTypeExt as _;
    let world = World::new();
    world.closed("web", "s-1");
    let target = world.write("target", "old");
    let link = world.path("link");
    std::os::unix::fs::symlink(&target, &link).expect("linked");
    let out = |path: &std::path::Path| {
        let path = path.to_str().expect("UTF-8").to_owned();
        world.run(&["log", "export", "--out", &path])
    };
    let run = out(&link).expect(2);
    assert!(run.err.contains("is a link"), "{}", run.err);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&target).expect("readable"), "old");
    let dangling = world.path("dangling");
    std::os::unix::fs::symlink(world.path("nothing"), &dangling).expect("linked");
    out(&dangling).expect(2);
    assert!(!world.path("nothing").exists());
    out(&target).expect(0);
    assert_eq!(
        fs::read_to_string(&target)
            .expect("readable")
            .lines()
            .count(),
        5
    );
    let socket = world.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    out(&socket).expect(2);
    assert!(
        fs::metadata(&socket)
            .expect("there")
            .file_type()
            .is_socket()
    );
    out(&world.path("config")).expect(2);
    out(&world.path("no/such/dir/file")).expect(3);
}
