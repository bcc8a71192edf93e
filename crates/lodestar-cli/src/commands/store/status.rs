//! `lodestar store status`: every row against the log it names.

use std::io::Write as _;

use clap::Args;
use lodestar_replay::StoreReport;
use serde_json::{Value, json};

use crate::beliefs::{Beliefs, BeliefsArgs};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::progress::Progress;
use crate::{inert, words};

const AFTER_HELP: &str = "\
Ledger and sessions are verified, folded once more into a store of their own, and both stores are
compared row by row, signatures included. Rows that were edited and sessions that do not count are
named. Exit code 1 if anything is wrong.

Examples:
  lodestar store status
  lodestar store status --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StatusArgs {}

pub(crate) fn run(args: &BeliefsArgs, app: &mut App) -> Result<Exit, Failure> {
    let beliefs = Beliefs::find(args, app)?;
    let mut store = beliefs.existing_store()?;
    let progress = Progress::start(!app.json);
    let report = lodestar_replay::examine(
        store.as_mut(),
        &beliefs.keyring(),
        &beliefs.log,
        &beliefs.trust,
        &mut |at| progress.at(at.step, at.done, at.total),
    )?;
    drop(progress);
    if app.json {
        let mut value = serde_json::to_value(&report).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("project".to_owned(), json!(beliefs.log.project()));
            fields.insert("sound".to_owned(), json!(report.is_sound()));
        }
        app.out.json(&value)?;
    } else {
        print(&report, &mut app.out)?;
    }
    Ok(match report.is_sound() {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}

fn print(report: &StoreReport, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let store = inert::line(&report.store, 200);
    writeln!(out, "{}  {store}", paint.dim("store "))?;
    let rows = words::count(report.rows, "row");
    let events = words::count(report.events, "event");
    let held = format!("{rows}; follows {events} of this project's log");
    writeln!(out, "{}  {held}", paint.dim("holds "))?;
    for tally in &report.tally {
        writeln!(
            out,
            "{:>8}  truth={} · retrieval={} · security={} · freshness={}",
            words::number(tally.rows),
            inert::line(&tally.truth, 20),
            inert::line(&tally.retrieval, 20),
            inert::line(&tally.security, 20),
            inert::line(&tally.freshness, 20)
        )?;
    }
    for finding in &report.findings {
        let mark = match finding.is_problem() {
            true => paint.bad("✗"),
            false => paint.warn("!"),
        };
        writeln!(out, "{mark} {}", inert::whole(&finding.to_string()))?;
    }
    match report.is_sound() {
        true => writeln!(out, "{} the store says what the log says", paint.good("✓"))?,
        false => writeln!(
            out,
            "{} the store or the log is not as it was written; `lodestar log verify` checks the log, `lodestar store rebuild` makes the store again",
            paint.bad("✗")
        )?,
    }
    Ok(())
}
