//! Hooks put into settings and taken out again: everything else stays.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::file::{Earnest, MAX_LEN, Settings};
use super::*;

fn program() -> Program {
    Program::at(Path::new("/opt/lodestar/bin/lodestar")).expect("a program")
}

/// Settings as people have them: other hooks, other keys, other spaces.
const OTHERS: &str = r#"{
    "zeta": {"b": 1, "a": [1,2]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh"}]}
        ],
        "Stop": []
    },
    "alpha": "last \u00e4"
}"#;

#[test]
fn hooks_are_put_beside_those_of_others_and_nothing_else_changes() {
    let after = with_hooks(Client::ClaudeCode, Some(OTHERS), &program()).expect("installed");
    let lost: Vec<_> = OTHERS
        .lines()
        .filter(|line| !after.contains(line.trim_end_matches(',')))
        .collect();
    assert!(lost.is_empty(), "{lost:?}\n{after}");
    let value: Value = serde_json::from_str(&after).expect("JSON");
    let list = value["hooks"]["PreToolUse"].as_array().expect("a list");
    assert_eq!(list[0]["hooks"][0]["command"], "check.sh");
    assert_eq!(
        list[1],
        json!({"hooks": [{
            "type": "command",
            "command": "/opt/lodestar/bin/lodestar hook claude-code --event PreToolUse",
            "timeout": 60,
            "onFailure": "block",
        }]})
    );
    let order = ["\"zeta\"", "\"hooks\"", "\"alpha\""].map(|key| after.find(key));
    assert!(order.is_sorted(), "{after}");
    assert!(after.contains("last \\u00e4"), "{after}");
}

#[test]
fn installing_twice_is_installing_once() {
    for client in Client::ALL {
        for text in [None, Some("{}"), Some("  \n"), Some(OTHERS)] {
            let once = with_hooks(client, text, &program()).expect("installed");
            let twice = with_hooks(client, Some(&once), &program()).expect("installed");
            assert_eq!(once, twice);
            assert_eq!(state(client, &once, &program()), Ok(State::Installed));
        }
    }
}

#[test]
fn every_event_that_is_hooked_is_there_for_its_client() {
    for client in Client::ALL {
        let text = with_hooks(client, None, &program()).expect("installed");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        for (event, _) in hooked(client) {
            let list = &value["hooks"][event];
            let commands: Vec<_> = handlers(&list[0]).collect();
            let wanted = program().command(client, event);
            assert_eq!(commands, [wanted.as_str()], "{client:?} {event}");
        }
    }
    let cursor = with_hooks(Client::Cursor, None, &program()).expect("installed");
    let value: Value = serde_json::from_str(&cursor).expect("JSON");
    assert_eq!(value["version"], 1);
    assert_eq!(value["hooks"]["preToolUse"][0]["failClosed"], true);
}

#[test]
fn taking_out_leaves_what_others_put_in_whatever_the_text_looked_like() {
    let texts = [
        OTHERS,
        "{}",
        "{\"a\":1}",
        "{\n\t\"a\": 1\n}\n",
        "{ \"hooks\": { \"PreToolUse\": [ {\"hooks\":[]} ] } }",
        "{\"hooks\":{\"x\":[{\"command\":\"y\"}],\"enabled\":true},\"z\":[]}",
    ];
    for client in Client::ALL {
        for text in texts {
            let with = with_hooks(client, Some(text), &program()).expect("installed");
            let without = without_hooks(client, &with).expect("taken out");
            assert!(same(&without, text), "{text}\n{with}\n{without}");
            assert_eq!(state(client, &without, &program()), Ok(State::Absent));
        }
    }
}

#[test]
fn a_hook_that_was_put_into_an_entry_of_others_is_taken_out_alone() {
    let text = r#"{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": "a"},
        {"type": "command", "command": "'/a b/lodestar' hook claude-code --event PreToolUse"},
        {"type": "command", "command": "b"}]}]}}"#;
    assert_eq!(
        state(Client::ClaudeCode, text, &program()),
        Ok(State::Changed)
    );
    let without = without_hooks(Client::ClaudeCode, text).expect("taken out");
    let value: Value = serde_json::from_str(&without).expect("JSON");
    assert_eq!(
        value["hooks"]["PreToolUse"][0]["hooks"],
        json!([{"type": "command", "command": "a"}, {"type": "command", "command": "b"}])
    );
}

