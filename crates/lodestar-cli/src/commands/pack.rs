//! `lodestar pack`: outside packs of probes: made, checked, signed and verified. They run with
//! `lodestar harness run --pack DIR`.

mod check;
mod new;
mod sign;
mod verify;

use std::path::Path;

use clap::{Args, Subcommand};
use lodestar_harness::pack::{OutsidePack, Problem};

pub(super) use verify::unsealed;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{inert, words};

const AFTER_HELP: &str = "\
A pack is data: what is planted, what scripted servers answer, what an agent does, and what must be so
afterwards. It runs none of its own code. Whose pack runs is settled by keys pinned in `packs/` of the
configuration directory.

Examples:
  lodestar pack new my-pack
  lodestar pack check my-pack
  lodestar pack sign my-pack --as alice
  lodestar pack verify my-pack
  lodestar harness run --pack my-pack";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PackArgs {
    #[command(subcommand)]
    command: PackCommand,
}

#[derive(Debug, Subcommand)]
enum PackCommand {
    /// Write a first pack, to change
    New(new::NewArgs),
    /// What is wrong with a pack, with line and column; nothing runs
    Check(check::CheckArgs),
    /// Publish a pack under its author's signature
    Sign(sign::SignArgs),
    /// Check that a pack is as its author signed it
    Verify(verify::VerifyArgs),
}

pub(crate) fn run(args: &PackArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        PackCommand::New(args) => new::run(args, app),
        PackCommand::Check(args) => check::run(args, app),
        PackCommand::Sign(args) => sign::run(args, app),
        PackCommand::Verify(args) => verify::run(args, app),
    }
}

/// A pack that is as its format says.
pub(super) fn read(folder: &Path) -> Result<OutsidePack, Failure> {
    OutsidePack::read(folder).map_err(|problems| {
        let shown = inert::path(folder);
        let first = problems.first().map(shown_problem).unwrap_or_default();
        let more = match problems.len() {
            0 | 1 => String::new(),
            more => format!(" (and {})", words::count(more as u64 - 1, "more problem")),
        };
        Failure::check(format!("`{shown}` is no pack: {first}{more}"))
            .help("`lodestar pack check` lists everything that is wrong")
    })
}

fn shown_problem(problem: &Problem) -> String {
    inert::line(&problem.to_string(), 1000)
}
