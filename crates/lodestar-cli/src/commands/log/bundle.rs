//! `lodestar log verify --bundle`: do the proofs of a report hold, here, where its log is not?

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;

use lodestar_report::bundle::{Checked, check};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::trust::{self, LogKeys};
use crate::{inert, words};

pub(super) fn run(path: &Path, keys: &LogKeys, app: &mut App) -> Result<Exit, Failure> {
    let trust = keys.trust()?;
    let file = File::open(path).map_err(Failure::io(path))?;
    let checked = check(&mut BufReader::new(file), &trust).map_err(Failure::io(path))?;
    if app.json {
        app.out
            .json(&json!({"holds": checked.holds(), "bundle": checked}))?;
    } else {
        print(&checked, &mut app.out)?;
    }
    Ok(match checked.holds() {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}

fn print(checked: &Checked, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    for fault in &checked.problems {
        let mark = paint.bad("✗");
        writeln!(out, "{mark} line {}: {}", fault.line, fault.problem)?;
    }
    if !checked.withheld.is_empty() {
        let some: Vec<String> = checked
            .withheld
            .iter()
            .take(20)
            .map(|(seq, level)| format!("#{seq} ({level})"))
            .collect();
        let rest = match checked.withheld.len().saturating_sub(some.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let line = format!(
            "withheld as above the ceiling, their heads are proven: {}{rest}",
            some.join(", ")
        );
        writeln!(out, "{} {line}", paint.dim("·"))?;
    }
    if !checked.redacted.is_empty() {
        let seqs: Vec<String> = checked
            .redacted
            .iter()
            .map(|seq| format!("#{seq}"))
            .collect();
        writeln!(
            out,
            "{} redacted in the log: {}",
            paint.dim("·"),
            seqs.join(", ")
        )?;
    }
    for remark in &checked.remarks {
        writeln!(out, "{} {}", paint.dim("·"), inert::whole(remark))?;
    }
    let of = match (&checked.project, &checked.session) {
        (Some(project), Some(session)) => format!("session {session} of project {project}"),
        _ => "a session".to_owned(),
    };
    let events = words::count(checked.events, "event");
    let line = match (checked.holds(), checked.size, checked.closed_at) {
        (true, Some(size), closed) => {
            let closed = closed.map(|at| format!(", closed {}", words::seconds(at)));
            paint.good(format!(
                "✓ {of}: {events} proven under the signed checkpoint of {}{}",
                words::number(size),
                closed.unwrap_or_default()
            ))
        }
        _ => paint.bad(format!(
            "✗ {of}: {}",
            words::count(checked.problems.len() as u64, "problem")
        )),
    };
    writeln!(out, "{line}")?;
    let mut problems = checked.problems.iter();
    if problems.any(|fault| trust::is_unknown_key(&fault.problem)) {
        writeln!(out, "{} {}", paint.dim("help:"), trust::GIVE_KEY)?;
    }
    Ok(())
}
