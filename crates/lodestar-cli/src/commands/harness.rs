//! `lodestar harness`: Lodestar, put to the test.

mod calibrate;

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar harness calibrate        how well confidence matches what came of it";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HarnessArgs {
    #[command(subcommand)]
    command: HarnessCommand,
}

#[derive(Debug, Subcommand)]
enum HarnessCommand {
    /// Measure how well the confidence of beliefs matches what came of them, and record it
    Calibrate(calibrate::CalibrateArgs),
}

pub(crate) fn run(args: &HarnessArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        HarnessCommand::Calibrate(args) => calibrate::run(args, app),
    }
}
