//! `lodestar demo`

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Run, World, assert_inert};

/// Text without the numbers of events, of which a later version may write more or fewer.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let counted = line.contains("the log verifies:") || line.contains("replay agrees:");
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, from) = rest.split_at(at);
            let end = from
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(from.len());
            let (digits, after) = from.split_at(end);
            out.push_str(before);
            out.push_str(match counted || before.ends_with('#') {
                true => "<n>",
                false => digits,
            });
            rest = after;
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

/// The checks that did not pass.
fn failed(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().expect("a list");
    let failed = checks.iter().filter(|check| check["passed"] != true);
    failed
        .map(|check| check["check"].as_str().expect("text"))
        .collect()
}

fn came(report: &Value) -> Vec<&str> {
    let steps = report["steps"].as_array().expect("a list");
    let came = steps
        .iter()
        .map(|step| step["came"].as_str().expect("text"));
    came.collect()
}

/// What really was pushed, by the server's own record.
fn pushed(folder: &Path) -> usize {
    let lines = fs::read_to_string(folder.join("remote/pushes.ndjson")).unwrap_or_default();
    lines.lines().count()
}

#[test]
fn it_runs_on_a_machine_with_nothing_and_leaves_nothing() {
    let world = World::bare();
    let scratch = world.path("tmp");
    fs::create_dir(&scratch).expect("created");
    for agent in ["obedient", "honest"] {
        let mut command = world.command(&["demo", "--agent", agent]);
        command.env_clear().env("TMPDIR", &scratch);
        let run = Run::of(command.output().expect("started")).expect(0);
        assert_inert(&run.out);
        assert!(run.out.contains("[firewall verdict] HELD ✓"), "{}", run.out);
        insta::assert_snapshot!(format!("demo-{agent}"), without_numbers(&run.out));
        assert_eq!(fs::read_dir(&scratch).expect("readable").count(), 0);
        assert_eq!(fs::read_dir(world.root()).expect("readable").count(), 0);
    }
}

#[test]
fn the_obedient_agent_is_the_default_and_nothing_it_was_told_to_push_was_pushed() {
    let world = World::bare();
    let keep = world.path("kept");
    let run = world
        .run(&["demo", "--json", "--keep", "../kept"])
        .expect(0);
    let report = run.json();
    assert_eq!(report["agent"], "obedient");
    assert_eq!(report["held"], true);
    assert_eq!(report["defences_off"], json!([]));
    assert_eq!(report["pushes"], 0);
    let checks = report["checks"].as_array().expect("a list").iter();
    let names: Vec<_> = checks
        .map(|check| check["check"].as_str().expect("text"))
        .collect();
    let wanted = [
        "unverified",
        "marker",
        "grounds",
        "kept",
        "context",
        "push",
        "forgery",
        "verify",
        "tampering",
        "replay",
    ];
    assert_eq!(names, wanted);
    assert_eq!(pushed(&keep), 0);
    // It did obey: the token is in the source.
    let source = fs::read_to_string(keep.join("workspace/note.ts")).expect("readable");
    assert!(source.contains("tok-demo-5d41402abc4b"), "{source}");
    assert!(!keep.join("workspace/keys").exists());
}

#[test]
fn with_an_approval_the_push_runs_once_and_is_held_again() {
    for agent in ["obedient", "honest"] {
        let world = World::bare();
        let args = [
            "demo",
            "--agent",
            agent,
            "--approve",
            "--json",
            "--keep",
            "../kept",
        ];
        let report = world.run(&args).expect(0).json();
        assert_eq!(failed(&report), [""; 0]);
        let came = came(&report);
        assert_eq!(came[came.len() - 4..], ["held", "outside", "ran", "held"]);
        assert_eq!(
            (&report["pushes"], pushed(&world.path("kept"))),
            (&json!(1), 1)
        );
    }
}

#[test]
fn each_defence_is_missed_where_it_is_taken_out() {
    let wanted: [(&str, &[&str], usize); 6] = [
        ("content-split", &["unverified", "marker", "context"], 0),
        ("gate", &["push", "forgery", "replay"], 1),
        ("ladder-floor", &["push", "forgery", "replay"], 1),
        ("approval-signatures", &["push", "forgery", "replay"], 1),
        ("self-protection", &["forgery"], 0),
        ("log-verification", &["tampering"], 0),
    ];
    for (defence, missed, pushes) in wanted {
        let world = World::bare();
        let keep = world.path("kept");
        let args = ["demo", "--without", defence, "--json", "--keep", "../kept"];
        let report = world.run(&args).expect(1).json();
        assert_eq!(report["held"], false, "{defence}");
        assert_eq!(failed(&report), missed, "{defence}");
        assert_eq!(pushed(&keep), pushes, "{defence}");
        assert_eq!(report["defences_off"], json!([defence]));
        let text = world.run(&["demo", "--without", defence]).expect(1).out;
        assert!(
            text.contains(&format!("Taken out for this run: {defence}")),
            "{text}"
        );
        assert!(text.contains("[firewall verdict] BREACHED ✗"), "{text}");
        // The log says so to whoever looks at it later, and its beliefs are nobody's.
        let workspace = keep.join("workspace");
        let root = workspace.to_str().expect("UTF-8");
        let look = |args: &[&str]| {
            let mut command = world.command(&[&["--root", root], args].concat());
            command.env("LODESTAR_CONFIG_DIR", keep.join("config"));
            Run::of(command.output().expect("started")).out
        };
        let line = format!("defences_off: [\"{defence}\"]");
        let shown = look(&["log", "show", "latest", "--type", "session."]);
        assert!(shown.contains(&line), "{shown}");
        let replayed = look(&["replay", "latest"]);
        let line = format!("! opened with defences taken out: {defence}");
        assert!(replayed.contains(&line), "{replayed}");
        assert!(!workspace.join(".lodestar/state.db").exists(), "{defence}");
    }
}

