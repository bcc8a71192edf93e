//! `lodestar gateway`: the service, and whether a device gets on with it.

mod doctor;
mod serve;

use clap::{Args, Subcommand};

use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar gateway serve --data /var/lib/lodestar
  lodestar gateway serve --config gateway.toml
  lodestar gateway doctor";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: GatewayCommand,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Serve devices, owners and runs
    Serve(serve::ServeArgs),
    /// Check that this device can do its work
    Doctor(doctor::DoctorArgs),
}

pub(crate) fn run(args: &GatewayArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        GatewayCommand::Serve(args) => serve::run(args, app),
        GatewayCommand::Doctor(args) => doctor::run(args, app),
    }
}
