//! `lodestar approve`: what an operator needs to approve actions. So far, a key.

mod keygen;

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar approve keygen --name alice";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    command: ApproveCommand,
}

#[derive(Debug, Subcommand)]
enum ApproveCommand {
    /// Make an operator's key and pin its public part here
    Keygen(keygen::KeygenArgs),
}

pub(crate) fn run(args: &ApproveArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        ApproveCommand::Keygen(args) => keygen::run(args, app),
    }
}