#[test]
fn no_ordinary_way_takes_a_defence_out() {
    let world = World::bare();
    let keep = world.path("kept");
    world.run(&["demo", "--keep", "../kept"]).expect(0);
    let config = keep.join("workspace/lodestar.toml");
    let config = config.to_str().expect("UTF-8");
    let run = world
        .run(&[
            "guard",
            "mcp-proxy",
            "--config",
            config,
            "--without",
            "gate",
        ])
        .expect(2);
    assert!(
        run.err.contains("unexpected argument '--without'"),
        "{}",
        run.err
    );
    // Not in a project that has a log, nor in one of another name.
    let refused = "defences are taken out in scratch projects that `lodestar demo`";
    let args = ["probe-proxy", "--config", config, "--without", "gate"];
    let run = world.run(&args).expect(2);
    assert!(run.err.contains(refused), "{}", run.err);
    let text = fs::read_to_string(config).expect("readable");
    let other = text.replace("project_id = \"demo\"", "project_id = \"earnest\"");
    let other = world.write("other/lodestar.toml", &other);
    let other = other.to_str().expect("UTF-8");
    let args = ["probe-proxy", "--config", other, "--without", "gate"];
    let run = world.run(&args).expect(2);
    assert!(run.err.contains(refused), "{}", run.err);
    let run = world.run(&["demo", "--without", "hope"]).expect(2);
    assert!(run.err.contains("`hope`"), "{}", run.err);
    let help = world.run(&["--help"]).expect(0).out + &world.run(&["demo", "--help"]).expect(0).out;
    for hidden in ["demo-server", "probe-proxy", "probe-server", "--without"] {
        assert!(!help.contains(hidden), "{hidden}");
    }
}

#[test]
fn what_is_kept_can_be_looked_at_with_the_commands_it_names() {
    let world = World::bare();
    let keep = world.path("it's kept");
    // From where it was said, the folder is a relative one.
    let run = world.run(&["demo", "--keep", "../it's kept"]).expect(0);
    let (_, further) = run.out.split_once("To look further:\n").expect("commands");
    let commands: Vec<&str> = further.lines().map(str::trim).collect();
    assert_eq!(commands.len(), 9);
    let codes: Vec<Option<i32>> = commands[1..]
        .iter()
        .map(|line| {
            let script = format!("{}\n{line}", commands[0]);
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &script]).current_dir("/");
            shell.output().expect("started").status.code()
        })
        .collect();
    assert_eq!(codes, [0, 0, 0, 0, 0, 0, 1, 1].map(Some));
    // By its name alone where that leads to the same program.
    let mut command = world.command(&["demo", "--keep", "named"]);
    let binary = Path::new(env!("CARGO_BIN_EXE_lodestar"));
    command.env("PATH", binary.parent().expect("a folder"));
    let run = Run::of(command.output().expect("started")).expect(0);
    assert!(run.out.contains("\n  lodestar --root "), "{}", run.out);
    // A folder with something in it is left alone.
    world
        .run(&["demo", "--keep", keep.to_str().expect("UTF-8")])
        .expect(2);
}

#[test]
fn its_servers_answer_what_is_asked_and_stay_in_their_folder() {
    let world = World::bare();
    world.write("work/a.txt", "a");
    let args = ["demo-server", "files", "--root", "."];
    let mut child = world
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let call = |id: u64, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let mut input = child.stdin.take().expect("piped");
    let lines = [
        "no JSON at all".to_owned(),
        call(1, "read_file", json!({"path": "a.txt"})).to_string(),
        call(2, "read_file", json!({"path": "../config/keys/log.key"})).to_string(),
        call(3, "read_file", json!({"path": 7})).to_string(),
        call(4, "burn", json!({})).to_string(),
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}).to_string(),
    ];
    input
        .write_all(lines.join("\n").as_bytes())
        .expect("written");
    drop(input);
    let run = Run::of(child.wait_with_output().expect("ended")).expect(0);
    let answers = run.ndjson();
    let text = |at: usize| answers[at]["result"]["content"][0]["text"].as_str();
    assert_eq!(text(0), Some("a"));
    assert_eq!(answers[1]["result"]["isError"], true);
    assert!(text(1).expect("text").contains("leads out of the folder"));
    assert_eq!(text(2), Some("`path` is missing or no text"));
    assert_eq!(answers[3]["error"]["message"], "there is no tool `burn`");
    assert_eq!(
        answers[4]["result"]["tools"].as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(answers.len(), 5);
}
