//! A disk that cannot make anything safe: what has to be on disk before it runs does not run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lodestar_guard::Outcome;
use serde_json::{Value, json};

use super::{Scene, arguments, session_id};

/// The file whose appearance breaks the disk.
const TRIGGER: &str = "LODESTAR_TEST_TRIGGER";

/// Whether the process breaks it.
const BREAK: &str = "LODESTAR_TEST_BREAK";

#[tokio::test]
#[ignore = "is started by the tests below, in a process of its own"]
async fn a_process_whose_disk_fails() {
    let scene = Scene::inherited();
    let session = scene.open("s1").await;
    let mut said = Vec::new();
    for (tool, name) in [
        ("box.read", "l0-before"),
        ("box.write", "l3-before"),
        ("box.write", "l3-after"),
        ("box.write", "l3-again"),
        ("box.read", "l0-after"),
    ] {
        if name == "l3-after" && std::env::var_os(BREAK).is_some() {
            std::fs::write(std::env::var_os(TRIGGER).unwrap(), "").unwrap();
        }
        let answer = match session.call(tool, arguments(name)).await {
            Ok(reply) => match reply.outcome {
                Outcome::Returned(_) => "ran".to_owned(),
                Outcome::Failed(_) => "failed".to_owned(),
                Outcome::Refused(why) => why.kind().to_owned(),
            },
            Err(problem) => format!("error: {problem}"),
        };
        said.push(json!({"call": name, "answer": answer}));
    }
    let closed = session.close("done").await.is_ok();
    let said = json!({"calls": said, "closed": closed});
    std::fs::write(scene.folder.join("said"), said.to_string()).unwrap();
}

/// A library that fails to sync, made by the system's compiler.
fn library(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/steps/unsynced.c");
    let library = folder.join("unsynced.so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(
        made.status.success(),
        "the library does not compile: {said}"
    );
    Some(library)
}

/// Says loudly, past the capture of output, that something was not tested here.
fn skip(what: &str) {
    assert!(
        std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
        "not everything can be tested here: {what}"
    );
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Runs the calls in a process with the library, and gives what it said of each.
fn run(scene: &Scene, breaks: bool) -> Option<(Vec<(String, String)>, bool)> {
    let Some(library) = library(&scene.folder) else {
        skip("a disk that fails to sync (it needs a C compiler, `cc`)");
        return None;
    };
    let mut child = scene.child("steps::unsynced::a_process_whose_disk_fails");
    child
        .env("LD_PRELOAD", library)
        .env(TRIGGER, scene.folder.join("trigger"));
    if breaks {
        child.env(BREAK, "1");
    }
    let status = child.status().unwrap();
    assert!(status.success(), "{status}");
    let said = std::fs::read(scene.folder.join("said")).unwrap();
    let said: Value = serde_json::from_slice(&said).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let calls = said["calls"].as_array().unwrap();
    let calls = calls
        .iter()
        .map(|call| (text(&call["call"]), text(&call["answer"])));
    Some((calls.collect(), said["closed"].as_bool().unwrap()))
}

#[tokio::test]
async fn an_l3_call_whose_clearance_cannot_be_synced_does_not_run_and_nothing_clears_after_it() {
    let scene = Scene::new();
    let Some((said, closed)) = run(&scene, true) else {
        return;
    };
    let answers: Vec<_> = said.iter().map(|(_, answer)| answer.as_str()).collect();
    assert_eq!(answers[..3], ["ran", "ran", "not_recorded"], "{said:?}");
    for (call, answer) in &said[3..] {
        assert!(answer.starts_with("error: "), "{call}: {answer}");
    }
    assert!(
        !closed,
        "a session that cannot be recorded cannot be closed"
    );
    assert_eq!(scene.ran(), ["l0-before", "l3-before"]);

    // The disk is whole again: the next session says what is known, and runs nothing.
    let next = scene.open("s2").await;
    next.close("done").await.unwrap();
    assert_eq!(scene.ran(), ["l0-before", "l3-before"]);
    let events = scene.project().events(&session_id("s1"));
    let (kind, payload) = events.last().unwrap();
    assert_eq!(kind, "session.closed@1");
    assert_eq!(payload["reason"], "interrupted");
    let of = |kind: &str| crate::governed::count(&events, kind);
    let open = of("action.cleared") - of("action.completed");
    assert_eq!(of("action.unknown"), open);
    for name in ["l3-again", "l0-after"] {
        let named = |(_, payload): &(String, Value)| payload["arguments"]["text"] == name;
        assert!(!events.iter().any(named), "`{name}` is not in the log");
    }
    scene.project().assert_sound(&session_id("s1"));
}

#[tokio::test]
async fn the_same_calls_run_where_the_disk_does_not_fail() {
    let scene = Scene::new();
    let Some((said, closed)) = run(&scene, false) else {
        return;
    };
    assert!(said.iter().all(|(_, answer)| answer == "ran"), "{said:?}");
    assert!(closed);
    assert_eq!(scene.ran().len(), 5);
    scene.project().assert_sound(&session_id("s1"));
}
