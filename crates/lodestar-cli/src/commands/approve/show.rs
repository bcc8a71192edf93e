//! `lodestar approve show`

use std::io::Write as _;

use clap::Args;
use serde_json::json;

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
    let pile = pile(app)?;
    let shown = args.which.find(&pile)?;
    if app.json {
        let mut value = json!(shown.announcement());
        value["answers_sent"] = json!(shown.answers());
        app.out.json(&value)?;
        return Ok(Exit::Done);
    }
    let columns = app.out.card_columns();
    let mut lines = card::lines(shown, answer::now(), columns);
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
