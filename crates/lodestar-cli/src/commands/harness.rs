//! `lodestar harness`: the executable threat model.

mod attack;
mod calibrate;
mod list;
mod outside;
mod run;

pub(crate) use run::{ProbeArgs, probe};

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar harness run              every probe, each with its contrast run
  lodestar harness list             what each probe shows
  lodestar harness attack           an adversary without a model searches for a way through
  lodestar harness calibrate        how well confidence matches what came of it";

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
    /// Let an adversary without a model search for a way through
    Attack(attack::AttackArgs),
    /// Measure how well the confidence of beliefs matches what came of them, and record it
    Calibrate(calibrate::CalibrateArgs),
}

pub(crate) fn run(args: &HarnessArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        HarnessCommand::Run(args) => run::run(args, app),
        HarnessCommand::List(args) => list::run(args, app),
        HarnessCommand::Attack(args) => attack::run(args, app),
        HarnessCommand::Calibrate(args) => calibrate::run(args, app),
    }
}
