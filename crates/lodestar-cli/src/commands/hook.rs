//! `lodestar hook`: the built-in tools of clients, governed.

mod answer;
mod daemon;

use clap::{Args, Subcommand};

pub(crate) use self::answer::at_once;
use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar hook daemon
  lodestar hook stop";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Answer the hooks of a project's clients
    Daemon(daemon::DaemonArgs),
    /// End the daemon of a project, and close its sessions
    Stop(daemon::StopArgs),
    /// Answer one hook in Lodestar's own words
    #[command(hide = true)]
    Answer,
}

pub(crate) fn run(args: &HookArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        HookCommand::Daemon(args) => daemon::run(args, app),
        HookCommand::Stop(args) => daemon::stop(args, app),
        HookCommand::Answer => Ok(answer::run()),
    }
}
