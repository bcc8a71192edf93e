//! `lodestar halt`: nothing further runs in a session.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap::Args;
use lodestar_kernel::halt::Halt;
use lodestar_log::verify::is_live;
use lodestar_log::{Ledger, LedgerState, SessionDir, Trust};
use serde::Serialize;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::place::SessionName;

/// What stands where nobody gave a reason.
const NO_REASON: &str = "halted from the command line";
/// What a session reads of a reason.
const MAX_REASON: usize = 1024;

const AFTER_HELP: &str = "\
What runs is told to stop, and nothing further clears; there is no way back. A session that is not
running is halted for the case that it is taken up again.

Examples:
  lodestar halt latest
  lodestar halt s-0197 --reason \"it deletes the wrong files\"";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HaltArgs {
    /// The session: its id, the beginning of it, or `latest`
    session: String,

    /// Why, for the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// A process has it open.
    Live,
    /// Nobody has it open, and it was not closed.
    Interrupted,
    /// It is over.
    Closed,
}

pub(crate) fn run(args: &HaltArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let reason = args.reason.as_deref().unwrap_or(NO_REASON);
    if reason.is_empty() || reason.len() > MAX_REASON {
        return Err(Failure::usage(format!(
            "a reason has 1 to {MAX_REASON} bytes, this one {}",
            reason.len()
        )));
    }
    let place = app.place(args.project.as_deref())?;
    let dir = place.readable_session(&name)?;
    let state = state(&dir)?;
    let already = Halt::of(&dir).is_halted();
    if state != State::Closed {
        Halt::ask(&dir, reason).map_err(Failure::io(dir.dir()))?;
    }
    if app.json {
        app.out.json(&json!({
            "project": dir.project(),
            "session": dir.session(),
            "state": state,
            "asked": state != State::Closed,
            "already": already,
        }))?;
        return Ok(Exit::Done);
    }
    let session = inert::whole(dir.session().as_str());
    let line = match (state, already) {
        (State::Closed, _) => format!("session {session} is over: there is nothing to halt"),
        (_, true) => format!("session {session} was halted before"),
        (State::Live, false) => {
            format!("session {session} is halted: nothing further runs in it")
        }
        (State::Interrupted, false) => {
            format!("session {session} is halted; it is not running now")
        }
    };
    Ok(writeln!(app.out, "{line}").map(|()| Exit::Done)?)
}

fn state(dir: &SessionDir) -> Result<State, Failure> {
    if is_live(dir).map_err(Failure::io(dir.dir()))? {
        return Ok(State::Live);
    }
    let log = dir.project_log();
    // Only whether it was closed is taken from it; stopping must not depend on keys.
    let (ledger, _) = Ledger::read(&log, &Trust::default(), &BTreeSet::new())
        .map_err(Failure::io(log.ledger_path()))?;
    let facts = ledger.session(dir.session());
    let is_open = facts.is_none_or(|facts| facts.state == LedgerState::Open);
    Ok(if is_open {
        State::Interrupted
    } else {
        State::Closed
    })
}
