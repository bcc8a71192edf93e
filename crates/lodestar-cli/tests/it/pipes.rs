//! Readers that leave early, and output that cannot be written.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use lodestar_core::event::EventType;
use serde_json::json;

use crate::world::{World, actor};

fn long_session(world: &World) {
    let writer = world.open("web", "long");
    for n in 0..5_000 {
        writer
            .append(
                EventType::AGENT_NOTE,
                &actor(),
                &[],
                &json!({"n": n, "text": "x".repeat(200)}),
            )
            .expect("appended");
    }
    writer.close(&actor(), &json!({})).expect("closed");
}

#[test]
fn a_reader_that_leaves_ends_a_stream_quietly() {
    let world = World::new();
    long_session(&world);
    for args in [
        &["log", "show"][..],
        &["log", "show", "--json"],
        &["log", "show", "--payload"],
        &["log", "export"],
        &["log", "prove", "7"],
        &["log", "verify", "--json"],
        &["log", "list"],
        &["demo"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = world
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut stdout = child.stdout.take().expect("piped");
        let mut first = [0; 16];
        stdout.read_exact(&mut first).expect("something");
        drop(stdout);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(
            output.stderr.is_empty(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_failed_check_is_still_one_when_nobody_reads_about_it() {
    let world = World::new();
    long_session(&world);
    let path = world.session("web", "long").events_path();
    let text = fs::read_to_string(&path)
        .expect("readable")
        .replacen("xxx", "xyx", 1);
    fs::write(&path, text).expect("written");
    let mut child = world
        .command(&["log", "verify"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_full_device_is_an_error() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        crate::terminal::skip("there is no /dev/full");
        return;
    };
    let world = World::new();
    world.closed("web", "s-1");
    let mut command = world.command(&["log", "show"]);
    let output = command.stdout(full).output().expect("started");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("the output cannot be written"), "{error}");
}

#[test]
fn nothing_is_said_on_stderr_when_all_is_well() {
    let world = World::new();
    long_session(&world);
    for args in [
        &["log", "show"][..],
        &["log", "verify"],
        &["log", "list"],
        &["log", "export", "--out", "x.ndjson"],
        &["log", "anchor"],
        &["demo"],
    ] {
        assert_eq!(world.run(args).expect(0).err, "", "{args:?}");
    }
}