#[test]
fn hooks_of_a_program_that_has_moved_are_replaced() {
    let old = Program::at(Path::new("/old place/lodestar")).expect("a program");
    for client in Client::ALL {
        let text = with_hooks(client, Some(OTHERS), &old).expect("installed");
        assert_eq!(state(client, &text, &program()), Ok(State::Changed));
        let new = with_hooks(client, Some(&text), &program()).expect("installed");
        assert!(!new.contains("/old place/"), "{new}");
        assert_eq!(state(client, &new, &program()), Ok(State::Installed));
    }
}

#[test]
fn hooks_that_were_weakened_are_noticed() {
    let text = with_hooks(Client::ClaudeCode, None, &program()).expect("installed");
    for (from, to) in [
        ("\"onFailure\": \"block\"", "\"onFailure\": \"continue\""),
        ("--event PreToolUse", "--event PostToolUse"),
        ("\"timeout\": 60", "\"timeout\": 1"),
    ] {
        let weak = text.replacen(from, to, 1);
        assert_ne!(weak, text, "{from}");
        assert_eq!(
            state(Client::ClaudeCode, &weak, &program()),
            Ok(State::Changed)
        );
    }
}

#[test]
fn only_commands_of_lodestar_for_this_client_are_its_own() {
    let ours = |command| is_ours(Client::Codex, command);
    assert!(ours("/usr/bin/lodestar hook codex --event PreToolUse"));
    assert!(ours("'/a b/lodestar' hook codex --event Stop"));
    for command in [
        "/usr/bin/lodestar hook gemini --event PreToolUse",
        "/usr/bin/notlodestar hook codex --event PreToolUse",
        "/usr/bin/lodestar hook codex",
        "echo lodestar hook codex --event ; rm -rf x",
        "lodestar hook codex --event A && b",
    ] {
        assert!(!ours(command), "{command}");
    }
}

#[test]
fn a_path_is_one_word_of_a_shell() {
    for (path, word) in [
        ("/usr/bin/lodestar", "/usr/bin/lodestar"),
        ("/my files/lodestar", "'/my files/lodestar'"),
        ("/a'b/lodestar", "'/a'\\''b/lodestar'"),
        ("/$(id)/lodestar", "'/$(id)/lodestar'"),
    ] {
        let program = Program::at(Path::new(path)).expect("a program");
        assert_eq!(
            program.command(Client::Gemini, "BeforeTool"),
            format!("{word} hook gemini --event BeforeTool")
        );
    }
    assert!(Program::at(Path::new("bin/lodestar")).is_err());
    assert!(Program::at(Path::new("/a\nb/lodestar")).is_err());
}

#[test]
fn what_is_no_settings_is_refused_with_its_line() {
    let dir = TempDir::new().expect("a folder");
    let settings = Settings::of(Client::ClaudeCode, dir.path());
    fs::create_dir(dir.path().join(".claude")).expect("a folder");
    let refused = |text: &str| {
        fs::write(settings.file(), text).expect("written");
        let refused = settings.install(&program(), Earnest::Done);
        assert_eq!(fs::read_to_string(settings.file()).expect("there"), text);
        refused.expect_err(text).to_string()
    };
    assert!(refused("{\n  \"a\": 1,\n  // no\n}").contains("line 3: "));
    assert!(refused("{\n\"a\": 1,\n\"a\": 2}").contains("line 3: "));
    assert!(refused("{\n\"hooks\": [1]}").contains("line 2: `hooks` is not an object"));
    assert!(refused("[]").contains("line 1: `the file` is not a JSON object"));
    let list = refused("{\"hooks\": {\n\n\"PreToolUse\": {}}}");
    assert!(
        list.contains("line 3: `PreToolUse` is not a list"),
        "{list}"
    );
    fs::write(settings.file(), [0xff, 0xfe]).expect("written");
    let refused = settings.install(&program(), Earnest::Done);
    assert!(matches!(refused, Err(SettingsError::NotText(_))));
    fs::write(settings.file(), vec![b' '; MAX_LEN as usize + 1]).expect("written");
    let refused = settings.install(&program(), Earnest::Done);
    assert!(matches!(refused, Err(SettingsError::TooLarge(_))));
    fs::remove_file(settings.file()).expect("gone");
    fs::create_dir(settings.file()).expect("a folder");
    assert!(settings.install(&program(), Earnest::Done).is_err());
}

