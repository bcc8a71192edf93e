//! `lodestar approve deny`

use std::io::Write as _;

use clap::Args;
use lodestar_core::statement::ApprovalDecision;

use super::answer::{self, AsArgs};
use super::{Which, pile};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::terminal::Terminal;
use crate::{place, words};

const AFTER_HELP: &str = "\
One valid no ends a request. A passphrase is asked for on the terminal.

Examples:
  lodestar approve deny 0198c1 --reason \"not on a Friday\"";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    which: Which,

    /// Why: the agent is told, and it stands in the log
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    who: AsArgs,
}

pub(crate) fn run(args: &DenyArgs, app: &mut App) -> Result<Exit, Failure> {
    let pile = pile(app)?;
    let shown = args.which.find(&pile)?;
    answer::check_open(shown)?;
    let signer = args.who.signer()?;
    let root = place::folder(app.root())?;
    let doubt = signer.check_registered(&root, shown)?;
    let approver = signer.approver.clone();
    let key = signer.ask(Terminal::open().as_mut())?;
    let decision = ApprovalDecision::Deny;
    let sent = answer::send(&pile, shown, &approver, &key, decision, &args.reason)?;
    if app.json {
        app.out.json(&sent)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let id = words::short_id(&shown.announcement().request.id);
    writeln!(app.out, "{} {approver} refuses {id}", paint.warn("✗"))?;
    writeln!(app.out, "  signed; {}", answer::what_follows(&root, shown))?;
    if let Some(doubt) = doubt {
        app.note(doubt);
    }
    Ok(Exit::Done)
}
