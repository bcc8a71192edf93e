//! `lodestar guard`: agents, governed.

mod mcp_proxy;
mod run;
mod waiting;

use clap::{Args, Subcommand};

pub(crate) use self::mcp_proxy::serve;
pub(crate) use self::run::keys;
use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar guard mcp-proxy --config lodestar.toml
  lodestar guard run --config lodestar.toml --script rehearsal.toml";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    command: GuardCommand,
}

#[derive(Debug, Subcommand)]
enum GuardCommand {
    /// Stand between an agent and its MCP servers
    McpProxy(mcp_proxy::McpProxyArgs),
    /// Drive a scripted agent through a governed session
    Run(run::RunArgs),
}

pub(crate) fn run(args: &GuardArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        GuardCommand::McpProxy(args) => mcp_proxy::run(args),
        GuardCommand::Run(args) => run::run(args, app),
    }
}
