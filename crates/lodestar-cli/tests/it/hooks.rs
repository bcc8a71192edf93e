//! Real clients from npm with the real hook: what it refuses does not happen, and what happens is told.
//!
//! Cursor comes in no package and is not among them.

mod model;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use lodestar_guard::hook::protocol::{self, Moment};
use lodestar_guard::hook::{Client, Event};
use serde_json::{Value, json};

use model::Step;
use stage::{CLIENTS, Stage, writes_a_file};

const REFUSED: &str = "Lodestar cannot judge this, so it must not happen";

fn lodestar(client: Client, event: &str) -> String {
    let program = env!("CARGO_BIN_EXE_lodestar");
    format!("{program} hook {} --event {event}", client.name())
}

fn event_of(client: Client, moment: Moment) -> &'static str {
    let events = protocol::events(client).iter();
    let mut events = events.filter(|(_, of)| *of == moment);
    events.next().expect("every client has it").0
}

#[test]
fn what_the_hook_refuses_before_a_tool_does_not_happen_and_the_model_hears_why() {
    for client in CLIENTS {
        let Some(stage) = Stage::of(client) else {
            continue;
        };
        let before = event_of(client, Moment::Before);
        stage.hook(&[before], |event| lodestar(client, event));
        let model = stage.play(writes_a_file(client, &stage.project()));
        assert_eq!(stage.written(), None, "{client:?}");
        let asked = model.asked();
        assert_eq!(asked.len(), 2, "{client:?} goes on after a refusal");
        let heard = asked[1].to_string();
        assert!(heard.contains(REFUSED), "{client:?}: {heard}");
    }
}

#[test]
fn once_installed_nothing_begins_where_nobody_can_judge_and_everything_does_once_uninstalled() {
    for client in CLIENTS {
        let Some(stage) = Stage::of(client) else {
            continue;
        };
        stage.lodestar("install").expect(0);
        let _ = fs::remove_file(stage.project().join("lodestar.toml"));
        let model = stage.play(writes_a_file(client, &stage.project()));
        assert_eq!(stage.written(), None, "{client:?}");
        assert_eq!(model.asked().len(), 0, "{client:?} keeps the prompt back");
        stage.lodestar("uninstall").expect(0);
        stage.play(writes_a_file(client, &stage.project()));
        let written = stage.written();
        assert_eq!(written.as_deref(), Some("hello\n"), "{client:?}");
    }
}

/// A conversation with reading, changing, a command and a failure in it.
fn conversation(client: Client, project: &Path) -> Vec<Step> {
    let mut steps = writes_a_file(client, project);
    steps.truncate(1);
    let file = project.join("a.txt");
    steps.extend(match client {
        Client::ClaudeCode => vec![
            Step::Use("Read", json!({"file_path": file})),
            Step::Use(
                "Edit",
                json!({"file_path": file, "old_string": "hello", "new_string": "bye"}),
            ),
            Step::Use(
                "Bash",
                json!({"command": "ls; false", "description": "List"}),
            ),
            Step::Use("Bash", json!({"command": "echo hi", "description": "Say"})),
        ],
        Client::Gemini => vec![
            Step::Use("read_file", json!({"file_path": "a.txt"})),
            Step::Use(
                "replace",
                json!({"file_path": "a.txt", "old_string": "hello", "new_string": "bye",
                    "instruction": "say bye"}),
            ),
            Step::Use(
                "run_shell_command",
                json!({"command": "ls", "description": "List"}),
            ),
            Step::Use("read_file", json!({"file_path": "missing.txt"})),
        ],
        _ => vec![Step::Use("exec_command", json!({"cmd": "ls; false"}))],
    });
    steps.push(Step::Say("all done"));
    steps
}

/// The fields of inputs, by event and tool.
fn shapes(inputs: &[Vec<u8>]) -> BTreeMap<(String, String), BTreeSet<String>> {
    let shape = |input: &Vec<u8>| {
        let value: Value = serde_json::from_slice(input).expect("JSON");
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let fields = value.as_object().expect("an object").keys().cloned();
        (
            (text("hook_event_name"), text("tool_name")),
            fields.collect(),
        )
    };
    inputs.iter().map(shape).collect()
}

