//! `lodestar hook install` and `uninstall`: a client's settings, changed and changed back.

use std::io::Write as _;

use clap::Args;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::settings::file::{Change, Earnest, Settings};
use serde_json::json;

use super::{Scope, a_client, program, refused};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::paint::Paint;
use crate::{diff, inert};

const AFTER_HELP: &str = "\
Puts the hooks beside whatever else stands in the settings (.claude/settings.json, .codex/hooks.json,
.cursor/hooks.json, .gemini/settings.json) of the project, or with --user of the home folder. The file as it
was is kept beside it. Doing it twice changes nothing.

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
    fn settings(&self, app: &App) -> Result<Settings, Failure> {
        let scope = match self.user {
            true => Scope::User,
            false => Scope::Project,
        };
        Ok(Settings::of(self.client, &scope.folder(app)?))
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
    let change = which
        .settings(app)?
        .install(&program()?, which.earnest())
        .map_err(refused)?;
    tell(&change, which, "installed", app)?;
    app.note(remark(which.client));
    Ok(Exit::Done)
}

pub(crate) fn uninstall(args: &UninstallArgs, app: &mut App) -> Result<Exit, Failure> {
    let which = &args.which;
    let change = which
        .settings(app)?
        .uninstall(&program()?, which.earnest())
        .map_err(refused)?;
    tell(&change, which, "uninstalled", app)?;
    Ok(Exit::Done)
}

fn tell(change: &Change, which: &Which, done: &str, app: &mut App) -> Result<(), Failure> {
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
        }))?;
        return Ok(());
    }
    let file = inert::path(&change.file);
    if !change.is_one() {
        writeln!(app.out, "`{file}` stays as it is")?;
        return Ok(());
    }
    let shown = diff::shown(before, after, app.out.paint);
    write!(app.out, "{shown}")?;
    if which.dry_run {
        writeln!(app.out, "`{file}` would change so; nothing was written")?;
        return Ok(());
    }
    match (&change.after, &change.backup) {
        (None, _) => writeln!(app.out, "{done}: `{file}` is gone, as before")?,
        (Some(_), Some(backup)) => writeln!(
            app.out,
            "{done}: `{file}`; as it was: `{}`",
            inert::path(backup)
        )?,
        (Some(_), None) => writeln!(app.out, "{done}: `{file}`")?,
    }
    Ok(())
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
