//! One module per command.

mod approve;
mod belief;
mod completions;
mod demo;
mod import;
mod log;
mod man;
mod reflect;
mod store;

use clap::Subcommand;

use crate::cli::App;
use crate::failure::{Exit, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See what the event log proves, on a scratch session that is then tampered with
    Demo(demo::DemoArgs),
    /// Look at, verify and prove the event log
    Log(log::LogArgs),
    /// Look at beliefs, and move them as an operator
    Belief(belief::BeliefArgs),
    /// Look back on a session: which decisions and beliefs to look at again
    Reflect(reflect::ReflectArgs),
    /// Take in the memories of another system, as unverified
    Import(import::ImportArgs),
    /// Check the belief store, or make it again from the log
    Store(store::StoreArgs),
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
        Command::Belief(args) => belief::run(&args, app),
        Command::Reflect(args) => reflect::run(&args, app),
        Command::Import(args) => import::run(&args, app),
        Command::Store(args) => store::run(&args, app),
        Command::Approve(args) => approve::run(&args, app),
        Command::Completions(args) => completions::run(&args, app),
        Command::Man(args) => man::run(&args, app),
    }
}
