//! Switches with which a client's hooks are turned off, in settings that need not be those that the hooks stand in:
//! hooks that are installed and do not run are worse than none, because somebody relies on them.

use std::path::{Path, PathBuf};

use lodestar_core::canonical;
use serde_json::Value;

use super::super::Client;
use super::file::MAX_LEN;

/// What keeps a client's hooks from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Off {
    /// The file that says so.
    pub file: PathBuf,
    /// What in it.
    pub why: String,
}

/// How the names of switches lead to them, with the value that turns hooks off.
type Switch = (&'static [&'static str], bool);

const CLAUDE_CODE: &[Switch] = &[(&["disableAllHooks"], true)];

const CLAUDE_CODE_MANAGED: &[Switch] = &[
    (&["disableAllHooks"], true),
    (&["allowManagedHooksOnly"], true),
];

const GEMINI: &[Switch] = &[
    (&["hooksConfig", "enabled"], false),
    (&["hooks", "enabled"], false),
    (&["tools", "enableHooks"], false),
];

/// Lists of hooks that are turned off by name; those of Lodestar's are called so.
const GEMINI_LISTS: [&[&str]; 2] = [&["hooksConfig", "disabled"], &["hooks", "disabled"]];

const CODEX: &[Switch] = &[
    (&["features", "hooks"], false),
    (&["features", "codex_hooks"], false),
];

/// What turns a client's hooks off, for whoever works in this project with this home. Of Cursor, no such switch is
/// known; what a command line or the environment turns off shows in no file.
pub fn switched_off(client: Client, project: &Path, home: &Path) -> Vec<Off> {
    let both = |name: &str| vec![project.join(name), home.join(name)];
    let files: Vec<(Vec<PathBuf>, &[Switch])> = match client {
        Client::ClaudeCode => vec![
            (both(".claude/settings.json"), CLAUDE_CODE),
            (both(".claude/settings.local.json"), CLAUDE_CODE),
            (
                vec!["/etc/claude-code/managed-settings.json".into()],
                CLAUDE_CODE_MANAGED,
            ),
        ],
        Client::Codex => vec![(both(".codex/config.toml"), CODEX)],
        Client::Gemini => vec![
            (both(".gemini/settings.json"), GEMINI),
            (vec!["/etc/gemini-cli/settings.json".into()], GEMINI),
        ],
        Client::Cursor => Vec::new(),
    };
    let mut found = Vec::new();
    for (files, switches) in files {
        for file in files {
            let why = look(client, &file, switches);
            let more = why.into_iter().map(|why| Off {
                file: file.clone(),
                why,
            });
            found.extend(more);
        }
    }
    found.dedup();
    found
}

fn look(client: Client, file: &Path, switches: &[Switch]) -> Vec<String> {
    let settings = match read(file) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Vec::new(),
        Err(problem) => {
            return vec![format!(
                "it cannot be read, so that nobody knows whether it turns hooks off: {problem}"
            )];
        }
    };
    let at = |way: &[&str]| {
        let mut value = Some(&settings);
        for name in way {
            value = value.and_then(|value| value.get(name));
        }
        value
    };
    let mut why = Vec::new();
    for (way, off) in switches {
        if at(way).and_then(Value::as_bool) == Some(*off) {
            why.push(format!("`{}` is {off}", way.join(".")));
        }
    }
    if client == Client::Gemini {
        let ours = |names: &Value| {
            let mut names = names.as_array().into_iter().flatten();
            names.any(|name| name == super::NAME)
        };
        let lists = GEMINI_LISTS.iter().filter(|way| at(way).is_some_and(ours));
        why.extend(lists.map(|way| format!("`{}` names `{}`", way.join("."), super::NAME)));
    }
    why
}

/// Settings, in JSON or TOML by their name; none where the file is not there or empty.
fn read(file: &Path) -> Result<Option<Value>, String> {
    let text = match std::fs::metadata(file) {
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.is_file() && found.len() <= MAX_LEN => std::fs::read_to_string(file),
        Ok(_) => return Err("it is no file that settings could be in".to_owned()),
        Err(problem) => Err(problem),
    };
    let text = text.map_err(|problem| problem.to_string())?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let is_toml = file.extension().is_some_and(|ending| ending == "toml");
    let read = match is_toml {
        true => toml::from_str::<Value>(&text).map_err(|problem| problem.message().to_owned()),
        false => canonical::parse(text.as_bytes()).map_err(|problem| problem.to_string()),
    };
    read.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(client: Client, file: &str, text: &str) -> Vec<String> {
        let scratch = tempfile::tempdir().unwrap();
        let (project, home) = (scratch.path().join("project"), scratch.path().join("home"));
        let file = scratch.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        let found = switched_off(client, &project, &home);
        assert!(found.iter().all(|one| one.file == file), "{found:?}");
        found.into_iter().map(|one| one.why).collect()
    }

    #[test]
    fn a_switch_is_found_wherever_a_client_reads_it() {
        let all = "{\"hooks\": {}, \"disableAllHooks\": true}";
        for file in [
            "project/.claude/settings.json",
            "project/.claude/settings.local.json",
            "home/.claude/settings.json",
        ] {
            let why = off(Client::ClaudeCode, file, all);
            assert_eq!(why, ["`disableAllHooks` is true"], "{file}");
        }
        for (client, file, text) in [
            (
                Client::Codex,
                "home/.codex/config.toml",
                "[features]\nhooks = false\n",
            ),
            (
                Client::Gemini,
                "project/.gemini/settings.json",
                "{\"hooksConfig\": {\"enabled\": false}}",
            ),
            (
                Client::Gemini,
                "home/.gemini/settings.json",
                "{\"hooks\": {\"disabled\": [\"lodestar\"]}}",
            ),
            (
                Client::ClaudeCode,
                "project/.claude/settings.local.json",
                "{no",
            ),
        ] {
            assert_eq!(off(client, file, text).len(), 1, "{file}: {text}");
        }
    }

    #[test]
    fn what_turns_nothing_off_is_no_switch() {
        for (client, file, text) in [
            (
                Client::ClaudeCode,
                "project/.claude/settings.json",
                "{\"disableAllHooks\": false}",
            ),
            (
                Client::Codex,
                "home/.codex/config.toml",
                "[features]\nhooks = true\n",
            ),
            (
                Client::Gemini,
                "project/.gemini/settings.json",
                "{\"hooks\": {\"disabled\": [\"other\"]}}",
            ),
            (Client::Cursor, "project/.cursor/hooks.json", "{no"),
            (Client::Gemini, "home/.gemini/settings.json", "  "),
        ] {
            assert_eq!(off(client, file, text), [""; 0], "{file}: {text}");
        }
    }
}
