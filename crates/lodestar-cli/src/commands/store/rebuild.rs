//! `lodestar store rebuild`: the store again, from what the log proves.

use std::io::Write as _;

use clap::Args;
use lodestar_replay::Followed;
use serde_json::json;

use crate::beliefs::{Beliefs, BeliefsArgs};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::progress::Progress;
use crate::{inert, words};

const AFTER_HELP: &str = "\
Ledger and sessions are verified first. Then everything that this installation's logs of the
project gave is taken out of the store and put in anew, in one transaction: a store that is being
rebuilt is the old one until it is the new one. Sessions that do not verify are named and passed
over, and the exit code is 1.

Examples:
  lodestar store rebuild
  lodestar store rebuild --project web --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RebuildArgs {}

pub(crate) fn run(args: &BeliefsArgs, app: &mut App) -> Result<Exit, Failure> {
    let beliefs = Beliefs::find(args, app)?;
    let mut store = beliefs.store()?;
    let progress = Progress::start(!app.json);
    let followed = lodestar_replay::rebuild(
        store.as_mut(),
        &beliefs.keyring(),
        &beliefs.log,
        &beliefs.trust,
        &mut |at| progress.at(at.step, at.done, at.total),
    )?;
    drop(progress);
    let tally = store.tally()?;
    let rows: u64 = tally.iter().map(|tally| tally.rows).sum();
    if app.json {
        let left = followed.left.iter().map(|waiting| {
            json!({
                "belief": waiting.change.belief,
                "session": waiting.at.log.session,
                "seq": waiting.at.seq,
            })
        });
        app.out.json(&json!({
            "project": beliefs.log.project(),
            "store": store.describe(),
            "events": followed.events,
            "sessions": followed.sessions,
            "rows": rows,
            "refused": followed.refused,
            "left": left.collect::<Vec<_>>(),
            "redacted": followed.redacted,
        }))?;
    } else {
        print(&store.describe(), rows, &followed, &mut app.out)?;
    }
    Ok(match followed.refused.is_empty() {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}

fn print(store: &str, rows: u64, followed: &Followed, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    writeln!(
        out,
        "{} rebuilt from {} in {}: {}",
        paint.good("✓"),
        words::count(followed.events, "event"),
        words::count(followed.sessions, "session"),
        words::count(rows, "row")
    )?;
    writeln!(out, "  {}", paint.dim(inert::line(store, 200)))?;
    for left in &followed.left {
        writeln!(
            out,
            "{} {}#{} changes {}, which had changed otherwise before: not applied",
            paint.warn("!"),
            left.at.log.session,
            left.at.seq,
            left.change.belief
        )?;
    }
    for (session, seq) in &followed.redacted {
        writeln!(
            out,
            "{} {}#{seq} was redacted: what it superseded or set apart may stand again",
            paint.warn("!"),
            inert::line(session, 128)
        )?;
    }
    for refused in &followed.refused {
        writeln!(
            out,
            "{} session `{}` does not count: {}",
            paint.bad("✗"),
            inert::line(&refused.session, 128),
            inert::whole(&refused.reason)
        )?;
    }
    Ok(())
}
