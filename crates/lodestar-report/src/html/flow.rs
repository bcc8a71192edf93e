//! Two pictures: what came of what was read, and what came of what was to be done.

use std::io;

use lodestar_core::chain::Truth;

use super::Page;
use crate::model::Report;
use crate::text::Fates;
use crate::words;

const TOP: f64 = 34.0;
const HEIGHT: f64 = 150.0;
/// A band that stands for something is never thinner than this.
const THINNEST: f64 = 16.0;
const BETWEEN: f64 = 12.0;

/// One of the bands that leave a gate.
struct Band {
    class: &'static str,
    label: &'static str,
    many: u64,
}

pub(super) fn write(report: &Report, page: &mut Page<'_>) -> io::Result<()> {
    page.raw("<section>\n<h2>What happened</h2>\n<div class=\"flows\">\n")?;
    let (mut direct, mut read) = ([0_u64; 2], [0_u64; 2]);
    for belief in &report.beliefs.list {
        let side = match belief.was_read() {
            true => &mut read,
            false => &mut direct,
        };
        side[usize::from(belief.axes.truth != Truth::Supported)] += 1;
    }
    picture(
        page,
        "Everything that came back",
        report.counts.observations,
        "results",
        "firewall",
        &[
            Band {
                class: "good",
                label: "returned, supported",
                many: direct[0],
            },
            Band {
                class: "blue",
                label: "returned, not supported",
                many: direct[1],
            },
            Band {
                class: "bad",
                label: "only read, supported",
                many: read[0],
            },
            Band {
                class: "open",
                label: "only read, a rumour",
                many: read[1],
            },
        ],
    )?;
    page.raw("<figcaption>Results of calls become claims. What was only read stays a rumour, however often it is said.</figcaption>\n</figure>\n")?;
    let fates = Fates::of(report);
    picture(
        page,
        "Everything that was to be done",
        fates.total(),
        "calls",
        "gate",
        &[
            Band {
                class: "good",
                label: "allowed, ran",
                many: fates.ran_allowed,
            },
            Band {
                class: "blue",
                label: "held, ran with approval",
                many: fates.ran_approved,
            },
            Band {
                class: "bad",
                label: "may have run",
                many: fates.may_have_run,
            },
            Band {
                class: "open",
                label: "held, did not run",
                many: fates.held,
            },
            Band {
                class: "open",
                label: "proposed, not settled",
                many: fates.pending,
            },
            Band {
                class: "bad",
                label: "refused, did not run",
                many: fates.refused,
            },
            Band {
                class: "open",
                label: "redacted or unreadable",
                many: fates.untold,
            },
        ],
    )?;
    page.raw("<figcaption>What others see, or what cannot be taken back, waits for a person who signs for exactly that.</figcaption>\n</figure>\n</div>\n</section>\n")
}

fn picture(
    page: &mut Page<'_>,
    title: &'static str,
    many: u64,
    unit: &'static str,
    gate: &'static str,
    bands: &[Band],
) -> io::Result<()> {
    let shown: Vec<&Band> = bands.iter().filter(|band| band.many > 0).collect();
    let total: u64 = shown.iter().map(|band| band.many).sum();
    let room = HEIGHT - BETWEEN * shown.len().saturating_sub(1) as f64;
    let spare = (room - THINNEST * shown.len() as f64).max(0.0);
    page.raw("<figure>\n<svg viewBox=\"0 0 440 210\" role=\"img\" aria-label=\"")?;
    page.raw(title)?;
    page.raw("\">\n<text x=\"0\" y=\"14\">")?;
    page.raw(title)?;
    page.raw(
        "</text>\n<rect class=\"box\" x=\"0\" y=\"34\" width=\"78\" height=\"150\" rx=\"6\"/>",
    )?;
    page.tagged(
        "<text class=\"big\" x=\"39\" y=\"108\" text-anchor=\"middle\">",
        &words::number(many),
        "</text>",
    )?;
    page.raw("<text class=\"small\" x=\"39\" y=\"126\" text-anchor=\"middle\">")?;
    page.raw(unit)?;
    page.raw("</text>\n<line class=\"gate\" x1=\"138\" y1=\"28\" x2=\"138\" y2=\"191\"/>")?;
    page.raw("<text class=\"small\" x=\"138\" y=\"205\" text-anchor=\"middle\">")?;
    page.raw(gate)?;
    page.raw("</text>\n")?;
    let (mut from, mut to) = (TOP, TOP);
    for band in shown {
        let share = band.many as f64 / total.max(1) as f64;
        let height = THINNEST + spare * share;
        let begins = HEIGHT * share;
        one_band(page, band, (from, begins), (to, height))?;
        from += begins;
        to += height + BETWEEN;
    }
    page.raw("</svg>\n")
}

/// A band from the box on the left to its bar on the right.
fn one_band(
    page: &mut Page<'_>,
    band: &Band,
    (from, begins): (f64, f64),
    (to, height): (f64, f64),
) -> io::Result<()> {
    const LEFT: f64 = 78.0;
    const RIGHT: f64 = 198.0;
    const MIDDLE: f64 = (LEFT + RIGHT) / 2.0;
    page.raw("<path class=\"band ")?;
    page.raw(band.class)?;
    page.raw("\" d=\"M")?;
    let points = [
        (LEFT, from, "C"),
        (MIDDLE, from, " "),
        (MIDDLE, to, " "),
        (RIGHT, to, "V"),
    ];
    for (x, y, then) in points {
        page.length(x)?;
        page.raw(",")?;
        page.length(y)?;
        page.raw(then)?;
    }
    page.length(to + height)?;
    page.raw("C")?;
    let back = [
        (MIDDLE, to + height, " "),
        (MIDDLE, from + begins, " "),
        (LEFT, from + begins, "Z"),
    ];
    for (x, y, then) in back {
        page.length(x)?;
        page.raw(",")?;
        page.length(y)?;
        page.raw(then)?;
    }
    page.raw("\"/><rect class=\"")?;
    page.raw(band.class)?;
    page.raw("\" x=\"198\" y=\"")?;
    page.length(to)?;
    page.raw("\" width=\"8\" height=\"")?;
    page.length(height)?;
    page.raw("\"/><text x=\"")?;
    page.length(RIGHT + 16.0)?;
    page.raw("\" y=\"")?;
    page.length(to + height / 2.0 + 4.5)?;
    page.raw("\">")?;
    page.text(&words::number(band.many))?;
    page.raw(" ")?;
    page.raw(band.label)?;
    page.raw("</text>\n")
}
