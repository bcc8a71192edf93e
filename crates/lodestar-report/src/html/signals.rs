//! What watches a session: sentinels, pins of tools, servers, calibration.

use std::io;

use lodestar_policy::Mode;

use super::sections::begin;
use super::{Page, reliability};
use crate::calibration::{HEADINGS, numbers, summary};
use crate::model::{Alert, Calibration, CalibrationInForce, Contained, Report};
use crate::{text, words};

pub(super) fn write(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    begin("Sentinel alerts", report.alerts.len(), page)?;
    page.raw("<ul class=\"plain\">\n")?;
    for alert in &report.alerts {
        alerted(alert, page)?;
    }
    page.raw("</ul>\n</section>\n")?;
    begin("Tool drift", report.drift.len(), page)?;
    page.raw("<ul class=\"plain\">\n")?;
    for drift in &report.drift {
        page.raw("<li>")?;
        page.cite(&[drift.seq])?;
        page.tagged(" <code>", &drift.tool, "</code> of ")?;
        page.tagged("<code>", &drift.server, "</code>: ")?;
        page.text(&drift.why)?;
        if !drift.refused.is_empty() {
            page.raw("; calls that did not run ")?;
            page.cite(&drift.refused)?;
        }
        page.raw("</li>\n")?;
    }
    page.raw("</ul>\n</section>\n")?;
    begin("Servers", report.servers.len(), page)?;
    page.raw("<ul class=\"plain\">\n")?;
    for server in &report.servers {
        page.raw("<li>")?;
        page.cite(&[server.seq])?;
        page.tagged(" <code>", &server.server, "</code>: ")?;
        page.text(&server.note)?;
        if let Some(contained) = &server.containment {
            confines(contained, page)?;
        }
        page.raw("</li>\n")?;
    }
    page.raw("</ul>\n</section>\n")?;
    calibration(report, page)
}

/// What was in force around a server, tried, and not held.
fn confines(contained: &Contained, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("\n<ul>\n")?;
    for (what, list) in text::confines(contained) {
        page.tagged("<li>", what, ": ")?;
        page.tagged("", &list.join(", "), "</li>\n")?;
    }
    for (what, list) in text::unconfined(contained) {
        for one in list {
            page.tagged("<li>", what, ": ")?;
            page.tagged("", one, "</li>\n")?;
        }
    }
    page.raw("</ul>\n")
}

fn alerted(alert: &Alert, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<li>")?;
    page.cite(&[alert.seq])?;
    page.tagged(
        " <span class=\"tag open\">",
        alert.severity.as_str(),
        "</span> ",
    )?;
    page.raw(match alert.mode {
        Mode::Observe => "<span class=\"tag flat\">only observes</span> ",
        Mode::Arbitrate => "",
    })?;
    page.tagged("<code>", &alert.sentinel, "</code>")?;
    if let Some(proposed) = alert.proposed {
        page.raw(" in the action of ")?;
        page.cite(&[proposed])?;
    }
    page.tagged(": ", &alert.saw, "</li>\n")
}

fn calibration(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    match &report.session.calibration {
        // That nothing was measured here is not all there is to say.
        Some(in_force) if report.calibrations.is_empty() => {
            page.raw("<section>\n<h2>Calibration</h2>\n")?;
            opened_under(in_force, page)?;
        }
        in_force => {
            begin("Calibration", report.calibrations.len(), page)?;
            if let Some(in_force) = in_force {
                opened_under(in_force, page)?;
            }
        }
    }
    for one in &report.calibrations {
        recorded(one, page)?;
    }
    page.raw("</section>\n")
}

/// Where the flags come from that the session's verdicts went by.
fn opened_under(in_force: &CalibrationInForce, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<p>Opened ")?;
    page.cite(&[in_force.seq])?;
    match &in_force.computed {
        None => page.raw(" before anybody had measured: no class was flagged.</p>\n")?,
        Some(at) => {
            page.tagged(
                " under the calibration of session <code>",
                at.session.as_str(),
                "</code>, event ",
            )?;
            page.number(at.seq)?;
            page.raw(match in_force.flagged.is_empty() {
                true => ", which flags no class",
                false => ", which flags",
            })?;
            for (place, class) in in_force.flagged.iter().enumerate() {
                page.raw(if place == 0 { " <code>" } else { ", <code>" })?;
                page.tagged("", class.as_str(), "</code>")?;
            }
            page.raw(". The report on that session has its numbers and the plot.</p>\n")?;
        }
    }
    for ignored in &in_force.ignored {
        page.tagged("<p>A later one did not count: ", ignored, "</p>\n")?;
    }
    Ok(())
}

/// A calibration of this session: the plot, and the numbers beneath it.
fn recorded(one: &Calibration, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<p>Recorded as ")?;
    page.cite(&[one.seq])?;
    page.tagged(" on ", &words::seconds(one.at), ": ")?;
    page.tagged("", &summary(&one.computed), ".</p>\n")?;
    reliability::plot(&one.computed.report, page)?;
    let classes = &one.computed.report.classes;
    if !classes.is_empty() {
        page.raw("<div class=\"wide\"><table class=\"numbers\">\n<thead><tr>")?;
        for heading in HEADINGS {
            page.tagged("<th scope=\"col\">", heading, "</th>")?;
        }
        page.raw("<th scope=\"col\">flagged</th></tr></thead>\n<tbody>\n")?;
        for class in classes {
            page.tagged(
                "<tr><th scope=\"row\"><code>",
                class.class.as_str(),
                "</code></th>",
            )?;
            for number in numbers(class) {
                page.tagged("<td>", &number, "</td>")?;
            }
            page.raw(match class.flagged {
                true => "<td><span class=\"tag bad\">flagged</span></td></tr>\n",
                false => "<td>no</td></tr>\n",
            })?;
        }
        page.raw("</tbody>\n</table></div>\n")?;
    }
    for refused in &one.computed.refused {
        page.tagged(
            "<p>Session <code>",
            &refused.session,
            "</code> did not count: ",
        )?;
        page.tagged("", &refused.reason, "</p>\n")?;
    }
    Ok(())
}
