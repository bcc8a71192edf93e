//! `lodestar hook`: the built-in tools of clients, governed through their hooks.
//!
//! A client runs `lodestar hook <client>` and reads the answer ([`answer`]); people put that into the client's
//! settings, take it out and look at it ([`install`], [`status`]).

mod answer;
mod daemon;
mod install;
mod plain;
mod project;
mod status;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use lodestar_guard::hook::Client;
use lodestar_guard::hook::settings::{Program, SettingsError};

pub(crate) use self::answer::at_once;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{inert, place};

const AFTER_HELP: &str = "\
A client's own tools (files, commands, the web, sub-agents) never pass the proxy. Its hooks let Lodestar
judge them before they run and see what came of them. Where nobody is there to judge, nothing runs.

Examples:
  lodestar hook install claude-code --dry-run
  lodestar hook install claude-code
  lodestar hook status
  lodestar hook stop
  lodestar hook uninstall claude-code";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Put the hooks into a client's settings
    Install(install::InstallArgs),
    /// Take them out again
    Uninstall(install::UninstallArgs),
    /// See where they are installed
    Status(status::StatusArgs),
    /// Answer the hooks of a project's clients; the first hook starts it by itself
    Daemon(daemon::DaemonArgs),
    /// End the daemon of a project, and close its sessions
    Stop(daemon::StopArgs),
    /// Answer one hook in Lodestar's own words, for measuring and for clients of which nothing is known here
    ///
    /// What is read from stdin and what is answered are the same for every client, so that the way from a hook
    /// to the daemon and back can be measured and tested without any of them, and whoever writes a client can
    /// ask before it has a form of its own.
    #[command(hide = true)]
    Answer,
    /// Answer Claude Code: what it says is read from stdin
    ClaudeCode(answer::AnswerArgs),
    /// Answer Codex: what it says is read from stdin
    Codex(answer::AnswerArgs),
    /// Answer Cursor: what it says is read from stdin
    Cursor(answer::AnswerArgs),
    /// Answer Gemini CLI: what it says is read from stdin
    Gemini(answer::AnswerArgs),
}

pub(crate) fn run(args: &HookArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        HookCommand::Install(args) => install::install(args, app),
        HookCommand::Uninstall(args) => install::uninstall(args, app),
        HookCommand::Status(args) => status::run(args, app),
        HookCommand::Daemon(args) => daemon::run(args, app),
        HookCommand::Stop(args) => daemon::stop(args, app),
        HookCommand::Answer => Ok(plain::run()),
        HookCommand::ClaudeCode(args) => Ok(answer::run(Client::ClaudeCode, args)),
        HookCommand::Codex(args) => Ok(answer::run(Client::Codex, args)),
        HookCommand::Cursor(args) => Ok(answer::run(Client::Cursor, args)),
        HookCommand::Gemini(args) => Ok(answer::run(Client::Gemini, args)),
    }
}

/// Reads the name of a client, as it is typed.
pub(crate) fn a_client() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(Client::ALL.map(Client::name)).map(|typed| {
        let mut all = Client::ALL.into_iter();
        let named = all.find(|client| client.name() == typed);
        named.expect("INVARIANT: only these names are possible")
    })
}

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Project,
    User,
}

impl Scope {
    fn folder(self, app: &App) -> Result<PathBuf, Failure> {
        match self {
            Self::Project => match app.root() {
                Some(root) => Ok(root.to_owned()),
                None => place::here(),
            },
            Self::User => std::env::var_os("HOME")
                .filter(|home| !home.is_empty())
                .map(PathBuf::from)
                .ok_or_else(|| Failure::usage("HOME is not set, so nobody's settings are found")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// This program, as clients start it.
fn program() -> Result<Program, Failure> {
    let path = std::env::current_exe().map_err(Failure::io("lodestar"))?;
    Program::at(&path).map_err(refused)
}

fn refused(error: SettingsError) -> Failure {
    let exit = match &error {
        SettingsError::Io { problem, .. } if problem.kind() == std::io::ErrorKind::NotFound => {
            Exit::NotFound
        }
        _ => Exit::Usage,
    };
    Failure::new(exit, inert::lines(&error.to_string()))
}
