//! `lodestar probe-show`: the card of a request with the rendering of what others wrote taken out, to see
//! that it is missed. It shows cards of scratch projects, and of no other.

use clap::Args;
use lodestar_core::defence::Defence;

use super::approve::{ShowArgs, show_live};
use super::demo;
use crate::cli::App;
use crate::failure::{Exit, Failure};

#[derive(Debug, Args)]
pub(crate) struct ProbeShowArgs {
    #[command(flatten)]
    show: ShowArgs,

    /// What is taken out
    #[arg(long, value_name = "DEFENCE", value_parser = demo::defence)]
    without: Defence,
}

pub(crate) fn run(args: &ProbeShowArgs, app: &mut App) -> Result<Exit, Failure> {
    match args.without {
        Defence::InertRendering => show_live(&args.show, app),
        other => Err(Failure::usage(format!(
            "cards are shown without `{}`, and not without `{other}`",
            Defence::InertRendering
        ))),
    }
}
