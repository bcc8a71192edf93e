//! What watches a session: sentinels, pins of tools, servers, calibration.

use std::io;

use lodestar_policy::Mode;

use super::sections::{Out, end, title};
use super::{code, prose};
use crate::calibration::{HEADINGS, numbers, summary};
use crate::model::{Calibration, CalibrationInForce, Contained, Report};
use crate::text::{self, cite};
use crate::words;

pub(super) fn write(report: &Report, out: Out<'_>) -> io::Result<()> {
    title("Sentinel alerts", report.alerts.len(), out)?;
    for alert in &report.alerts {
        let observes = match alert.mode {
            Mode::Observe => ", only observes",
            Mode::Arbitrate => "",
        };
        let of = alert
            .proposed
            .map(|seq| format!(" in the action of #{seq}"));
        writeln!(
            out,
            "- #{} {}, {}{observes}{}: {}",
            alert.seq,
            code(&alert.sentinel),
            alert.severity,
            of.unwrap_or_default(),
            code(&alert.saw)
        )?;
    }
    end(report.alerts.len(), out)?;
    title("Tool drift", report.drift.len(), out)?;
    for drift in &report.drift {
        let refused = match drift.refused.is_empty() {
            true => String::new(),
            false => format!("; calls that did not run: {}", cite(&drift.refused)),
        };
        writeln!(
            out,
            "- #{} {} of {}: {}{refused}",
            drift.seq,
            code(&drift.tool),
            code(&drift.server),
            code(&drift.why)
        )?;
    }
    end(report.drift.len(), out)?;
    title("Servers", report.servers.len(), out)?;
    for server in &report.servers {
        let (name, note) = (code(&server.server), code(&server.note));
        writeln!(out, "- #{} {name}: {note}", server.seq)?;
        if let Some(contained) = &server.containment {
            confines(contained, out)?;
        }
    }
    end(report.servers.len(), out)?;
    calibration(report, out)
}

/// What was in force around a server, tried, and not held.
fn confines(contained: &Contained, out: Out<'_>) -> io::Result<()> {
    for (what, list) in text::confines(contained) {
        let list: Vec<String> = list.iter().map(|one| prose(one)).collect();
        writeln!(out, "  - {what}: {}", list.join(", "))?;
    }
    for (what, list) in text::unconfined(contained) {
        for one in list {
            writeln!(out, "  - {what}: {}", prose(one))?;
        }
    }
    Ok(())
}

fn calibration(report: &Report, out: Out<'_>) -> io::Result<()> {
    match &report.session.calibration {
        // That nothing was measured here is not all there is to say.
        Some(in_force) if report.calibrations.is_empty() => {
            writeln!(out, "## Calibration\n")?;
            opened_under(in_force, out)?;
        }
        in_force => {
            title("Calibration", report.calibrations.len(), out)?;
            if let Some(in_force) = in_force {
                opened_under(in_force, out)?;
            }
        }
    }
    for one in &report.calibrations {
        recorded(one, out)?;
    }
    Ok(())
}

/// Where the flags come from that the session's verdicts went by.
fn opened_under(in_force: &CalibrationInForce, out: Out<'_>) -> io::Result<()> {
    let opened = in_force.seq;
    match &in_force.computed {
        None => writeln!(
            out,
            "- Opened (#{opened}) before anybody had measured: no class was flagged."
        )?,
        Some(at) => {
            let flagged: Vec<String> = in_force
                .flagged
                .iter()
                .map(|class| code(class.as_str()))
                .collect();
            let flags = match flagged.is_empty() {
                true => "no class".to_owned(),
                false => flagged.join(", "),
            };
            writeln!(
                out,
                "- Opened (#{opened}) under the calibration of session {}, event {}, which flags {flags}. The report on that session has its numbers and, as HTML, the plot.",
                code(&at.session),
                at.seq
            )?;
        }
    }
    for ignored in &in_force.ignored {
        writeln!(out, "- A later one did not count: {}", prose(ignored))?;
    }
    writeln!(out)
}

/// A calibration of this session. A picture has no place in Markdown.
fn recorded(one: &Calibration, out: Out<'_>) -> io::Result<()> {
    let (at, summary) = (words::seconds(one.at), summary(&one.computed));
    let classes = &one.computed.report.classes;
    writeln!(out, "Recorded as #{} on {at}: {summary}.\n", one.seq)?;
    if !classes.is_empty() {
        writeln!(out, "| {} | flagged |", HEADINGS.join(" | "))?;
        writeln!(out, "|---|{}---|", "--:|".repeat(HEADINGS.len() - 1))?;
    }
    for class in classes {
        let flagged = if class.flagged { "**flagged**" } else { "no" };
        // A table ends its cells at bars, also in code.
        let name = code(class.class.as_str()).replace('|', "\\|");
        writeln!(
            out,
            "| {name} | {} | {flagged} |",
            numbers(class).join(" | ")
        )?;
    }
    if !classes.is_empty() {
        writeln!(
            out,
            "\nThe reliability plot of these classes stands in the HTML form of this report.\n"
        )?;
    }
    for refused in &one.computed.refused {
        writeln!(
            out,
            "- Session {} did not count: {}",
            code(&refused.session),
            prose(&refused.reason)
        )?;
    }
    end(one.computed.refused.len(), out)
}
