//! `lodestar doctor`: what it proves, and what it does not claim.

use lodestar_kernel::contain::Host;
use serde_json::Value;

use crate::wrapped::{client, run, wrapped};

fn verdict<'a>(report: &'a Value, check: &str) -> Vec<&'a str> {
    let findings = report["findings"].as_array().expect("findings").iter();
    let found = findings.filter(|one| one["check"] == check);
    found
        .map(|one| one["verdict"].as_str().expect("a word"))
        .collect()
}

#[test]
fn canaries_prove_what_is_enforced_and_leave_nothing_behind() {
    let world = wrapped();
    let report = run(&world, &["doctor", "--json"]).expect(0).json();
    for check in [
        "unknown_tool",
        "ungraded_is_held",
        "forged_approval",
        "self_protection",
        "log",
    ] {
        assert_eq!(verdict(&report, check), ["proven"], "{check}: {report:#}");
    }
    assert_eq!(
        verdict(&report, "forged_approval_in_log"),
        [""; 0],
        "{report:#}"
    );
    for check in ["approvers", "unreviewed", "ungraded", "built_in_tools"] {
        assert_eq!(
            verdict(&report, check),
            ["uncovered"],
            "{check}: {report:#}"
        );
    }
    let left: Vec<String> = std::fs::read_dir(world.root())
        .expect("readable")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.starts_with(".lodestar-"))
        .collect();
    assert_eq!(left, [""; 0]);
    let lock = std::fs::read_to_string(world.path("work/.lodestar/tools.lock")).expect("there");
    assert!(!lock.contains("lodestar-doctor"));
    let waiting = world.run(&["approve", "list", "--json"]).expect(0).json();
    assert_eq!(
        waiting["requests"].as_array().map(Vec::len),
        Some(0),
        "{waiting}"
    );
    // Its session stands in a log of its own, which is gone with it.
    world.run(&["log", "verify"]).expect(3);
    let told = run(&world, &["doctor"]).expect(0);
    assert!(
        !told.out.to_lowercase().contains("protected"),
        "{}",
        told.out
    );
    assert!(told.out.contains(" 0 not enforced"), "{}", told.out);
}

/// Findings of a check.
fn found<'a>(report: &'a Value, check: &str) -> Vec<&'a Value> {
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.filter(|one| one["check"] == check).collect()
}

#[test]
fn something_harmless_is_tried_in_the_sandbox_of_each_server_and_program() {
    let world = wrapped();
    let config = std::fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    let shell = "\n[tools.\"shell.run\"]\nroot = \".\"\n[tools.\"shell.run\".programs.list]\npath = \"/bin/ls\"\n";
    world.write("work/lodestar.toml", &format!("{config}{shell}"));
    let report = run(&world, &["doctor", "--json"]).expect(0).json();
    let host = Host::here();
    let layers = found(&report, "containment_layers");
    assert_eq!(layers.len(), 1, "{report:#}");
    if host.landlock() > 0 {
        let version = format!("Landlock {}", host.landlock());
        assert!(
            layers[0]["what"]
                .as_str()
                .is_some_and(|what| what.contains(&version)),
            "{report:#}"
        );
    }
    let tried = found(&report, "containment");
    let subjects: Vec<&str> = tried
        .iter()
        .filter_map(|one| one["what"].as_str())
        .collect();
    assert_eq!(subjects.len(), 2, "{report:#}");
    assert!(
        subjects[0].starts_with("server `files` is "),
        "{subjects:?}"
    );
    assert!(
        subjects[1].starts_with("`shell.run` of `list` is "),
        "{subjects:?}"
    );
    for one in tried {
        let containment = &one["containment"];
        let verdict = match containment["state"].as_str() {
            Some("proved") => "proven",
            _ => "uncovered",
        };
        assert_eq!(one["verdict"], verdict, "{one:#}");
        if host.namespaces() && host.landlock() >= 6 {
            assert_eq!(containment["state"], "proved", "{one:#}");
            for wanted in [
                "read_keys",
                "open_lodestar",
                "write_outside",
                "connect_tcp",
                "trace_parent",
            ] {
                let mut tried = containment["tried"].as_array().expect("a list").iter();
                let refused = tried.any(|one| one["attempt"] == wanted && one["refused"] == true);
                assert!(refused, "{wanted}: {one:#}");
            }
        }
    }
    let told = run(&world, &["doctor"]).expect(0);
    assert!(told.out.contains("server `files` is "), "{}", told.out);
    assert!(!told.out.contains("without a sandbox"), "{}", told.out);
}

