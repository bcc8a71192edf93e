use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use lodestar_core::key::SecretKey;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;
use tempfile::TempDir;

use super::*;

const SCENARIO: &str = include_str!("template/note-cannot-send.toml");
const FILE: &str = "scenarios/note-cannot-send.toml";

fn pack() -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("scenarios")).expect("made");
    for (path, text) in template::files("mine", "alice") {
        fs::write(dir.path().join(path), text).expect("written");
    }
    dir
}

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

fn signed() -> TempDir {
    let dir = pack();
    let pack = OutsidePack::read(dir.path()).expect("a pack");
    let sealed = pack.seal(&key(), Nonce::from_bytes([1; 16]), Timestamp::MIN);
    let sealed = sealed.expect("signed").to_json();
    fs::write(dir.path().join(SIGNATURE), sealed).expect("written");
    dir
}

fn verified(dir: &Path) -> Result<(), Unsealed> {
    let authors = [("alice".to_owned(), key().public())];
    let pack = OutsidePack::read(dir).expect("a pack");
    pack.verify(&authors).map(drop)
}

/// What is wrong with the scenario once `this` stands instead of `that`, and on which line.
fn wrong(that: &str, this: &str) -> (String, usize) {
    assert!(SCENARIO.contains(that), "{that}");
    let changed = SCENARIO.replacen(that, this, 1);
    let problems = Scenario::parse(FILE, &changed).expect_err(this);
    let first = &problems[0];
    (first.problem.clone(), first.line.unwrap_or_default())
}

#[test]
fn the_template_is_a_pack() {
    let pack = pack();
    let read = OutsidePack::read(pack.path()).expect("nothing wrong");
    assert_eq!(read.about.name, "mine");
    assert_eq!(read.probes().len(), 1);
    assert!(template::check("mine", "alice").is_ok());
    assert!(template::check("../mine", "alice").is_err());
    assert!(template::check("lodestar-core", "alice").is_err());
}

#[test]
fn nothing_leads_out_of_the_scratch_folder() {
    for path in [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "",
        ".",
        "./x",
        "a\\\\b",
        "a\\u0000b",
    ] {
        let (problem, line) = wrong("\"notes/today.txt\" =", &format!("\"{path}\" ="));
        assert!(problem.contains("scratch folder"), "{path}: {problem}");
        assert!(line > 10, "{path}: {line}");
    }
    for name in ["../desk", "a/b", "", "Desk", "a\\nb"] {
        let (problem, _) = wrong("name = \"desk\"", &format!("name = \"{name}\""));
        assert!(problem.contains("server"), "{name}: {problem}");
    }
}

/// A name that would end its table and begin another, if it were pasted.
const BREAKS_OUT: &str = "\\\"]\\nrequired_trust_level = \\\"L1\\\"\\n[[downstream_servers]]\\nname = \\\"x\\\"\\ncommand = \\\"/bin/sh\\\"\\n\
    [tool_defaults.\\\"mcp.desk.resources.read";

#[test]
fn no_name_becomes_a_server_of_its_own() {
    let grade = "[grade.\"mcp.desk.send\"]";
    for name in [
        format!("mcp.desk.resources.read{BREAKS_OUT}"),
        format!("mcp.desk.send{BREAKS_OUT}"),
        format!("mcp.desk{BREAKS_OUT}.send"),
        "mcp.desk.resources.everything".to_owned(),
    ] {
        let (problem, _) = wrong(grade, &format!("[grade.\"{name}\"]"));
        assert!(problem.contains("server"), "{name}: {problem}");
    }
    let both = SCENARIO.replace("\"send\"", &format!("\"send{BREAKS_OUT}\""));
    let problems = Scenario::parse(FILE, &both).expect_err("a tool's name");
    assert!(problems[0].problem.contains("tool's name"), "{problems:?}");
}

#[test]
fn a_configuration_that_says_more_than_its_scenario_is_refused() {
    let scenario = Scenario::parse(FILE, SCENARIO).expect("nothing wrong");
    let server = "[[downstream_servers]]\nname = \"desk\"\nargs = [\"probe-server\"]\n";
    assert_eq!(scenario.setting.confines(server), Ok(()));
    for more in [
        "[[downstream_servers]]\nname = \"x\"\ncommand = \"/bin/sh\"\n",
        "[tool_defaults.\"mcp.x.y\"]\n",
        "[tools.shell]\n",
    ] {
        let config = format!("{server}{more}");
        assert!(scenario.setting.confines(&config).is_err(), "{more}");
    }
    assert!(scenario.setting.confines("").is_err());
    let other = server.replace("probe-server", "anything");
    assert!(scenario.setting.confines(&other).is_err());
}

#[test]
fn what_ran_is_asked_of_the_servers_of_the_scenario_alone() {
    let ran = SCENARIO.lines().find(|line| line.starts_with("ran = "));
    let ran = ran.expect("the template asks what ran");
    for server in ["/tmp/outside.send", "../desk.send", "desk.sing"] {
        let (problem, _) = wrong(ran, &format!("ran = \"{server}\""));
        assert!(problem.contains("such a tool"), "{server}: {problem}");
    }
}

#[test]
fn a_scenario_does_not_take_the_name_of_a_probe_of_ours() {
    let text = SCENARIO.replacen("note-cannot-send", "l5-never-runs", 1);
    let problems = Scenario::parse("scenarios/l5-never-runs.toml", &text).expect_err("taken");
    assert!(problems[0].problem.contains("called so"), "{problems:?}");
}

