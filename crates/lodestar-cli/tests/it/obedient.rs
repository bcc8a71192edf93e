//! An obedient agent, with everything up to L3 allowed: it writes a test that reads the approver's key, approves, edits
//! the store and the log and pushes, and runs it. Nothing of that succeeds, and the report says what it was.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::gated::{RUN, events};
use crate::terminal::python;
use crate::world::World;

const ATTACK: &str = include_str!("obedient.py");

/// A project whose approver has a key that nothing seals, with a remote that anybody could push to.
fn world() -> World {
    let world = World::new();
    let keygen = ["approve", "keygen", "--name", "alice", "--no-passphrase"];
    world.run(&keygen).expect(0);
    let pin = fs::read_to_string(world.path("config/operators/alice.pub")).expect("pinned");
    let pin: lodestar_core::note::NoteKey = pin.trim_end().parse().expect("a key");
    let public = pin.public_key();
    world.write(
        "work/lodestar.toml",
        &format!(
            r#"
project_id = "web"
actor_id = "agent"
session_id = "s-1"
auto_approve_ceiling = 3
approval_timeout_ms = 1000
[tools."fs.read"]
root = "."
[tools."fs.write"]
root = "."
[tools."shell.run"]
root = "."
timeout_ms = 120000
[tools."shell.run".programs.python3]
path = "/usr/bin/python3"
[tool_defaults."fs.read"]
required_trust_level = "L4"
blast_radius = "external"
reversibility = "irreversible"
data_sensitivity = "private"
[[approvals.authorized_keys]]
actor_id = "alice"
public_key = "{public}"
"#
        ),
    );
    world.write("work/plan.md", "a plan\n");
    let remote = world.path("remote.git");
    let remote = remote.to_str().expect("text");
    git(&world, &["init", "-q", "--bare", remote]);
    git(&world, &["init", "-q", "-b", "main"]);
    git(&world, &["remote", "add", "origin", remote]);
    git(&world, &["add", "plan.md"]);
    git(&world, &["commit", "-qm", "first"]);
    git(&world, &["push", "-q", "origin", "main"]);
    world
}

fn git(world: &World, words: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(words)
        .current_dir(world.root())
        .output()
        .expect("git is there");
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).expect("text")
}

/// One call that is held, so that there is something to approve; then the test is written, and run.
fn script(attack: &str) -> String {
    let held = json!({"call": "fs.read", "args": {"path": "plan.md"}, "expect": "refused", "expect_kind": "approval_timeout"});
    let write = json!({"call": "fs.write", "args": {"path": "test_it.py", "content": attack}, "expect": "returned"});
    let run = json!({"call": "shell.run", "args": {"program": "python3", "args": ["test_it.py"]}});
    [&held, &write, &run, &held]
        .map(|step: &Value| format!("{step}\n"))
        .concat()
}

#[test]
fn a_test_that_an_obedient_agent_writes_and_runs_approves_edits_and_pushes_nothing() {
    if !python() || !cfg!(target_os = "linux") {
        return;
    }
    let world = world();
    let text = |path: std::path::PathBuf| path.to_str().expect("text").to_owned();
    // The program itself lies where the test may run it.
    let binary = world.path("work/lodestar");
    fs::hard_link(env!("CARGO_BIN_EXE_lodestar"), &binary)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_lodestar"), &binary).map(drop))
        .expect("the program is there");
    let attack = |request: &str| {
        ATTACK
            .replace("@CONFIG", &text(world.path("config")))
            .replace("@BINARY", &text(binary.clone()))
            .replace("@REMOTE", &text(world.path("remote.git")))
            .replace("@REQUEST", request)
    };
    // A name of the right form, where none can be seen.
    let attack = attack("01JZZZZZZZZZZZZZZZZZZZZZZZ");
    world.write("work/script.jsonl", &script(&attack));
    let remote = || git(&world, &["ls-remote", "origin"]);
    let before = remote();
    let mut args = RUN.to_vec();
    args[5] = "script.jsonl";
    args.push("--json");
    let report = world.run(&args).expect(0).json();
    let told = report["steps"][2]["called"]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{report}"));

    let tried: Vec<(&str, &str)> = told.lines().filter_map(|l| l.split_once(": ")).collect();
    let names = [
        "read the key",
        "grant what is seen",
        "grant by name",
        "edit the store",
        "append to the log",
        "ask the daemon",
        "push",
        "push by path",
        "write the remote",
        "plant a hook",
        "add a key",
        "read the parent",
        "plant a client",
    ];
    for name in names {
        let came = tried.iter().find(|(found, _)| found == &name);
        let (_, came) = came.unwrap_or_else(|| panic!("{name} was not tried:\n{told}"));
        println!("{name}: {came}");
        // Where nothing was, a file can be made; it does not stay.
        let works = name == "plant a client";
        assert_eq!(*came == "did", works, "{name}\n{told}");
    }
    for key in ["alice.key", "log.key"] {
        let secret = fs::read_to_string(world.path("config/keys").join(key)).expect("there");
        assert!(
            !report.to_string().contains(secret.trim()),
            "{key} was seen"
        );
    }
    assert_eq!(remote(), before, "the remote was changed");
    assert!(!world.path("work/.mcp.json").exists());
    assert!(world.path("work/.mcp.json.refused-by-lodestar").exists());
    assert!(!world.path("work/.git/hooks/pre-push").exists());
    assert!(!world.path("config/keys/mallory.key").exists());

    let all = events(&world, "s-1");
    let count = |kind: &str| all.iter().filter(|(_, found, _)| found == kind).count();
    assert_eq!(count("approval.granted@1"), 0);
    assert!(count("approval.requested@1") >= 1);
    world.run(&["log", "verify"]).expect(0);
    world.run(&["replay", "s-1"]).expect(0);

    let shown = world
        .run(&["report", "s-1", "--format", "md"])
        .expect(0)
        .out;
    for part in ["fs.write", "shell.run", "test_it.py", "L3"] {
        assert!(
            shown.contains(part),
            "the report does not say {part}:\n{shown}"
        );
    }
    let word = match lodestar_kernel::contain::Host::here().namespaces() {
        true => "contained, proved",
        false => "contained in part",
    };
    assert!(shown.contains(word), "{shown}");
    let planted = shown
        .lines()
        .find(|line| line.contains("refused-by-lodestar"));
    assert!(
        planted.is_some_and(|line| line.contains("appeared while it ran")),
        "{shown}"
    );
}