#[test]
fn a_server_that_nothing_contains_is_said_and_keys_in_what_it_is_granted_fail() {
    let world = wrapped();
    let config = std::fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    let with = |line: &str| {
        let named = "name = \"files\"\n";
        assert!(config.contains(named));
        let changed = config.replacen(named, &format!("{named}{line}\n"), 1);
        world.write("work/lodestar.toml", &changed);
    };
    with("containment = \"off\"");
    let report = run(&world, &["doctor", "--json"]).expect(0).json();
    assert_eq!(verdict(&report, "containment"), ["uncovered"]);
    let what = found(&report, "containment")[0]["what"].as_str();
    assert!(
        what.is_some_and(|what| what.contains("not contained")),
        "{report:#}"
    );
    // The keys themselves are nobody's to grant.
    with(&format!("read = [{:?}]", world.path("config")));
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    assert_eq!(verdict(&report, "containment"), ["broken"], "{report:#}");
    // Around them only the cover is left.
    let around = world.path("config");
    let around = around.parent().expect("a folder above");
    with(&format!("read = [{around:?}]"));
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    assert_eq!(verdict(&report, "keys_in_reach"), ["broken"], "{report:#}");
    if Host::here().namespaces() {
        assert_ne!(verdict(&report, "containment"), ["broken"], "{report:#}");
    }
}

#[test]
fn what_is_plainly_not_enforced_fails() {
    let world = wrapped();
    let key = world.path("config/keys/log.key");
    world.chmod(&key, 0o644);
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    assert!(verdict(&report, "keys").contains(&"broken"), "{report:#}");
    world.chmod(&key, 0o600);
    let mut client = client(&world);
    client["mcpServers"]["beside"] = serde_json::json!({"command": "x"});
    world.write("work/.mcp.json", &client.to_string());
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    assert_eq!(verdict(&report, "beside_the_proxy"), ["broken"]);
}

#[test]
fn deny_rules_are_read_and_a_path_that_does_not_start_is_said_to_be_broken() {
    let world = wrapped();
    world.write(
        "work/.claude/settings.json",
        "{\"permissions\": {\"deny\": [\"Bash\", \"Edit\", \"Write\", \"NotebookEdit\", \"Read\", \"Glob\", \"Grep\", \"WebFetch\", \"WebSearch\", \"Task\", \"Agent\"]}}",
    );
    let told = run(&world, &["doctor"]).expect(0);
    assert!(
        told.out.contains("that it does is its own word"),
        "{}",
        told.out
    );
    let config = std::fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    world.write(
        "work/lodestar.toml",
        &format!(
            "{config}\n[tool_defaults.\"mcp.files.nothing\"]\nrequired_trust_level = \"L1\"\n"
        ),
    );
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    assert_eq!(verdict(&report, "proxy"), ["broken"], "{report:#}");
    std::fs::remove_file(world.path("work/lodestar.toml")).expect("removed");
    run(&world, &["doctor"]).expect(3);
}

#[test]
fn hooks_are_told_and_tried_and_stand_for_a_clients_own_tools() {
    let world = wrapped();
    let report = run(&world, &["doctor", "--json"]).expect(0).json();
    assert_eq!(verdict(&report, "hooks"), ["uncovered"], "{report:#}");
    assert_eq!(verdict(&report, "hook_daemon"), [""; 0], "{report:#}");
    run(&world, &["hook", "install", "claude-code"]).expect(0);
    run(&world, &["hook", "install", "codex"]).expect(0);
    let report = run(&world, &["doctor", "--json"]).expect(0).json();
    assert_eq!(verdict(&report, "built_in_tools"), [""; 0], "{report:#}");
    assert_eq!(verdict(&report, "hook_daemon"), ["proven"], "{report:#}");
    let codex = found(&report, "hooks").into_iter().find(|one| {
        one["what"]
            .as_str()
            .is_some_and(|what| what.starts_with("Codex"))
    });
    let remedy = codex.expect("told")["remedy"].as_str().expect("words");
    assert!(remedy.contains("/hooks"), "{remedy}");
    // What was started to try it does not stay.
    let stopped = run(&world, &["hook", "stop"]).expect(0);
    assert!(stopped.out.contains("no daemon"), "{}", stopped.out);
    let file = world.path("work/.claude/settings.json");
    let text = std::fs::read_to_string(&file).expect("there");
    std::fs::write(&file, text.replace("\"timeout\": 60", "\"timeout\": 1")).expect("written");
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    assert!(verdict(&report, "hooks").contains(&"broken"), "{report:#}");
}

#[test]
fn a_server_whose_program_is_not_there_is_not_said_to_be_contained() {
    let world = wrapped();
    let config = std::fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    let gone =
        "\n[[downstream_servers]]\nname = \"gone\"\ncommand = \"no-such-program-anywhere\"\n";
    world.write("work/lodestar.toml", &format!("{config}{gone}"));
    let report = run(&world, &["doctor", "--json"]).expect(1).json();
    let contained = found(&report, "containment");
    let gone = contained.iter().find(|one| {
        one["what"]
            .as_str()
            .is_some_and(|what| what.contains("`gone`"))
    });
    let gone = gone.expect("told");
    assert_eq!(gone["verdict"], "broken", "{gone}");
    assert!(
        gone["what"]
            .as_str()
            .expect("words")
            .contains("no-such-program-anywhere"),
        "{gone}"
    );
}
