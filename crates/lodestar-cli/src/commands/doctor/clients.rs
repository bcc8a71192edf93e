//! The clients: whether they go through the proxy, and what they can do beside it.
//!
//! A proxy sees what goes over MCP. A client's own tools do not, unless the client is told not to have them.

use std::path::{Path, PathBuf};

use lodestar_guard::config::Config;
use lodestar_guard::hook;
use serde_json::Value;

use super::Finding;
use super::hooks::Hooked;
use crate::commands::init::client::{Client, ClientFile, json_of_toml, places};
use crate::commands::init::jsonc;
use crate::inert;

/// The tools of Claude Code that read, change, run or fetch without MCP.
pub(crate) const CLAUDE_CODE_TOOLS: [&str; 11] = [
    "Bash",
    "Edit",
    "Write",
    "NotebookEdit",
    "Read",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    // Agents of its own: the one tool under its older and its newer name.
    "Task",
    "Agent",
];
/// What Cursor's command line has to deny.
const CURSOR_RULES: [&str; 3] = ["Shell(*)", "Write(**)", "Read(**)"];

pub(super) fn look(config: &Config, file: &Path, hooked: &Hooked, findings: &mut Vec<Finding>) {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let (mut files, of_user) = places(config.root(), home.as_deref());
    files.extend(of_user);
    let mut wrapped = false;
    for path in files.iter().filter(|path| path.is_file()) {
        let Ok(client) = ClientFile::read(path, home.as_deref()) else {
            continue;
        };
        let mut starting = client.servers.values();
        let Some(entry) = starting.find(|entry| ClientFile::starts(entry, file)) else {
            continue;
        };
        wrapped = true;
        let command = entry["command"].as_str().unwrap_or_default();
        if !is_this_program(command) {
            findings.push(other_program(&client, command));
        }
        beside(&client, findings);
        let by_hooks = match client.client {
            Client::ClaudeCode => hooked.covers(hook::Client::ClaudeCode),
            Client::Codex => hooked.covers(hook::Client::Codex),
            Client::Cursor => hooked.covers(hook::Client::Cursor),
            Client::VsCode | Client::ClaudeDesktop | Client::Other => false,
        };
        if by_hooks {
            continue;
        }
        built_in(
            client.client,
            config.root(),
            home.as_deref(),
            &client,
            findings,
        );
    }
    if !wrapped {
        findings.push(
            Finding::uncovered("client", "no client here was seen to start the proxy with this configuration")
                .remedy("`lodestar init --write` puts it into one; a client that starts its servers itself is governed by nobody"),
        );
    }
}

/// Whether a command leads to this very program: what any other does with the same words, nobody knows.
pub(crate) fn is_this_program(command: &str) -> bool {
    let found = match command.contains('/') {
        true => Some(PathBuf::from(command)),
        false => std::env::var_os("PATH").and_then(|path| {
            let mut folders = std::env::split_paths(&path);
            folders.find_map(|folder| Some(folder.join(command)).filter(|file| file.is_file()))
        }),
    };
    let (Some(found), Ok(own)) = (found, std::env::current_exe()) else {
        return false;
    };
    let same_place = matches!((found.canonicalize(), own.canonicalize()), (Ok(a), Ok(b)) if a == b);
    same_place || has_the_same_bytes(&found, &own)
}

fn has_the_same_bytes(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| std::fs::metadata(path).map(|found| found.len()).ok();
    let bytes = |path: &Path| std::fs::read(path).ok();
    length(one).is_some() && length(one) == length(other) && bytes(one) == bytes(other)
}

fn other_program(client: &ClientFile, command: &str) -> Finding {
    let what = format!(
        "{} starts `{}` as the proxy, which is another program than this one: nothing here says what it does",
        client.client.name(),
        inert::line(command, 200)
    );
    Finding::broken("other_program", what).remedy(format!(
        "run `doctor` of that program, or name this one in `{}`",
        inert::path(&client.path)
    ))
}

/// Servers that the client starts itself.
fn beside(client: &ClientFile, findings: &mut Vec<Finding>) {
    let others: Vec<String> = client
        .servers
        .iter()
        .filter(|(_, entry)| !ClientFile::is_proxy(entry))
        .map(|(name, _)| format!("`{}`", inert::line(name, 60)))
        .collect();
    if !others.is_empty() {
        findings.push(
            Finding::broken(
                "beside_the_proxy",
                format!(
                    "{} starts servers beside the proxy, which nothing governs: {}",
                    client.client.name(),
                    others.join(", ")
                ),
            )
            .remedy(format!(
                "take them out of `{}`; add them to `lodestar.toml` as `[[downstream_servers]]`",
                inert::path(&client.path)
            )),
        );
    }
}

