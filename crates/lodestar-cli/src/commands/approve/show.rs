//! `lodestar approve show`

use std::io::Write as _;

use clap::Args;
use lodestar_harness::world;
use serde_json::json;

use super::card::Others;
use super::{Which, answer, card, pile};
use crate::cli::App;
use crate::failure::{Exit, Failure};

const AFTER_HELP: &str = "\
Examples:
  lodestar approve show 0198c1
  lodestar approve show 0198c1 --full";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    which: Which,

    /// Show all of the arguments, too
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(args: &ShowArgs, app: &mut App) -> Result<Exit, Failure> {
    show(args, app, Others::Inert)
}

/// For a harness that takes [`Defence::InertRendering`](lodestar_core::defence::Defence) out: the card of a
/// scratch project, with what others wrote on it as it is.
pub(crate) fn run_live(args: &ShowArgs, app: &mut App) -> Result<Exit, Failure> {
    show(args, app, Others::Live)
}

fn show(args: &ShowArgs, app: &mut App, others: Others) -> Result<Exit, Failure> {
    let pile = pile(app)?;
    let shown = args.which.find(&pile)?;
    let is_scratch = shown.announcement().project.as_str() == world::PROJECT;
    if others == Others::Live && !is_scratch {
        return Err(Failure::usage(
            "defences are taken out in scratch projects that `lodestar harness` makes, and in no other",
        ));
    }
    if app.json {
        let mut value = json!(shown.announcement());
        value["answers_sent"] = json!(shown.answers());
        app.out.json(&value)?;
        return Ok(Exit::Done);
    }
    let columns = app.out.card_columns();
    let mut lines = card::lines_with(shown, answer::now(), columns, others);
    if args.full {
        lines.push(card::heading("full arguments"));
        lines.extend(card::full_arguments(shown, columns));
    }
    for line in lines {
        let text = line.painted(app.out.paint);
        writeln!(app.out, "{text}")?;
    }
    Ok(Exit::Done)
}
