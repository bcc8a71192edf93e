//! `lodestar run`: an agent inside a sandbox; governed sessions that a gateway knows of, and what it makes of them.

pub(crate) mod agent;
mod attest;
mod list;
mod show;
mod start;
mod terms;

use clap::{Args, Subcommand};
use lodestar_core::execution::ExecutionFact;
use lodestar_gateway::wire;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;

const AFTER_HELP: &str = "\
`lodestar run -- AGENT` starts an agent inside a sandbox whose only ways out are the proxy and what is
declared here: it reads the project and the system, writes what `--write` names, and reaches what `--allow`
and `--forward` name. In there, `lodestar guard mcp-proxy` leads to the proxy outside.

With `[run]` in the configuration, `lodestar guard mcp-proxy` and `lodestar guard run` do all of it by
themselves: a session is registered before it opens, its checkpoints are sent while it goes on, and at
its end its log is shipped and attested. These commands are for what is done beside that.

Examples:
  lodestar run -- ./agent.py
  lodestar run --write src --allow api.example.com:443 --env API_KEY -- some-agent --verbose
  lodestar run terms latest
  lodestar run start --config lodestar.toml
  lodestar run attest
  lodestar run show run_0198c1d2-0000-7000-8000-000000000000";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct RunArgs {
    #[command(subcommand)]
    command: Option<RunCommand>,

    #[command(flatten)]
    agent: agent::AgentArgs,
}

#[derive(Debug, Subcommand)]
enum RunCommand {
    /// Register as the owner what later runs are judged by
    Terms(terms::TermsArgs),
    /// Register a run that a session is then opened as
    Start(start::StartArgs),
    /// Ship and attest runs that are over and were not attested
    Attest(attest::AttestArgs),
    /// Show what the gateway makes of a run
    Show(show::ShowArgs),
    /// List runs
    List(list::ListArgs),
}

pub(crate) fn run(args: &RunArgs, app: &mut App) -> Result<Exit, Failure> {
    let Some(command) = &args.command else {
        if args.agent.command.is_empty() {
            return Err(Failure::usage("there is no command to run").help(
                "`lodestar run -- AGENT` runs an agent; `lodestar run --help` lists the rest",
            ));
        }
        return agent::run(&args.agent, app);
    };
    match command {
        RunCommand::Terms(args) => terms::run(args, app),
        RunCommand::Start(args) => start::run(args, app),
        RunCommand::Attest(args) => attest::run(args, app),
        RunCommand::Show(args) => show::run(args, app),
        RunCommand::List(args) => list::run(args, app),
    }
}

/// The facts behind a level, in the order in which the ladder asks for them.
fn print_facts(evaluation: &wire::Evaluation, out: &mut Out) -> std::io::Result<()> {
    use std::io::Write as _;
    let paint = out.paint;
    for fact in ExecutionFact::ALL {
        let mark = match evaluation.facts.contains(fact) {
            true => paint.good("✓"),
            false => paint.bad("✗"),
        };
        let name = paint.dim(format!("{:<20}", fact.as_str()));
        writeln!(out, "  {mark} {name} {}", fact.phrase())?;
    }
    match evaluation.stopped_by {
        None => Ok(()),
        Some(fact) => {
            let line = format!("{} needs `{fact}`", fact.needed_from());
            writeln!(out, "  {}", paint.warn(line))
        }
    }
}
