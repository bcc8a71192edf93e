//! `lodestar doctor`: what it proves, and what it does not claim.

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
    for check in [
        "approvers",
        "unreviewed",
        "ungraded",
        "built_in_tools",
        "containment",
    ] {
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
    assert!(
        told.out.contains("5 proven, 0 not enforced"),
        "{}",
        told.out
    );
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
