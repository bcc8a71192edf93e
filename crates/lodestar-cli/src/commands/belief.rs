//! `lodestar belief`: what is believed, why, and what people make of it.

mod list;
mod one;
mod order;
mod promote;
mod quarantine;
mod show;
pub(super) mod text;
mod why;

use clap::{Args, Subcommand};

use crate::beliefs::BeliefsArgs;
use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
A belief is named by its id or the beginning of it. What the default context does not hold is
shown too, and that somebody looked is on record.

Examples:
  lodestar belief list
  lodestar belief list --all --truth unverified
  lodestar belief why blf_019a8f3c
  lodestar belief promote blf_019a8f3c-1234-7abc-89ab --operator alice";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BeliefArgs {
    #[command(flatten)]
    beliefs: BeliefsArgs,

    #[command(subcommand)]
    command: BeliefCommand,
}

#[derive(Debug, Subcommand)]
enum BeliefCommand {
    /// What is believed: the context that a planner would get
    List(list::ListArgs),
    /// Everything about one belief
    Show(show::ShowArgs),
    /// The chain behind a belief, event by event
    Why(why::WhyArgs),
    /// Vouch for a belief, under an operator's signature
    Promote(promote::PromoteArgs),
    /// Set a belief apart as an attack, or take that back, under an operator's signature
    Quarantine(quarantine::QuarantineArgs),
}

pub(crate) fn run(args: &BeliefArgs, app: &mut App) -> Result<Exit, Failure> {
    let beliefs = &args.beliefs;
    match &args.command {
        BeliefCommand::List(args) => list::run(args, beliefs, app),
        BeliefCommand::Show(args) => show::run(args, beliefs, app),
        BeliefCommand::Why(args) => why::run(args, beliefs, app),
        BeliefCommand::Promote(args) => promote::run(args, beliefs, app),
        BeliefCommand::Quarantine(args) => quarantine::run(args, beliefs, app),
    }
}
