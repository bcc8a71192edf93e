//! `lodestar agent`: the agents in whose name runs are made.

use std::io::Write as _;

use clap::{Args, Subcommand};
use lodestar_core::name::ActorId;
use lodestar_gateway::wire;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, all, wait};

const AFTER_HELP: &str = "\
Examples:
  lodestar agent add coder
  lodestar agent list";

const AFTER_ADD: &str = "\
Its id goes into `[run]` in the configuration, as `agent`.

Examples:
  lodestar agent add coder";

const AFTER_LIST: &str = "\
Examples:
  lodestar agent list
  lodestar agent list --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Make an agent known to the gateway
    #[command(after_help = AFTER_ADD)]
    Add {
        /// What its owner calls it
        name: String,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// List the account's agents
    #[command(after_help = AFTER_LIST)]
    List {
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

pub(crate) fn run(args: &AgentArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        AgentCommand::Add { name, gateway } => {
            let name = ActorId::new(name.as_str()).map_err(|e| Failure::name("agent", &e))?;
            let client = gateway.owner()?;
            let agent = wait(client.register_agent(&wire::Named { name }))??;
            match app.json {
                true => app.out.json(&agent)?,
                false => {
                    let paint = app.out.paint;
                    writeln!(app.out, "{} {}  {}", paint.good("✓"), agent.id, agent.name)?;
                }
            }
        }
        AgentCommand::List { gateway } => {
            let client = gateway.owner()?;
            let agents = wait(all(|after| client.agents(after), |next| next.parse().ok()))??;
            for agent in &agents {
                match app.json {
                    true => app.out.json(agent)?,
                    false => writeln!(app.out, "{}  {}", agent.id, agent.name)?,
                }
            }
        }
    }
    Ok(Exit::Done)
}