fn built_in(
    client: Client,
    root: &Path,
    home: Option<&Path>,
    file: &ClientFile,
    findings: &mut Vec<Finding>,
) {
    let settings = |in_project: &[&str], of_user: &[&str]| {
        let project = in_project.iter().map(|name| root.join(name));
        let user = of_user.iter().filter_map(|name| Some(home?.join(name)));
        denied(project.chain(user))
    };
    match client {
        Client::ClaudeCode => {
            let denied = settings(
                &[".claude/settings.json", ".claude/settings.local.json"],
                &[".claude/settings.json"],
            );
            let missing: Vec<&str> = CLAUDE_CODE_TOOLS.into_iter().filter(|tool| !denied.iter().any(|one| one == tool)).collect();
            report("Claude Code", &missing, ".claude/settings.json", findings);
        }
        Client::Cursor => {
            let denied = settings(&[".cursor/cli.json"], &[".cursor/cli-config.json"]);
            let missing: Vec<&str> = CURSOR_RULES.into_iter().filter(|rule| !denied.iter().any(|one| one == rule)).collect();
            report("Cursor's command line", &missing, ".cursor/cli.json", findings);
            findings.push(Finding::uncovered(
                "built_in_tools",
                "Cursor's editor has tools of its own, which no file of the project switches off",
            ));
        }
        Client::Codex => codex(file, findings),
        Client::VsCode => findings.push(
            Finding::uncovered("built_in_tools", "VS Code's agent has tools of its own; whether they are off cannot be seen from here")
                .remedy("a custom agent `.github/agents/NAME.agent.md` with `tools: ['lodestar/*']` has none of them"),
        ),
        Client::ClaudeDesktop | Client::Other => findings.push(Finding::uncovered(
            "built_in_tools",
            "which tools of its own the client has cannot be seen from here",
        )),
    }
}

fn report(client: &str, missing: &[&str], file: &str, findings: &mut Vec<Finding>) {
    if missing.is_empty() {
        findings.push(Finding::uncovered(
            "built_in_tools",
            format!("{client} is told to deny its own tools; that it does is its own word"),
        ));
        return;
    }
    let rules: Vec<String> = missing.iter().map(|rule| format!("\"{rule}\"")).collect();
    findings.push(
        Finding::uncovered(
            "built_in_tools",
            format!(
                "{client} can act beside the proxy with its own tools: {}",
                missing.join(", ")
            ),
        )
        .remedy(format!(
            "govern them with `lodestar hook install`, or take them away in {file}: {{\"permissions\": {{\"deny\": [{}]}}}}",
            rules.join(", ")
        )),
    );
}

/// The deny rules of all these files.
fn denied(files: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let rules = files.flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let value: Value = serde_json::from_str(&jsonc::plain(&text)).unwrap_or_default();
        let rules = value["permissions"]["deny"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        rules
            .into_iter()
            .filter_map(|rule| rule.as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    });
    rules.collect()
}

fn codex(file: &ClientFile, findings: &mut Vec<Finding>) {
    let settings = json_of_toml(&file.text)
        .map(Value::Object)
        .unwrap_or_default();
    let mut missing = Vec::new();
    if settings["features"]["shell_tool"] != Value::Bool(false) {
        missing.push("[features] shell_tool = false");
    }
    if settings["sandbox_mode"] != "read-only" {
        missing.push("sandbox_mode = \"read-only\"");
    }
    if settings["web_search"] != "disabled" {
        missing.push("web_search = \"disabled\"");
    }
    if missing.is_empty() {
        findings.push(Finding::uncovered(
            "built_in_tools",
            "Codex is told to have no shell, no web search and a read-only sandbox; that it does so is its own word",
        ));
        return;
    }
    findings.push(
        Finding::uncovered(
            "built_in_tools",
            "Codex can act beside the proxy with its own shell, edits or web search",
        )
        .remedy(format!(
            "in `{}`: {}",
            inert::path(&file.path),
            missing.join("; ")
        )),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_program_or_a_copy_of_it_is_taken_for_the_proxy() {
        let own = std::env::current_exe().unwrap();
        assert!(is_this_program(own.to_str().unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("lodestar");
        std::fs::copy(&own, &copy).unwrap();
        assert!(is_this_program(copy.to_str().unwrap()));
        std::fs::write(&copy, "#!/bin/sh\nexec server\n").unwrap();
        assert!(!is_this_program(copy.to_str().unwrap()));
        assert!(!is_this_program("sh"));
        assert!(!is_this_program("no-such-program-anywhere"));
    }
}
