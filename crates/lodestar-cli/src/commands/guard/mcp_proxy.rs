//! `lodestar guard mcp-proxy`: one MCP server to the agent, many behind it, the gate in between.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use lodestar_core::id::RunId;
use lodestar_guard::attend::Attendant;
use lodestar_guard::config::{Ceiling, Config};
use lodestar_mcp::{Settings, serve_http, serve_stdio};

use super::run::{keys, read_task};
use crate::bridge::Bridge;
use crate::commands::ceiling;
use crate::commands::run::agent::way;
use crate::failure::{Exit, Failure};
use crate::gateway::DeviceDirArgs;

const AFTER_HELP: &str = "\
Name it in the client's configuration where a server's command stands:

  {\"mcpServers\": {\"lodestar\": {\"command\": \"lodestar\",
    \"args\": [\"guard\", \"mcp-proxy\", \"--config\", \"/path/to/lodestar.toml\"]}}}

The agent is served over standard input and output; everything else goes to standard error. With
--listen, clients are served over Streamable HTTP at /mcp instead: each shows the token that [http]
in the configuration names, and has a session of its own.

Examples:
  lodestar guard mcp-proxy --config lodestar.toml
  lodestar guard mcp-proxy --config lodestar.toml --listen 127.0.0.1:8080
  lodestar guard mcp-proxy --config lodestar.toml --auto-approve-up-to 3 --task \"fix the parser\"";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct McpProxyArgs {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Serve over HTTP at this address, such as 127.0.0.1:8080, instead of the standard streams
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Up to which rung calls run unasked, 0 to 3 [default: what the configuration says]
    #[arg(long, value_name = "RUNG", value_parser = ceiling)]
    auto_approve_up_to: Option<Ceiling>,

    #[command(flatten)]
    device: DeviceDirArgs,

    /// The task: values in it count as given
    #[arg(long, value_name = "TEXT", conflicts_with = "task_file")]
    task: Option<String>,

    /// A file with the task
    #[arg(long, value_name = "FILE")]
    task_file: Option<PathBuf>,

    /// The run that the session is, registered with `lodestar run start` [default: one is registered, if
    /// the configuration has `[run]`]
    #[arg(long, value_name = "RUN", conflicts_with = "listen")]
    run: Option<RunId>,
}

pub(crate) fn run(args: &McpProxyArgs) -> Result<Exit, Failure> {
    // Inside of `lodestar run` the proxy is outside, where its keys and its log are.
    if let Some(relayed) = way::relay(way::Want::McpProxy) {
        return relayed;
    }
    let config = Config::read(&args.config)?;
    if config.downstream_servers.is_empty() {
        return Err(Failure::usage(format!(
            "`{}` names no `downstream_servers`: there is nothing to stand in front of",
            crate::inert::path(&args.config)
        ))
        .help("`lodestar init` writes them from a client's configuration"));
    }
    if args.auto_approve_up_to.is_some() && config.policy.is_some() {
        return Err(Failure::usage(
            "the configuration has a policy of its own, which --auto-approve-up-to would not change",
        )
        .help("leave the option out, or take `policy` out of the configuration"));
    }
    let task = match (&args.task, &args.task_file) {
        (Some(task), _) => Some(task.clone()),
        (None, Some(file)) => Some(read_task(file)?),
        (None, None) => None,
    };
    let keys = keys(&config)?;
    let bridge = Bridge::of(&config, &keys, args.run, &args.device)?;
    let settings = Settings {
        keys,
        config,
        ceiling: args.auto_approve_up_to,
        task,
        attendant: bridge.map(|bridge| bridge as Arc<dyn Attendant>),
        // There is no way to say otherwise here.
        without: Vec::new(),
    };
    serve(settings, args.listen)
}

/// Serves an agent on the standard streams, or clients at an address.
pub(crate) fn serve(settings: Settings, listen: Option<SocketAddr>) -> Result<Exit, Failure> {
    // One thread for the protocol: messages are small and many, and changing threads costs more than they do.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    let served = match listen {
        None => runtime.block_on(serve_stdio(settings)),
        Some(address) => runtime.block_on(serve_http(settings, address)),
    };
    runtime.shutdown_timeout(super::LEFT_BEHIND);
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(problem) => Err(Failure::usage(problem.to_string())),
    }
}