#[test]
fn what_happens_is_told_before_and_after_and_as_it_was_recorded_once() {
    for client in CLIENTS {
        let Some(stage) = Stage::of(client) else {
            continue;
        };
        let events: Vec<_> = protocol::events(client)
            .iter()
            .map(|(name, _)| *name)
            .collect();
        stage.record(&events);
        stage.play(conversation(client, &stage.project()));
        let inputs = stage.inputs();
        let told: Vec<_> = inputs
            .iter()
            .map(|input| {
                let read = protocol::read(client, None, input);
                let read = read.unwrap_or_else(|problem| panic!("{client:?}: {problem}"));
                read.expect("only events that say something are hooked")
            })
            .collect();
        let cwd = stage.project();
        assert!(
            told.iter().all(|one| one.cwd.as_ref() == Some(&cwd)),
            "{told:?}"
        );
        assert_eq!(told.first().map(|one| &one.event), Some(&Event::Started));
        let uses = |after: bool| -> Vec<_> {
            let uses = told.iter().filter_map(|one| match &one.event {
                Event::Before { r#use } if !after => Some(r#use.tool.clone()),
                Event::After { r#use, .. } if after => Some(r#use.tool.clone()),
                _ => None,
            });
            uses.collect()
        };
        assert_eq!(uses(false), uses(true), "{client:?}");
        assert_eq!(
            uses(true).len(),
            if client == Client::Codex { 2 } else { 5 }
        );
        let results = told.iter().filter_map(|one| match &one.event {
            Event::After { result, .. } => Some(result.to_string()),
            _ => None,
        });
        assert!(
            results.clone().any(|result| result.contains("a.txt")),
            "{client:?}"
        );
        // The recorded inputs are those of this very version.
        let kept = recorded(client);
        let kept = shapes(&kept);
        for (of, fields) in shapes(&inputs) {
            assert_eq!(kept.get(&of), Some(&fields), "{client:?} {of:?}");
        }
    }
}

fn recorded(client: Client) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../lodestar-guard/src/hook/protocol/recorded")
        .join(client.name());
    let version = fs::read_dir(folder).expect("a folder").next();
    let version = version.expect("a version").expect("readable").path();
    let files = fs::read_dir(version).expect("a folder");
    let read = |file: fs::DirEntry| fs::read(file.path()).expect("an input");
    files.map(|file| read(file.expect("a file"))).collect()
}

/// The folder is the model's choice: whoever took it for the project would let a command out of it.
#[test]
fn codex_tells_of_the_folder_that_a_command_runs_in_as_of_its_own() {
    let Some(stage) = Stage::of(Client::Codex) else {
        return;
    };
    stage.record(&[event_of(Client::Codex, Moment::Before)]);
    let elsewhere = json!({"cmd": "pwd", "workdir": "/"});
    stage.play(vec![
        Step::Use("exec_command", elsewhere),
        Step::Say("all done"),
    ]);
    let inputs = stage.inputs();
    assert_eq!(inputs.len(), 1);
    let told: Value = serde_json::from_slice(&inputs[0]).expect("JSON");
    assert_eq!(told["tool_input"], json!({"command": "pwd"}), "{told}");
    assert_eq!(told["cwd"], "/", "{told}");
}

#[test]
fn a_hook_whose_program_is_gone_lets_codex_alone_go_on() {
    for client in CLIENTS {
        let Some(stage) = Stage::of(client) else {
            continue;
        };
        stage.lodestar("install").expect(0);
        let settings = fs::read_to_string(stage.settings()).expect("installed");
        let gone = settings.replace(env!("CARGO_BIN_EXE_lodestar"), "/nonexistent/lodestar");
        assert_ne!(settings, gone);
        fs::write(stage.settings(), gone).expect("written");
        stage.play(writes_a_file(client, &stage.project()));
        // As the guide says: Codex takes every exit code but 2 for a hook that agrees.
        let blocks = client != Client::Codex;
        assert_eq!(stage.written().is_none(), blocks, "{client:?}");
    }
}

fn say(client: &str, event: Option<&str>, input: &[u8]) -> crate::world::Run {
    use std::io::Write as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_lodestar"));
    command.args(["hook", client]);
    if let Some(event) = event {
        command.args(["--event", event]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("piped");
    // It may have answered before it has heard all.
    let _ = stdin.write_all(input);
    drop(stdin);
    crate::world::Run::of(child.wait_with_output().expect("ended"))
}

#[test]
fn whatever_is_said_to_the_hook_is_answered_closed_where_it_can_be() {
    let broken: [&[u8]; 5] = [b"", b"{", b"\xff\xfe", b"[]", b"{\"hook_event_name\":7}"];
    for client in Client::ALL {
        for event in [None, Some(event_of(client, Moment::Before)), Some("Newer")] {
            for input in broken {
                let run = say(client.name(), event, input).expect(2);
                assert!(run.err.contains(REFUSED), "{run:?}");
                assert!(run.json().is_object());
            }
        }
        // What it could stop, nobody knows.
        let newer = br#"{"hook_event_name":"SomethingNew"}"#;
        let run = say(client.name(), None, newer).expect(2);
        assert!(run.err.contains("SomethingNew"), "{run:?}");
        // What is known to tell and no more is heard in silence.
        let stop = match client {
            Client::Cursor => "stop",
            Client::Gemini => "AfterAgent",
            _ => "Stop",
        };
        let told = json!({"hook_event_name": stop}).to_string();
        let silent = say(client.name(), None, told.as_bytes()).expect(0);
        assert_eq!((silent.out.as_str(), silent.err.as_str()), ("", ""));
    }
    let long = vec![b' '; protocol::MAX_INPUT + 10];
    say("claude-code", None, &long).expect(2);
    // An option that does not exist blocks too.
    let mut command = Command::new(env!("CARGO_BIN_EXE_lodestar"));
    command
        .args(["hook", "codex", "--newer"])
        .stdin(Stdio::null());
    crate::world::Run::of(command.output().expect("started")).expect(2);
}

#[test]
fn every_recorded_input_is_answered_in_its_clients_way_where_no_daemon_is() {
    for client in Client::ALL {
        for input in recorded(client) {
            let value: Value = serde_json::from_slice(&input).expect("JSON");
            let event = value["hook_event_name"].as_str().expect("a name");
            let events = protocol::events(client).iter();
            let mut moment = events.filter(|(name, _)| *name == event).map(|(_, of)| *of);
            let speaks = protocol::read(client, None, &input)
                .expect("read")
                .is_some();
            let code = match moment.next_back() {
                _ if !speaks => 0,
                None => 0,
                Some(Moment::Started | Moment::Ended) => 1,
                Some(Moment::After) if client == Client::Cursor => 1,
                Some(_) => 2,
            };
            say(client.name(), Some(event), &input).expect(code);
        }
    }
}

#[test]
fn settings_are_installed_shown_and_taken_out() {
    let dir = tempfile::TempDir::new().expect("a folder");
    let home = tempfile::TempDir::new().expect("a folder");
    let lodestar = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lodestar"));
        command.arg("hook").args(args);
        command.current_dir(dir.path()).env("HOME", home.path());
        crate::world::Run::of(command.output().expect("started"))
    };
    for client in Client::ALL {
        let file = dir.path().join(client.settings());
        let rehearsed = lodestar(&["install", client.name(), "--dry-run"]).expect(0);
        assert!(
            rehearsed.out.contains("nothing was written"),
            "{rehearsed:?}"
        );
        assert!(!file.exists());
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, "{\"mine\": true}").expect("written");
        let installed = lodestar(&["--json", "install", client.name()])
            .expect(0)
            .json();
        assert_eq!(installed["changed"], true);
        assert!(installed["backup"].is_string(), "{installed}");
        let again = lodestar(&["install", client.name()]).expect(0);
        assert!(again.out.contains("stays as it is"), "{again:?}");
        let status = lodestar(&["--json", "status"]).expect(0).json();
        let rows = status["hooks"].as_array().expect("rows");
        let row = |scope: &str| {
            let mut rows = rows.iter();
            let row = rows.find(|row| row["client"] == client.name() && row["scope"] == scope);
            row.expect("a row")["state"].clone()
        };
        assert_eq!(row("project"), "installed");
        assert_eq!(row("user"), "absent");
        lodestar(&["uninstall", client.name()]).expect(0);
        assert_eq!(
            fs::read_to_string(&file).expect("there"),
            "{\"mine\": true}"
        );
    }
    let both = lodestar(&["install", "codex"]).expect(0);
    assert!(!both.err.contains("judged twice"), "{both:?}");
    let of_user = lodestar(&["install", "codex", "--user"]).expect(0);
    assert!(of_user.err.contains("refuse everything"), "{of_user:?}");
    assert!(of_user.err.contains("judged twice"), "{of_user:?}");
    lodestar(&["uninstall", "codex"]).expect(0);
    let file = home.path().join(".codex/hooks.json");
    let text = fs::read_to_string(&file).expect("installed");
    fs::write(&file, text.replace("PreToolUse", "Other")).expect("written");
    let status = lodestar(&["status"]).expect(1);
    assert!(status.out.contains("changed"), "{status:?}");
    fs::write(&file, "{\n no").expect("written");
    let refused = lodestar(&["install", "codex", "--user"]).expect(2);
    assert!(refused.err.contains("line 2"), "{refused:?}");
    lodestar(&["install", "emacs"]).expect(2);
    // What installing made goes, and what it cannot change it explains.
    fs::remove_dir_all(dir.path().join(".gemini")).expect("removed");
    lodestar(&["install", "gemini"]).expect(0);
    lodestar(&["uninstall", "gemini"]).expect(0);
    assert!(!dir.path().join(".gemini").exists());
    let claude = dir.path().join(".claude/settings.json");
    fs::write(&claude, "{\n  // mine\n  \"a\": 1\n}\n").expect("written");
    let refused = lodestar(&["install", "claude-code"]).expect(2);
    assert!(
        refused.err.contains("line 2: there is a comment"),
        "{refused:?}"
    );
    fs::remove_file(&claude).expect("removed");
    std::os::unix::fs::symlink("nowhere.json", &claude).expect("linked");
    let refused = lodestar(&["install", "claude-code"]).expect(2);
    assert!(refused.err.contains("leads nowhere"), "{refused:?}");
}

#[test]
fn installing_writes_the_configuration_that_hooks_need_where_there_is_none() {
    let world = crate::world::World::new();
    let file = world.root().join("lodestar.toml");
    fs::create_dir_all(world.path("home")).expect("a folder");
    let rehearsed = world
        .run(&["hook", "install", "gemini", "--dry-run"])
        .expect(0);
    assert!(rehearsed.out.contains("would be written"), "{rehearsed:?}");
    assert!(!file.exists());
    world
        .run(&["hook", "install", "gemini", "--user"])
        .expect(0);
    assert!(!file.exists(), "a user has many projects");
    let installed = world.run(&["hook", "install", "claude-code"]).expect(0);
    let text = fs::read_to_string(&file).expect("written");
    assert!(text.contains("project_id = \"work\""), "{text}");
    for line in text.lines() {
        assert!(installed.out.contains(line), "{line} in {installed:?}");
    }
    // With it hooks judge.
    let used = json!({"session_id": "s", "cwd": world.root(), "hook_event_name": "PreToolUse",
        "tool_name": "Glob", "tool_input": {"pattern": "*"}, "tool_use_id": "u"});
    let input = world.write("input.json", &used.to_string());
    let mut hook = world.command(&["hook", "claude-code", "--event", "PreToolUse"]);
    hook.stdin(fs::File::open(input).expect("there"));
    let answered = crate::world::Run::of(hook.output().expect("started"));
    world.run(&["hook", "stop"]).expect(0);
    answered.expect(0);
    // One that is there stays, and one above counts.
    fs::write(&file, "project_id = \"mine\"\nactor_id = \"a\"\n").expect("written");
    world.run(&["hook", "install", "codex"]).expect(0);
    let text = fs::read_to_string(&file).expect("there");
    assert!(text.contains("mine"), "{text}");
    fs::create_dir(world.root().join("below")).expect("a folder");
    let mut below = world.command(&["hook", "install", "codex"]);
    below.current_dir(world.root().join("below"));
    crate::world::Run::of(below.output().expect("started")).expect(0);
    assert!(!world.root().join("below/lodestar.toml").exists());
}

#[test]
fn hooks_that_some_settings_turn_off_are_not_called_installed() {
    let dir = tempfile::TempDir::new().expect("a folder");
    let home = tempfile::TempDir::new().expect("a folder");
    let lodestar = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lodestar"));
        command.arg("hook").args(args);
        command.current_dir(dir.path()).env("HOME", home.path());
        crate::world::Run::of(command.output().expect("started"))
    };
    lodestar(&["install", "claude-code", "--user"]).expect(0);
    lodestar(&["status"]).expect(0);
    // The project's settings turn off what stands in the user's.
    let local = dir.path().join(".claude/settings.local.json");
    fs::create_dir_all(local.parent().expect("a folder")).expect("a folder");
    fs::write(&local, "{\"disableAllHooks\": true}").expect("written");
    let status = lodestar(&["--json", "status"]).expect(1).json();
    let rows = status["hooks"].as_array().expect("rows");
    let off: Vec<_> = rows.iter().filter(|row| row["state"] == "off").collect();
    assert_eq!(off.len(), 1, "{status}");
    assert_eq!(off[0]["scope"], "user");
    let status = lodestar(&["status"]).expect(1);
    assert!(
        status.out.contains("`disableAllHooks` is true"),
        "{status:?}"
    );
    assert!(!status.out.contains("installed"), "{status:?}");
}
