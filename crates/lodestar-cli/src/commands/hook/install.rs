//! `lodestar hook install` and `uninstall`: a client's settings, changed and changed back.

use std::io::Write as _;

use clap::Args;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::settings::State;
use lodestar_guard::hook::settings::file::{Change, Earnest, Settings};
use serde_json::json;

use super::project::Project;
use super::{Scope, a_client, program, refused};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::paint::Paint;
use crate::{diff, inert};

const AFTER_HELP: &str = "\
Puts the hooks beside whatever else stands in the settings (.claude/settings.json, .codex/hooks.json,
.cursor/hooks.json, .gemini/settings.json) of the project, or with --user of the home folder. The file as it
was is kept beside it. Doing it twice changes nothing.

Hooks go by the project's `lodestar.toml` and refuse everything without one: where neither the folder nor one
above it has one, a small one is written and shown. With --user none is.

Examples:
  lodestar hook install claude-code --dry-run
  lodestar hook install codex --user";

const AFTER_HELP_OUT: &str = "\
Takes out what `install` put in, and nothing else. A file in which nothing else has changed since is as it was
before, to the byte.

Examples:
  lodestar hook uninstall claude-code
  lodestar hook uninstall codex --user";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP_OUT)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// Whose settings
    #[arg(value_parser = a_client())]
    client: Client,

    /// Those in the home folder, for every project
    #[arg(long)]
    user: bool,

    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
}

impl Which {
    fn scope(&self) -> Scope {
        match self.user {
            true => Scope::User,
            false => Scope::Project,
        }
    }

    fn settings(&self, app: &App) -> Result<Settings, Failure> {
        Ok(Settings::of(self.client, &self.scope().folder(app)?))
    }

    /// Hooks of the same client in the other place: each of its uses would be told, and judged, twice.
    fn is_in_the_other_place(&self, app: &App) -> Result<bool, Failure> {
        let other = match self.scope() {
            Scope::Project => Scope::User,
            Scope::User => Scope::Project,
        };
        let Ok(folder) = other.folder(app) else {
            return Ok(false);
        };
        let settings = Settings::of(self.client, &folder);
        let is_same = settings.file() == self.settings(app)?.file();
        let state = settings.state(&program()?);
        Ok(!is_same && matches!(state, Ok(State::Installed | State::Changed)))
    }

    fn earnest(&self) -> Earnest {
        match self.dry_run {
            true => Earnest::Rehearsed,
            false => Earnest::Done,
        }
    }
}

pub(crate) fn install(args: &InstallArgs, app: &mut App) -> Result<Exit, Failure> {
    let which = &args.which;
    let project = Project::of(which.client, which.scope(), app)?;
    let change = which
        .settings(app)?
        .install(&program()?, which.earnest())
        .map_err(refused)?;
    if !which.dry_run {
        project.settle()?;
    }
    tell(&change, which, "installed", Some(&project), app)?;
    app.note(remark(which.client));
    if which.is_in_the_other_place(app)? {
        let (other, switch) = match which.scope() {
            Scope::Project => ("the home folder", " --user"),
            Scope::User => ("this project", ""),
        };
        let client = which.client.name();
        app.note(format!(
            "the settings of {other} have these hooks, too, so that each use is judged twice: \
             `lodestar hook uninstall {client}{switch}` takes them out there"
        ));
    }
    Ok(Exit::Done)
}

pub(crate) fn uninstall(args: &UninstallArgs, app: &mut App) -> Result<Exit, Failure> {
    let which = &args.which;
    let change = which
        .settings(app)?
        .uninstall(&program()?, which.earnest())
        .map_err(refused)?;
    tell(&change, which, "uninstalled", None, app)?;
    Ok(Exit::Done)
}

fn tell(
    change: &Change,
    which: &Which,
    done: &str,
    project: Option<&Project>,
    app: &mut App,
) -> Result<(), Failure> {
    let client = which.client;
    let before = change.before.as_deref().unwrap_or_default();
    let after = change.after.as_deref().unwrap_or_default();
    if app.json {
        app.out.json(&json!({
            "client": client.name(),
            "file": change.file,
            "changed": change.is_one(),
            "dry_run": which.dry_run,
            "backup": change.backup,
            "diff": diff::shown(before, after, Paint::none()),
            "configuration": project.map(Project::json),
        }))?;
        return Ok(());
    }
    let file = inert::path(&change.file);
    let shown = diff::shown(before, after, app.out.paint);
    write!(app.out, "{shown}")?;
    match (&change.after, &change.backup) {
        _ if !change.is_one() => writeln!(app.out, "`{file}` stays as it is")?,
        _ if which.dry_run => writeln!(app.out, "`{file}` would change so; nothing was written")?,
        (None, _) => writeln!(app.out, "{done}: `{file}` is gone, as before")?,
        (Some(_), Some(backup)) => writeln!(
            app.out,
            "{done}: `{file}`; as it was: `{}`",
            inert::path(backup)
        )?,
        (Some(_), None) => writeln!(app.out, "{done}: `{file}`")?,
    }
    project.map_or(Ok(()), |project| project.tell(which.dry_run, app))
}

/// What still has to be done for the client to run its hooks.
fn remark(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => {
            "a session that runs reads its settings again; --bare and `disableAllHooks` turn hooks off"
        }
        Client::Codex => {
            "Codex runs no hook that was not reviewed: start it here, enter /hooks and trust these; a project's \
             hooks need a trusted project"
        }
        Client::Cursor => "restart Cursor if its Hooks settings do not show them",
        Client::Gemini => "a project's hooks run only in a folder that Gemini CLI trusts",
    }
}
