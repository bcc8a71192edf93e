//! One module per command.

mod approve;
mod completions;
mod demo;
mod log;
mod man;

use clap::Subcommand;

use crate::cli::App;
use crate::failure::{Exit, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See what the event log proves, on a scratch session that is then tampered with
    Demo(demo::DemoArgs),
    /// Look at, verify and prove the event log
    Log(log::LogArgs),
    /// Approve actions as an operator
    Approve(approve::ApproveArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the man pages into a directory
    Man(man::ManArgs),
}

pub(crate) fn run(command: Command, app: &mut App) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args, app),
        Command::Log(args) => log::run(&args, app),
        Command::Approve(args) => approve::run(&args, app),
        Command::Completions(args) => completions::run(&args, app),
        Command::Man(args) => man::run(&args, app),
    }
}
