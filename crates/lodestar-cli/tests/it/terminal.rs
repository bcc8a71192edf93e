//! Runs of the binary at a terminal, and without any. Python's `pty` plays the person.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::world::{Run, World};

/// Whether tests that need Python can run.
pub(crate) fn python() -> bool {
    let found = Command::new("python3")
        .args(["-c", "import pty"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        skip("python3 with its pty module is missing");
    }
    found
}

/// Says that a test cannot run here, past the capture of output; fails where all must run.
pub(crate) fn skip(reason: &str) {
    let required = std::env::var("LODESTAR_REQUIRE_ALL").is_ok_and(|v| v == "1");
    assert!(!required, "{reason}");
    let current = std::thread::current();
    let test = current.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {reason}");
}

/// What stood on the screen, and the exit code.
pub(crate) struct Session {
    pub(crate) screen: String,
    pub(crate) code: i64,
}

/// Runs the binary at a terminal. Each step waits for a text on the screen, then types an answer.
pub(crate) fn at_terminal(
    world: &World,
    args: &[&str],
    environment: &[(&str, &str)],
    steps: &[(&str, &str)],
) -> Session {
    let report = drive(world, args, environment, json!(steps));
    Session {
        screen: report["screen"].as_str().expect("text").to_owned(),
        code: report["code"].as_i64().expect("a number"),
    }
}

/// Runs the binary where `/dev/tty` cannot be opened.
pub(crate) fn without_terminal(world: &World, args: &[&str]) -> Run {
    let report = drive(world, args, &[], Value::Null);
    let text = |key: &str| report[key].as_str().expect("text").to_owned();
    Run {
        code: report["code"].as_i64().expect("a number") as i32,
        out: text("stdout"),
        err: text("stderr"),
    }
}

fn drive(world: &World, args: &[&str], environment: &[(&str, &str)], steps: Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/terminal.py");
    let template = world.command(args);
    let mut variables: serde_json::Map<String, Value> = template
        .get_envs()
        .filter_map(|(k, v)| Some((k.to_str()?.to_owned(), json!(v?.to_str()?))))
        .collect();
    variables.extend(environment.iter().map(|(k, v)| ((*k).to_owned(), json!(v))));
    let request = json!({
        "argv": std::iter::once(env!("CARGO_BIN_EXE_lodestar")).chain(args.iter().copied()).collect::<Vec<_>>(),
        "env": variables,
        "cwd": world.root().to_str(),
        "steps": steps,
    });
    let output = Command::new("python3")
        .arg(script)
        .arg(request.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).expect("a report")
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    if !python() {
        return;
    }
    let world = World::new();
    world.closed("web", "s-1");
    let coloured = |environment: &[(&str, &str)]| {
        let mut all = vec![("TERM", "xterm-256color")];
        all.extend(environment);
        let session = at_terminal(&world, &["log", "verify"], &all, &[]);
        assert_eq!(session.code, 0);
        session.screen.contains("\x1b[")
    };
    assert!(coloured(&[]));
    assert!(!coloured(&[("NO_COLOR", "1")]));
    assert!(!coloured(&[("TERM", "dumb")]));
    let mut piped = world.command(&["log", "verify"]);
    piped.env("TERM", "xterm-256color");
    assert!(
        !Run::of(piped.output().expect("started"))
            .out
            .contains('\x1b')
    );
}

#[test]
fn on_a_terminal_a_line_keeps_to_its_width() {
    if !python() {
        return;
    }
    let world = World::new();
    world.closed("web", "s-1");
    let session = at_terminal(&world, &["log", "show"], &[("NO_COLOR", "1")], &[]);
    for line in session.screen.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // And what fits is there.
    assert!(
        session.screen.contains("content: IGNORE ALL"),
        "{}",
        session.screen
    );
}
