//! When what happened: one row per kind of thing, from the first event to the last. Long sessions are
//! gathered into columns, so that the picture stays as large as it is.

use std::io;

use super::Page;
use crate::model::{AnswerKind, Report};
use crate::text::{Fate, fate};
use crate::words;

const COLUMNS: u64 = 120;
const LEFT: f64 = 108.0;
const WIDTH: f64 = 760.0;
const ROW: f64 = 26.0;

struct Row {
    label: &'static str,
    class: &'static str,
    /// How many in each column, and the first event of them.
    marks: Vec<(u64, u64)>,
}

impl Row {
    fn new(label: &'static str, class: &'static str) -> Self {
        Self {
            label,
            class,
            marks: vec![(0, 0); COLUMNS as usize],
        }
    }

    fn mark(&mut self, seq: u64, events: u64) {
        let column = (seq * COLUMNS / events.max(1)).min(COLUMNS - 1);
        let mark = &mut self.marks[column as usize];
        if mark.0 == 0 {
            mark.1 = seq;
        }
        mark.0 += 1;
    }
}

pub(super) fn write(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    let rows = rows(report);
    page.raw(
        "<section>\n<h2>Timeline</h2>\n<figure>\n<div class=\"wide\"><svg viewBox=\"0 0 760 ",
    )?;
    page.length(ROW * rows.len() as f64 + 24.0)?;
    page.raw("\" role=\"img\" aria-label=\"Timeline\">\n")?;
    for (at, row) in rows.iter().enumerate() {
        one_row(row, ROW * at as f64, page)?;
    }
    let below = ROW * rows.len() as f64 + 16.0;
    let session = &report.session;
    for (x, anchor, time) in [
        (LEFT, "start", session.opened_at),
        (WIDTH, "end", session.last_at),
    ] {
        page.raw("<text class=\"small\" text-anchor=\"")?;
        page.raw(anchor)?;
        page.raw("\" x=\"")?;
        page.length(x)?;
        page.raw("\" y=\"")?;
        page.length(below)?;
        page.tagged("\">", &words::seconds(time), "</text>\n")?;
    }
    page.raw("</svg></div>\n<figcaption>In the order of the log; each mark leads to where it is told.</figcaption>\n</figure>\n</section>\n")
}

fn rows(report: &Report) -> Vec<Row> {
    let events = report.counts.events;
    let mut ran = Row::new("ran", "good");
    let mut held = Row::new("held", "open");
    let mut refused = Row::new("refused", "bad");
    let mut pending = Row::new("not settled", "open");
    let mut people = Row::new("people", "blue");
    let mut forged = Row::new("forged, alerts", "bad");
    for action in &report.actions {
        match fate(action) {
            Fate::Ran | Fate::MayHaveRun => ran.mark(action.seq, events),
            Fate::Held => held.mark(action.seq, events),
            Fate::Refused => refused.mark(action.seq, events),
            Fate::Pending => pending.mark(action.seq, events),
        }
    }
    for call in &report.refused_calls {
        refused.mark(call.seq, events);
    }
    for request in &report.requests {
        let counted = request.answers.iter();
        for answer in counted.filter(|one| one.kind != AnswerKind::Refused) {
            people.mark(answer.seq, events);
        }
    }
    for seq in report
        .forged
        .iter()
        .filter(|one| one.what.is_forged())
        .map(|one| one.seq)
    {
        forged.mark(seq, events);
    }
    for seq in report.alerts.iter().map(|one| one.seq) {
        forged.mark(seq, events);
    }
    let mut rows = vec![ran, held, refused, people, forged];
    if pending.marks.iter().any(|(many, _)| *many > 0) {
        rows.insert(2, pending);
    }
    rows
}

fn one_row(row: &Row, top: f64, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<text class=\"small\" x=\"0\" y=\"")?;
    page.length(top + 16.0)?;
    page.raw("\">")?;
    page.raw(row.label)?;
    page.raw("</text><line class=\"axis\" x1=\"108\" x2=\"760\" y1=\"")?;
    page.length(top + 13.0)?;
    page.raw("\" y2=\"")?;
    page.length(top + 13.0)?;
    page.raw("\"/>\n")?;
    let step = (WIDTH - LEFT) / COLUMNS as f64;
    for (column, (many, first)) in row.marks.iter().enumerate() {
        if *many == 0 {
            continue;
        }
        let anchor = page.anchors.get(first).copied();
        if let Some(anchor) = anchor {
            page.raw("<a href=\"#e")?;
            page.number(anchor)?;
            page.raw("\">")?;
        }
        page.raw("<rect rx=\"1.5\" class=\"")?;
        page.raw(row.class)?;
        page.raw("\" x=\"")?;
        page.length(LEFT + step * column as f64)?;
        page.raw("\" y=\"")?;
        page.length(top + 5.0)?;
        page.raw("\" width=\"")?;
        page.length((step - 1.0).max(4.0))?;
        page.raw("\" height=\"16\"><title>")?;
        page.text(&words::number(*many))?;
        page.raw(" from #")?;
        page.number(*first)?;
        page.raw(" on</title></rect>")?;
        page.raw(if anchor.is_some() { "</a>\n" } else { "\n" })?;
    }
    Ok(())
}