#[test]
fn installing_and_uninstalling_gives_the_very_bytes_back() {
    for client in Client::ALL {
        for text in [OTHERS, "{}", "{ \"hooks\" : { } }\r\n", "{\n}\n\n"] {
            let dir = TempDir::new().expect("a folder");
            let settings = Settings::of(client, dir.path());
            let folder = settings.file().parent().expect("a folder");
            fs::create_dir(folder).expect("a folder");
            fs::write(settings.file(), text).expect("written");
            fs::set_permissions(settings.file(), fs::Permissions::from_mode(0o600)).expect("set");
            let change = settings
                .install(&program(), Earnest::Done)
                .expect("installed");
            let backup = change.backup.expect("a backup");
            assert_eq!(fs::read_to_string(&backup).expect("there"), text);
            let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
            assert_eq!(mode(settings.file()), 0o600);
            assert_eq!(mode(&backup), 0o600);
            settings
                .uninstall(&program(), Earnest::Done)
                .expect("taken out");
            assert_eq!(fs::read_to_string(settings.file()).expect("there"), text);
            assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
        }
    }
}

#[test]
fn a_file_that_was_not_there_is_not_there_afterwards() {
    for client in Client::ALL {
        let dir = TempDir::new().expect("a folder");
        let settings = Settings::of(client, dir.path());
        let change = settings
            .install(&program(), Earnest::Done)
            .expect("installed");
        assert_eq!(change.backup, None);
        assert_eq!(
            settings.state(&program()).expect("readable"),
            State::Installed
        );
        settings
            .uninstall(&program(), Earnest::Done)
            .expect("taken out");
        assert!(!settings.file().exists());
    }
}

#[test]
fn what_was_changed_since_stays_and_earlier_backups_too() {
    let dir = TempDir::new().expect("a folder");
    let settings = Settings::of(Client::Gemini, dir.path());
    fs::create_dir(dir.path().join(".gemini")).expect("a folder");
    fs::write(settings.file(), "{\"a\": 1}").expect("written");
    let first = settings
        .install(&program(), Earnest::Done)
        .expect("installed");
    let text = fs::read_to_string(settings.file()).expect("there");
    fs::write(settings.file(), text.replace("\"a\": 1", "\"a\": 2")).expect("written");
    settings
        .uninstall(&program(), Earnest::Done)
        .expect("taken out");
    let text = fs::read_to_string(settings.file()).expect("there");
    assert!(same(&text, "{\"a\": 2}"), "{text}");
    let second = settings
        .install(&program(), Earnest::Done)
        .expect("installed");
    assert_ne!(first.backup, second.backup);
    let first = first.backup.expect("a backup");
    assert_eq!(fs::read_to_string(first).expect("there"), "{\"a\": 1}");
}

#[test]
fn a_rehearsal_writes_nothing() {
    let dir = TempDir::new().expect("a folder");
    let settings = Settings::of(Client::Codex, dir.path());
    let change = settings
        .install(&program(), Earnest::Rehearsed)
        .expect("said");
    assert!(change.is_one());
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0);
}

#[test]
fn a_link_that_leads_out_is_not_written_through_and_one_that_stays_is() {
    let dir = TempDir::new().expect("a folder");
    let elsewhere = TempDir::new().expect("a folder");
    fs::write(elsewhere.path().join("settings.json"), "{}").expect("written");
    let settings = Settings::of(Client::ClaudeCode, dir.path());
    // The folder, then the file, and then one that leads nowhere.
    symlink(elsewhere.path(), dir.path().join(".claude")).expect("a link");
    let refused = settings.install(&program(), Earnest::Done);
    assert!(
        matches!(refused, Err(SettingsError::LeadsOut { .. })),
        "{refused:?}"
    );
    fs::remove_file(dir.path().join(".claude")).expect("gone");
    fs::create_dir(dir.path().join(".claude")).expect("a folder");
    symlink(elsewhere.path().join("settings.json"), settings.file()).expect("a link");
    let refused = settings.install(&program(), Earnest::Done);
    assert!(matches!(refused, Err(SettingsError::LeadsOut { .. })));
    let there = fs::read_to_string(elsewhere.path().join("settings.json"));
    assert_eq!(there.expect("there"), "{}");
    fs::remove_file(settings.file()).expect("gone");
    symlink(elsewhere.path().join("gone.json"), settings.file()).expect("a link");
    assert!(settings.install(&program(), Earnest::Done).is_err());
    assert!(!elsewhere.path().join("gone.json").exists());
    fs::remove_file(settings.file()).expect("gone");

    fs::write(dir.path().join("shared.json"), "{}").expect("written");
    symlink("../shared.json", settings.file()).expect("a link");
    settings
        .install(&program(), Earnest::Done)
        .expect("installed");
    assert!(
        settings
            .file()
            .symlink_metadata()
            .expect("there")
            .is_symlink()
    );
    let shared = fs::read_to_string(dir.path().join("shared.json")).expect("there");
    assert!(shared.contains("PreToolUse"), "{shared}");
}
