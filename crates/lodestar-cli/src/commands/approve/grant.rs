//! `lodestar approve grant`

use std::io::Write as _;

use clap::Args;
use lodestar_core::statement::ApprovalDecision;

use super::answer::{self, AsArgs};
use super::{Which, card, pile};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::terminal::Terminal;
use crate::{place, words};

const AFTER_HELP: &str = "\
The card is shown and the last four characters of its fingerprint are asked for on the terminal, and
so is the key's passphrase. Nothing is read from standard input.

Examples:
  lodestar approve grant 0198c1
  lodestar approve grant 0198c1 --as alice --reason \"agreed with the customer\"";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GrantArgs {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    who: AsArgs,

    /// Why, for the log
    #[arg(long, default_value = "")]
    reason: String,

    /// The last four characters of the fingerprint, for a key without a passphrase
    #[arg(long, value_name = "XXXX")]
    yes_fingerprint: Option<String>,
}

pub(crate) fn run(args: &GrantArgs, app: &mut App) -> Result<Exit, Failure> {
    let pile = pile(app)?;
    let shown = args.which.find(&pile)?;
    answer::check_open(shown)?;
    let signer = args.who.signer()?;
    let root = place::folder(app.root())?;
    let doubt = signer.check_registered(&root, shown)?;
    let approver = signer.approver.clone();
    let mut terminal = Terminal::open();
    match &args.yes_fingerprint {
        Some(_) if signer.is_sealed() => {
            return Err(Failure::not_authorised(
                "--yes-fingerprint is for keys without a passphrase, and this one has one",
            )
            .help("leave it out, and answer on the terminal"));
        }
        Some(typed) if answer::is_last_four(shown, typed) => {}
        Some(_) => return Err(answer::other_fingerprint()),
        None => {
            let terminal = terminal.as_mut().ok_or_else(answer::no_terminal)?;
            let lines = card::lines(shown, answer::now(), Out::columns_of_terminal());
            let text: String = lines
                .iter()
                .map(|line| format!("{}\n", line.painted(app.out.paint)))
                .collect();
            terminal.show(&text)?;
            let typed = terminal.ask("Last four characters of the fingerprint: ")?;
            if !answer::is_last_four(shown, &typed) {
                return Err(answer::other_fingerprint());
            }
        }
    }
    let key = signer.ask(terminal.as_mut())?;
    let decision = ApprovalDecision::Grant;
    let sent = answer::send(&pile, shown, &approver, &key, decision, &args.reason)?;
    if app.json {
        app.out.json(&sent)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let id = words::short_id(&shown.announcement().request.id);
    writeln!(app.out, "{} {approver} agrees to {id}", paint.good("✓"))?;
    writeln!(app.out, "  signed; {}", answer::what_follows(&root, shown))?;
    if let Some(doubt) = doubt {
        app.note(doubt);
    }
    Ok(Exit::Done)
}
