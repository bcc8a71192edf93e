//! `lodestar harness`: the executable threat model.

mod list;
mod outside;
mod run;

pub(crate) use run::{ProbeArgs, probe};

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar harness list
  lodestar harness run
  lodestar harness run --pack ./invoice-fraud";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HarnessArgs {
    #[command(subcommand)]
    command: HarnessCommand,
}

#[derive(Debug, Subcommand)]
enum HarnessCommand {
    /// Run probes, each with its contrast run
    Run(run::RunArgs),
    /// List the probes: what each shows, and what it does not
    List(list::ListArgs),
}

pub(crate) fn run(args: &HarnessArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        HarnessCommand::Run(args) => run::run(args, app),
        HarnessCommand::List(args) => list::run(args, app),
    }
}