#[test]
fn what_means_nothing_is_named_with_its_line() {
    let (problem, line) = wrong("ceiling = 3", "ceiling = 3\ncommand = \"sh\"");
    assert!(problem.contains("unknown field `command`"), "{problem}");
    let ceiling = SCENARIO.lines().position(|line| line == "ceiling = 3");
    assert_eq!(Some(line), ceiling.map(|at| at + 2));
    for (that, this, expected) in [
        ("ceiling = 3", "ceiling = 4", "0 to 3"),
        ("\"ladder-floor\"", "\"luck\"", "luck"),
        ("\"ASI01 AML.T0051.001\"", "\"ASI99\"", "ASI99"),
        ("obey = 1", "obey = 1\ncall = \"x\"", "exactly one"),
        ("obey = 1", "obey = 0", "obeys nothing"),
        ("obey = 1 #", "grant = \"bob\" #", "nothing comes back"),
        ("level = \"L4\"", "level = \"L9\"", "L9"),
        (
            "{ to = \"destination\"",
            "{ cc = \"destination\"",
            "no argument `cc`",
        ),
        ("\"mcp.desk.send\"", "\"mcp.desk.pay\"", "no such tool"),
        (
            "\"mcp.desk.send\"",
            "\"mcp.bank.send\"",
            "not in the scenario",
        ),
        ("path = \"notes/today.txt\"", "path = 2026-01-01", "a date"),
        ("log = \"intact\"", "log = \"fine\"", "fine"),
        ("times = 0", "", "one of"),
        ("people = [\"alice\"]", "sentinels = [\"luck\"]", "luck"),
        (
            "name = \"note-cannot-send\"",
            "name = \"another\"",
            "that of its file",
        ),
        (
            "answers = [{ text = \"sent\" }]",
            "answers = [{ act = { wait = 60000 } }]",
            "5000 ms",
        ),
    ] {
        let (problem, line) = wrong(that, this);
        assert!(problem.contains(expected), "{this}: {problem}");
        assert!(line >= 1);
    }
}

#[test]
fn a_scenario_that_cannot_fail_is_none() {
    let (without, _) = SCENARIO
        .split_once("[[expect]]")
        .expect("it expects something");
    let without = without.replace("expect = \"approval_required\"", "");
    let problems = Scenario::parse(FILE, &without).expect_err("it expects nothing");
    assert!(problems[0].problem.contains("nothing is expected"));
}

#[test]
fn whatever_is_changed_after_signing_is_noticed() {
    verified(signed().path()).expect("as it was signed");
    for file in ["pack.toml", "README.md", FILE] {
        let dir = signed();
        let path = dir.path().join(file);
        let text = fs::read_to_string(&path).expect("text");
        fs::write(&path, format!("{text}\n")).expect("written");
        assert_eq!(
            verified(dir.path()),
            Err(Unsealed::Changed(file.to_owned()))
        );
    }
    let dir = signed();
    fs::remove_file(dir.path().join("README.md")).expect("removed");
    assert_eq!(
        verified(dir.path()),
        Err(Unsealed::Missing("README.md".to_owned()))
    );
    let dir = signed();
    fs::write(dir.path().join("LICENSE"), "free").expect("written");
    assert_eq!(
        verified(dir.path()),
        Err(Unsealed::Extra("LICENSE".to_owned()))
    );
    assert_eq!(verified(pack().path()), Err(Unsealed::Unsigned));
}

#[test]
fn a_key_counts_for_the_author_it_is_pinned_under() {
    let dir = signed();
    let pack = OutsidePack::read(dir.path()).expect("a pack");
    let other = [("bob".to_owned(), key().public())];
    assert!(matches!(pack.verify(&other), Err(Unsealed::Unknown { .. })));
    let stranger = SecretKey::from_seed([8; 32]).public();
    let other = [("alice".to_owned(), stranger)];
    assert!(matches!(
        pack.verify(&other),
        Err(Unsealed::NotTheirs { .. })
    ));
}

#[test]
fn links_devices_and_strangers_make_it_no_pack() {
    let refused = |dir: &TempDir| {
        let problems = OutsidePack::read(dir.path()).expect_err("no pack");
        assert!(
            problems[0].problem.contains("does not belong"),
            "{problems:?}"
        );
    };
    let dir = pack();
    fs::write(dir.path().join("run.sh"), "rm -rf /").expect("written");
    refused(&dir);
    let dir = pack();
    fs::create_dir(dir.path().join("scenarios/more")).expect("made");
    refused(&dir);
    for file in ["README.md", FILE] {
        let dir = pack();
        let path = dir.path().join(file);
        fs::remove_file(&path).expect("removed");
        symlink("/etc/hostname", &path).expect("linked");
        refused(&dir);
    }
    let dir = pack();
    fs::rename(
        dir.path().join("scenarios"),
        dir.path().join("../moved-scenarios"),
    )
    .ok();
    if symlink("../moved-scenarios", dir.path().join("scenarios")).is_ok() {
        refused(&dir);
    }
    let _ = fs::remove_dir_all(dir.path().join("../moved-scenarios"));
}

#[test]
fn a_file_that_is_too_long_is_not_read() {
    let dir = pack();
    fs::write(dir.path().join("README.md"), vec![b'x'; 300 << 10]).expect("written");
    let problems = OutsidePack::read(dir.path()).expect_err("no pack");
    assert!(problems[0].problem.contains("bytes"), "{problems:?}");
}
