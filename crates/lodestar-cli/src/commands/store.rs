//! `lodestar store`: where beliefs are kept, and whether it says what the log says.

mod rebuild;
mod status;

use clap::{Args, Subcommand};

use crate::beliefs::BeliefsArgs;
use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
A belief store is a projection of the log and holds nothing else: what is lost or was edited is
made again from the log.

Examples:
  lodestar store status
  lodestar store rebuild";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    beliefs: BeliefsArgs,

    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Check that the store says what the log says
    Status(status::StatusArgs),
    /// Make the store again from the log
    Rebuild(rebuild::RebuildArgs),
}

pub(crate) fn run(args: &StoreArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        StoreCommand::Status(_) => status::run(&args.beliefs, app),
        StoreCommand::Rebuild(_) => rebuild::run(&args.beliefs, app),
    }
}
