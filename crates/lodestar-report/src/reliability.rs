//! A reliability plot: one panel for each class, what was said across, what came of it upwards.
//!
//! The picture is one SVG element that needs nothing else: no script, no font, no colour of its own, so it takes
//! that of the page around it, light or dark. Names in it come from the log and are made inert.

use std::fmt::Write as _;

use lodestar_core::calibration::{CalibrationReport, ClassReport};

/// The side of a panel's square, from 0 to 1.
const SIDE: f64 = 160.0;
/// Room around it: for its heading, and for numbers and names of the axes.
const ABOVE: f64 = 44.0;
const BELOW: f64 = 42.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 18.0;
/// Panels in a row: three are as wide as a page of text.
const ACROSS: usize = 3;
/// Most classes that are drawn, flagged ones first; the numbers of all stand in the report.
const MAX_PANELS: usize = 24;
/// The smallest and the largest dot.
const DOT: (f64, f64) = (3.0, 9.0);

/// The plot, as text of one `svg` element.
pub fn svg(report: &CalibrationReport) -> String {
    let mut classes: Vec<_> = report.classes.iter().collect();
    classes.sort_by_key(|class| !class.flagged);
    let left_out = classes.len().saturating_sub(MAX_PANELS);
    classes.truncate(MAX_PANELS);
    let (columns, rows) = (
        classes.len().clamp(1, ACROSS),
        classes.len().div_ceil(ACROSS).max(1),
    );
    let (width, height) = (LEFT + SIDE + RIGHT, ABOVE + SIDE + BELOW);
    let foot = if left_out > 0 { 24.0 } else { 0.0 };
    let (wide, high) = (columns as f64 * width, rows as f64 * height + foot);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" \
         height=\"{high}\" style=\"max-width:100%;height:auto\" role=\"img\" \
         aria-labelledby=\"reliability-title reliability-desc\" fill=\"none\" stroke=\"none\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <title id=\"reliability-title\">How well confidence matches what came of it</title>\n\
         <desc id=\"reliability-desc\">{}</desc>\n",
        escaped(&in_words(report))
    );
    if classes.is_empty() {
        text(&mut out, LEFT, ABOVE, "start", "nothing was measured yet");
    }
    for (at, class) in classes.iter().enumerate() {
        let (x, y) = (
            (at % ACROSS) as f64 * width + LEFT,
            (at / ACROSS) as f64 * height + ABOVE,
        );
        panel(&mut out, class, x, y);
    }
    if left_out > 0 {
        let more = format!("and {left_out} more classes; the report has their numbers");
        text(&mut out, LEFT, high - 8.0, "start", &more);
    }
    out.push_str("</svg>\n");
    out
}

/// For whoever hears the picture.
fn in_words(report: &CalibrationReport) -> String {
    if report.classes.is_empty() {
        return "Nothing was measured yet.".to_owned();
    }
    let classes = report.classes.iter().take(MAX_PANELS).map(|class| {
        let flagged = if class.flagged { ", flagged" } else { "" };
        format!(
            "{}: {} samples, mean confidence {:.2}, came true {:.2}, calibration error {:.2}{flagged}.",
            class.class.shown(),
            class.n,
            class.confidence.get(),
            class.accuracy.get(),
            class.ece.get()
        )
    });
    classes.collect::<Vec<_>>().join(" ")
}

fn panel(out: &mut String, class: &ClassReport, x: f64, y: f64) {
    let bottom = y + SIDE;
    put(out, format_args!("<g fill=\"currentColor\">"));
    let flag = if class.flagged { "flagged: " } else { "" };
    let name = shortened(&format!("{flag}{}", class.class.shown()));
    let weight = if class.flagged { "bold" } else { "normal" };
    put(
        out,
        format_args!(
            "<text x=\"{x}\" y=\"{}\" font-weight=\"{weight}\">{}</text>",
            y - 22.0,
            escaped(&name)
        ),
    );
    let numbers = format!(
        "n {} · ece {:.3} · gap {:+.3}",
        class.n,
        class.ece.get(),
        class.gap.get()
    );
    text(out, x, y - 8.0, "start", &numbers);
    put(
        out,
        format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" \
             stroke=\"currentColor\" stroke-opacity=\"0.5\"/>"
        ),
    );
    // Where everything stands that is as sure as it should be.
    put(
        out,
        format_args!(
            "<line x1=\"{x}\" y1=\"{bottom}\" x2=\"{}\" y2=\"{y}\" stroke=\"currentColor\" \
             stroke-opacity=\"0.5\" stroke-dasharray=\"4 4\"/>",
            x + SIDE
        ),
    );
    for (share, label) in [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] {
        text(out, x + share * SIDE, bottom + 14.0, "middle", label);
        text(out, x - 6.0, bottom - share * SIDE + 4.0, "end", label);
    }
    text(out, x + SIDE / 2.0, bottom + 29.0, "middle", "confidence");
    put(
        out,
        format_args!(
            "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">came true</text>",
            x - 30.0,
            y + SIDE / 2.0
        ),
    );
    dots(out, class, x, bottom);
    put(out, format_args!("</g>"));
}

