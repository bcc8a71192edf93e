//! Hooks: which clients are told to ask before they use their own tools, and whether somebody answers.

use std::path::{Path, PathBuf};

use lodestar_guard::config::Config;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::daemon::{Asking, Unavailable};
use lodestar_guard::hook::settings::file::Settings;
use lodestar_guard::hook::settings::{Program, State};

use super::Finding;
use crate::inert;
use crate::installation::Installation;

/// The clients whose own tools pass hooks.
pub(super) struct Hooked(Vec<Client>);

impl Hooked {
    pub(super) fn covers(&self, client: Client) -> bool {
        self.0.contains(&client)
    }
}

pub(super) fn look(config: &Config, findings: &mut Vec<Finding>) -> Hooked {
    let own = std::env::current_exe().ok();
    let program = own.as_deref().and_then(|own| Program::at(own).ok());
    let (Some(own), Some(program)) = (own, program) else {
        return Hooked(Vec::new());
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_dir());
    let mut hooked = Vec::new();
    let mut absent = Vec::new();
    for client in Client::ALL {
        let scopes = [
            Some((config.root(), "project")),
            home.as_deref().map(|home| (home, "user")),
        ];
        let mut installed = Vec::new();
        let mut is_absent = true;
        for (folder, scope) in scopes.into_iter().flatten() {
            let settings = Settings::of(client, folder);
            match settings.state(&program) {
                Ok(State::Absent) => continue,
                Ok(State::Installed) => installed.push(scope),
                Ok(State::Changed) => findings.push(changed(client, settings.file(), scope)),
                Err(problem) => findings.push(Finding::uncovered(
                    "hooks",
                    format!(
                        "whether {} has hooks cannot be told: {}",
                        name(client),
                        inert::lines(&problem.to_string())
                    ),
                )),
            }
            is_absent = false;
        }
        if is_absent {
            absent.push(name(client));
        }
        if !installed.is_empty() {
            hooked.push(client);
            findings.push(told(client, &installed));
        }
    }
    if hooked.is_empty() {
        findings.push(
            Finding::uncovered(
                "hooks",
                "no client here has hooks, so nothing sees what clients do with their own tools",
            )
            .remedy("`lodestar hook install CLIENT`"),
        );
    } else {
        if !absent.is_empty() {
            findings.push(Finding::uncovered(
                "hooks",
                format!(
                    "without hooks, should you use them here: {}",
                    absent.join(", ")
                ),
            ));
        }
        findings.push(answers(config.root(), own));
    }
    Hooked(hooked)
}

fn name(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => "Claude Code",
        Client::Codex => "Codex",
        Client::Cursor => "Cursor",
        Client::Gemini => "Gemini CLI",
    }
}

fn told(client: Client, scopes: &[&str]) -> Finding {
    let finding = Finding::uncovered(
        "hooks",
        format!(
            "{} is told to ask before it uses its own tools ({} settings); that it does is its own word",
            name(client),
            scopes.join(" and ")
        ),
    );
    match client {
        Client::Codex => finding.remedy(
            "Codex runs no hook that nobody trusted, and does not say so: enter /hooks in it and trust these",
        ),
        Client::Gemini => finding.remedy("Gemini CLI runs a project's hooks only in a folder that it trusts"),
        Client::ClaudeCode | Client::Cursor => finding,
    }
}

fn changed(client: Client, file: &Path, scope: &str) -> Finding {
    let what = format!(
        "the hooks of {} in `{}` are not as they were put in, or run another program",
        name(client),
        inert::path(file)
    );
    let switch = if scope == "user" { " --user" } else { "" };
    Finding::broken("hooks", what)
        .remedy(format!("`lodestar hook install {}{switch}`", client.name()))
}

/// Whether the daemon can be reached, as a hook reaches it. One that was started for this is ended again.
fn answers(root: &Path, own: PathBuf) -> Finding {
    let broken = |problem: &dyn std::fmt::Display| {
        let what = format!("nobody answers hooks, so that they refuse everything: {problem}");
        Finding::broken("hook_daemon", what).remedy("`lodestar hook daemon --foreground` says why")
    };
    let installation = match Installation::locate() {
        Ok(installation) => installation,
        Err(problem) => return broken(&problem),
    };
    let asking = Asking::new(installation);
    match asking.start_at(root) {
        Ok(()) => return Finding::proven("hook_daemon", "the daemon that answers hooks runs"),
        Err(Unavailable::Away) => {}
        Err(problem) => return broken(&problem),
    }
    let started = asking.clone().starting(own).start_at(root);
    match started.and_then(|()| asking.stop(root)) {
        Ok(_) => Finding::proven(
            "hook_daemon",
            "the daemon that answers hooks comes up when it is asked",
        ),
        Err(problem) => broken(&problem),
    }
}
