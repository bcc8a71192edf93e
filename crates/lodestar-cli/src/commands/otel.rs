//! `lodestar otel`: sessions for OpenTelemetry.

mod export;

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
A trace is a projection of a log that verified: every span names the event that it comes from.

Examples:
  lodestar otel export latest --out trace.jsonl
  lodestar otel export latest --endpoint http://localhost:4318";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct OtelArgs {
    #[command(subcommand)]
    command: OtelCommand,
}

#[derive(Debug, Subcommand)]
enum OtelCommand {
    /// Export a session as a trace: OTLP to a receiver, or as JSON
    Export(export::ExportArgs),
}

pub(crate) fn run(args: &OtelArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        OtelCommand::Export(args) => export::run(args, app),
    }
}