/// One dot for each bin with samples; its area goes with their number.
fn dots(out: &mut String, class: &ClassReport, x: f64, bottom: f64) {
    let most = class.bins.iter().map(|bin| bin.n).max().unwrap_or(0).max(1);
    for bin in &class.bins {
        let (Some(said), Some(came)) = (bin.confidence, bin.accuracy) else {
            continue;
        };
        let share = (bin.n as f64 / most as f64).sqrt();
        let radius = DOT.0 + (DOT.1 - DOT.0) * share;
        let samples = if bin.n == 1 { "sample" } else { "samples" };
        put(
            out,
            format_args!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill-opacity=\"0.75\"><title>confidence {:.2}, \
                 came true {:.2}, {} {samples}</title></circle>",
                x + said.get() * SIDE,
                bottom - came.get() * SIDE,
                said.get(),
                came.get(),
                bin.n
            ),
        );
    }
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    put(
        out,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"currentColor\">{}</text>",
            escaped(words)
        ),
    );
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line}").expect("INVARIANT: writing to a string does not fail");
}

/// A name that fits above its panel.
fn shortened(name: &str) -> String {
    const FITS: usize = 30;
    match name.char_indices().nth(FITS) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// As character data: nothing of it is markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that unwraps an error has failed"
    )]

    use lodestar_core::calibration::{Came, Sample, measure};
    use lodestar_core::chain::Confidence;
    use lodestar_core::name::CalibrationClass;

    use super::*;

    fn sample(class: &str, confidence: f64, came: Came) -> Sample {
        Sample {
            class: CalibrationClass::new(class).unwrap(),
            confidence: Confidence::new(confidence).unwrap(),
            came,
        }
    }

    #[test]
    fn each_bin_with_samples_is_a_dot_where_its_numbers_are() {
        let mut samples = vec![sample("extract/content", 0.5, Came::True); 2];
        samples.extend(vec![sample("extract/content", 1.0, Came::False); 8]);
        let plot = svg(&measure(samples));
        assert_eq!(plot.matches("<circle").count(), 2, "{plot}");
        // Half way across and at the very top; to the right and at the bottom.
        let (middle, right) = (LEFT + SIDE / 2.0, LEFT + SIDE);
        assert!(plot.contains(&format!("cx=\"{middle:.1}\" cy=\"{ABOVE:.1}\"")));
        assert!(plot.contains(&format!("cx=\"{right:.1}\" cy=\"{:.1}\"", ABOVE + SIDE)));
        assert!(plot.contains("flagged: extract/content"));
        assert!(plot.contains("confidence 0.50, came true 1.00, 2 samples"));
    }

    #[test]
    fn it_takes_its_colour_from_the_page_and_loads_nothing() {
        let plot = svg(&measure([sample("a", 0.9, Came::True)]));
        assert!(plot.contains("currentColor"));
        for wrong in ["#", "rgb", "url(", "href", "<script", "<style", "http://"] {
            let plot = plot.replace("http://www.w3.org/2000/svg", "");
            assert!(!plot.contains(wrong), "{wrong}: {plot}");
        }
        assert!(plot.contains("role=\"img\"") && plot.contains("<desc id=\"reliability-desc\">"));
    }

    #[test]
    fn a_hostile_name_is_text() {
        let hostile = "</text><script>alert('x')</script>\"&";
        let plot = svg(&measure([sample(hostile, 0.9, Came::True)]));
        assert!(!plot.contains("<script"), "{plot}");
        assert!(plot.contains("&lt;/text&gt;&lt;script&gt;"), "{plot}");
        assert_eq!(
            plot.matches("<text").count(),
            plot.matches("</text>").count()
        );
    }

    #[test]
    fn nothing_and_very_much_are_drawn_too() {
        let nothing = svg(&measure([]));
        assert!(nothing.contains("nothing was measured yet"));
        let many = (0..100).map(|at| sample(&format!("class/{at}"), 0.9, Came::True));
        let plot = svg(&measure(many));
        assert_eq!(plot.matches("<rect").count(), MAX_PANELS);
        assert!(plot.contains("and 76 more"));
    }
}
