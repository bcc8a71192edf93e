//! `lodestar harness calibrate`: how well the confidence of beliefs matches what came of them.

use std::io::Write as _;

use clap::Args;
use lodestar_core::calibration::{ClassReport, measure};
use lodestar_replay::calibration::{
    CALIBRATION_PURPOSE, CALIBRATION_SESSIONS, Collected, Computed, samples,
};
use lodestar_report::calibration::{HEADINGS, numbers, summary};
use serde_json::{Value, json};

use crate::beliefs::{Beliefs, BeliefsArgs, local_actor};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;
use crate::progress::Progress;

const AFTER_HELP: &str = "\
Every belief that was settled counts once: by direct evidence, by a person, by a belief that took
its place, or by what came of actions that rested on it. The project's logs are verified first;
sessions that do not hold, or that had a defence taken out, are named and left out.

The result is recorded in a session of its own. Measuring changes nothing else: sessions that name
the sentinel `calibration-flag` go by the latest record from the next time they are opened.

Examples:
  lodestar harness calibrate
  lodestar harness calibrate --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    beliefs: BeliefsArgs,
}

pub(crate) fn run(args: &CalibrateArgs, app: &mut App) -> Result<Exit, Failure> {
    let beliefs = Beliefs::find(&args.beliefs, app)?;
    let progress = Progress::start(!app.json);
    let collected = samples(
        &beliefs.keyring(),
        &beliefs.log,
        &beliefs.trust,
        &mut |at| progress.at(at.step, at.done, at.total),
    )?;
    drop(progress);
    let Collected {
        samples,
        sessions,
        refused,
    } = collected;
    let computed = Computed {
        report: measure(samples),
        sessions,
        refused,
    };
    let (actor, prefix) = (local_actor(), CALIBRATION_SESSIONS);
    let (session, seq) =
        beliefs.in_session_as(prefix, CALIBRATION_PURPOSE, actor, app, |session| {
            let seq = session.calibrated(&computed)?;
            Ok((session.id().clone(), seq))
        })?;
    if app.json {
        let mut value = serde_json::to_value(&computed).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("project".to_owned(), json!(beliefs.log.project()));
            fields.insert(
                "recorded".to_owned(),
                json!({"session": session, "seq": seq}),
            );
        }
        app.out.json(&value)?;
        return Ok(Exit::Done);
    }
    print(&computed, app)?;
    let place = format!("{session}#{seq}");
    writeln!(app.out, "{} recorded as {place}", app.out.paint.dim("·"))?;
    Ok(Exit::Done)
}

fn cells(class: &ClassReport) -> [String; 7] {
    let [n, confidence, accuracy, ece, brier, gap] = numbers(class);
    let name = inert::line(class.class.as_str(), 60);
    [name, n, confidence, accuracy, ece, brier, gap]
}

fn print(computed: &Computed, app: &mut App) -> Result<(), Failure> {
    for refused in &computed.refused {
        app.note(format!(
            "session `{}` does not count: {}",
            inert::line(&refused.session, 80),
            inert::line(&refused.reason, 300)
        ));
    }
    let report = &computed.report;
    let rows: Vec<_> = report.classes.iter().map(cells).collect();
    let paint = app.out.paint;
    if !rows.is_empty() {
        let mut widths = HEADINGS.map(str::len);
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().map(inert::width).sum());
            }
        }
        let line = |cells: &[String; 7]| {
            let mut line = String::new();
            for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let taken: usize = cell.chars().map(inert::width).sum();
                let room = " ".repeat(width.saturating_sub(taken));
                // Names stand to the left, numbers to the right.
                match at {
                    0 => line.extend([cell.as_str(), &room]),
                    _ => line.extend(["  ", &room, cell.as_str()]),
                }
            }
            line
        };
        writeln!(app.out, "{}", paint.dim(line(&HEADINGS.map(str::to_owned))))?;
        for (row, class) in rows.iter().zip(&report.classes) {
            let text = line(row);
            match class.flagged {
                true => writeln!(app.out, "{}", paint.warn(format!("{text}  flagged")))?,
                false => writeln!(app.out, "{text}")?,
            }
        }
    }
    writeln!(app.out, "{}", summary(computed))?;
    Ok(())
}
