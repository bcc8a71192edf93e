//! `lodestar run start`

use std::io::Write as _;

use clap::Args;
use lodestar_gateway::run::register;

use crate::bridge;
use crate::cli::App;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, wait};

const AFTER_HELP: &str = "\
The run is what `[run]` in the configuration says. A session is opened as it with
`lodestar guard mcp-proxy --run RUN` or `lodestar guard run --run RUN`; a program of one's own gives
its session the run's id and nonce. Every session is a run of its own.

Examples:
  lodestar run start
  lodestar run start --config lodestar.toml --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    dir: DeviceDirArgs,
}

pub(crate) fn run(args: &StartArgs, app: &mut App) -> Result<Exit, Failure> {
    let configured = args.config.find(app)?.ok_or_else(|| {
        Failure::not_found("there is no `lodestar.toml` here").help("name one with --config")
    })?;
    let run = configured.config.run.as_ref().ok_or_else(|| {
        Failure::usage("the configuration has no `[run]`, which says what the run is to be")
    })?;
    let plan = bridge::plan(run).map_err(Failure::usage)?;
    let folder = args.dir.folder()?;
    let client = folder.client()?;
    let record = wait(register(&folder, &client, plan))?.map_err(bridge::not_registered)?;
    if app.json {
        app.out.json(&record)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let id = record.ticket.id;
    writeln!(app.out, "{} {}", paint.good("✓"), paint.strong(id))?;
    writeln!(app.out, "  nonce  {}", record.ticket.nonce)?;
    writeln!(
        app.out,
        "  {}",
        paint.dim(format!("lodestar guard run --run {id} …"))
    )?;
    Ok(Exit::Done)
}
