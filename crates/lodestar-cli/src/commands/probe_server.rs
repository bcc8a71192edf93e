//! `lodestar probe-server`: a scripted MCP server for probes, over standard streams.

use std::path::PathBuf;

use clap::Args;
use lodestar_harness::world;

use crate::failure::{Exit, Failure};

#[derive(Debug, Args)]
pub(crate) struct ProbeServerArgs {
    /// What it answers
    #[arg(long, value_name = "FILE")]
    script: PathBuf,

    /// The folder whose files it serves
    #[arg(long, value_name = "DIR")]
    root: PathBuf,

    /// Where it records what really ran
    #[arg(long, value_name = "DIR")]
    marks: PathBuf,
}

pub(crate) fn run(args: &ProbeServerArgs) -> Result<Exit, Failure> {
    let served = world::serve(&args.script, &args.root, &args.marks);
    served.map_err(|problem| Failure::usage(problem.to_string()))?;
    Ok(Exit::Done)
}
