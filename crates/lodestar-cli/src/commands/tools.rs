//! `lodestar tools`: what can be called, how far it may reach, and who said so.

mod grade;
mod list;
mod review;

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar tools list
  lodestar tools list --session latest
  lodestar tools review
  lodestar tools grade fs.write --level L3 --write";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// The tools, how far each may reach, and who graded it
    List(list::ListArgs),
    /// Look at what servers offer, and accept it under an operator's signature
    Review(review::ReviewArgs),
    /// Say how far a tool may reach
    Grade(grade::GradeArgs),
}

pub(crate) fn run(args: &ToolsArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        ToolsCommand::List(args) => list::run(args, app),
        ToolsCommand::Review(args) => review::run(args, app),
        ToolsCommand::Grade(args) => grade::run(args, app),
    }
}
