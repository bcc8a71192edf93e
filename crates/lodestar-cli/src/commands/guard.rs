//! `lodestar guard`: agents, governed.

mod mcp_proxy;
mod run;
mod waiting;

use std::time::Duration;

use clap::{Args, Subcommand};

pub(crate) use self::mcp_proxy::serve;
pub(crate) use self::run::keys;
use crate::cli::App;
use crate::failure::{Exit, Failure};

/// How long the process waits for what goes on beside a session that is over: its log is on disk by then, and
/// looking up a name, which cannot be called off, may take minutes.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_secs(5);

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
