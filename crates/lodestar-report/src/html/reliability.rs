//! A reliability plot: one panel for each class, what was said across, what came of it upwards.
//!
//! Each panel is an `svg` of its own, so that as many stand beside each other as there is room for. Its name for
//! those who hear it is its `title`: so there is no `id` that a second plot on the page could have too.

use std::io;

use lodestar_core::calibration::{CalibrationReport, ClassReport};

use super::Page;
use crate::words;

/// The side of a panel's square, from 0 to 1, and where it begins. Around it is room for the heading, and for
/// numbers and names of the axes; the sizes of the `svg` in [`panel`] follow from these.
const SIDE: f64 = 160.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 44.0;
/// Most classes that are drawn, flagged ones first; the table beneath has the numbers of all.
const MAX_PANELS: usize = 24;
/// The smallest and the largest dot.
const DOT: (f64, f64) = (3.0, 9.0);

/// Draws what was measured.
pub(super) fn plot(report: &CalibrationReport, page: &mut Page<'_>) -> io::Result<()> {
    let mut classes: Vec<_> = report.classes.iter().collect();
    if classes.is_empty() {
        return page.raw("<p class=\"dim\">Nothing was measured yet, so there is no plot.</p>\n");
    }
    classes.sort_by_key(|class| !class.flagged);
    let left_out = classes.len().saturating_sub(MAX_PANELS);
    classes.truncate(MAX_PANELS);
    page.raw("<figure>\n<div class=\"plots\">\n")?;
    for class in classes {
        panel(class, page)?;
    }
    page.raw("</div>\n<figcaption>How well confidence matches what came of it. A dot is a bin with samples, and larger with more of them. On the dashed line is what is as sure as it should be; below it is what is too sure.")?;
    if left_out > 0 {
        let more = words::number(left_out as u64);
        page.tagged(" And ", &more, " more classes, which are not drawn.")?;
    }
    page.raw("</figcaption>\n</figure>\n")
}

fn panel(class: &ClassReport, page: &mut Page<'_>) -> io::Result<()> {
    const BOTTOM: f64 = TOP + SIDE;
    page.raw("<svg viewBox=\"0 0 224 246\" role=\"img\">\n<title>")?;
    page.text(&in_words(class))?;
    page.raw(match class.flagged {
        true => "</title>\n<text class=\"bad\" x=\"4\" y=\"18\">flagged: ",
        false => "</title>\n<text x=\"4\" y=\"18\">",
    })?;
    let room = if class.flagged { 20 } else { 29 };
    page.tagged("", &shortened(class.class.as_str(), room), "</text>\n")?;
    let numbers = format!(
        "n {} · ece {:.3} · gap {:+.3}",
        words::number(class.n),
        class.ece.get(),
        class.gap.get()
    );
    page.tagged(
        "<text class=\"small\" x=\"4\" y=\"33\">",
        &numbers,
        "</text>\n",
    )?;
    page.raw("<rect class=\"box\" x=\"46\" y=\"44\" width=\"160\" height=\"160\"/>")?;
    // Where everything stands that is as sure as it should be.
    page.raw("<line class=\"gate\" x1=\"46\" y1=\"204\" x2=\"206\" y2=\"44\"/>\n")?;
    for (share, label) in [(0.0, "0"), (0.5, "0.5"), (1.0, "1")] {
        page.raw("<text class=\"small\" text-anchor=\"middle\" y=\"219\" x=\"")?;
        page.length(LEFT + share * SIDE)?;
        page.tagged("\">", label, "</text>")?;
        page.raw("<text class=\"small\" text-anchor=\"end\" x=\"40\" y=\"")?;
        page.length(BOTTOM - share * SIDE + 4.0)?;
        page.tagged("\">", label, "</text>\n")?;
    }
    page.raw("<text class=\"small\" text-anchor=\"middle\" x=\"126\" y=\"236\">confidence</text>")?;
    page.raw("<text class=\"small\" text-anchor=\"middle\" transform=\"translate(14 124) rotate(-90)\">came true</text>\n")?;
    dots(class, page)?;
    page.raw("</svg>\n")
}

/// One dot for each bin with samples; its area goes with their number.
fn dots(class: &ClassReport, page: &mut Page<'_>) -> io::Result<()> {
    let most = class.bins.iter().map(|bin| bin.n).max().unwrap_or(0).max(1);
    for bin in &class.bins {
        let (Some(said), Some(came)) = (bin.confidence, bin.accuracy) else {
            continue;
        };
        let share = (bin.n as f64 / most as f64).sqrt();
        page.raw(match class.flagged {
            true => "<circle class=\"dot bad\" cx=\"",
            false => "<circle class=\"dot blue\" cx=\"",
        })?;
        page.length(LEFT + said.get() * SIDE)?;
        page.raw("\" cy=\"")?;
        page.length(TOP + SIDE - came.get() * SIDE)?;
        page.raw("\" r=\"")?;
        page.length(DOT.0 + (DOT.1 - DOT.0) * share)?;
        let what = format!(
            "confidence {:.2}, came true {:.2}, {}",
            said.get(),
            came.get(),
            words::count(bin.n, "sample")
        );
        page.tagged("\"><title>", &what, "</title></circle>\n")?;
    }
    Ok(())
}

/// For whoever hears the picture.
fn in_words(class: &ClassReport) -> String {
    let flagged = if class.flagged { ", flagged" } else { "" };
    format!(
        "{}: {}, mean confidence {:.2}, came true {:.2}, calibration error {:.2}{flagged}",
        class.class.as_str(),
        words::count(class.n, "sample"),
        class.confidence.get(),
        class.accuracy.get(),
        class.ece.get()
    )
}

/// A name that fits above its panel; the table has it whole.
fn shortened(name: &str, most: usize) -> String {
    match name.char_indices().nth(most) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that unwraps an error has failed"
    )]

    use std::collections::HashMap;

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

    fn drawn(samples: impl IntoIterator<Item = Sample>) -> String {
        let mut out = Vec::new();
        let mut page = Page {
            out: &mut out,
            anchors: HashMap::new(),
        };
        plot(&measure(samples), &mut page).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_bin_with_samples_is_a_dot_where_its_numbers_are() {
        let mut samples = vec![sample("extract/content", 0.5, Came::True); 2];
        samples.extend(vec![sample("extract/content", 1.0, Came::False); 8]);
        let plot = drawn(samples);
        assert_eq!(plot.matches("<circle").count(), 2, "{plot}");
        // Half way across and at the very top; to the right and at the bottom.
        let (middle, right) = (LEFT + SIDE / 2.0, LEFT + SIDE);
        assert!(plot.contains(&format!("cx=\"{middle:.1}\" cy=\"{TOP:.1}\"")));
        assert!(plot.contains(&format!("cx=\"{right:.1}\" cy=\"{:.1}\"", TOP + SIDE)));
        assert!(plot.contains("flagged: extract/content"));
        assert!(plot.contains("confidence 0.50, came true 1.00, 2 samples"));
    }

    #[test]
    fn the_square_is_where_the_dots_are() {
        let plot = drawn([sample("a", 0.9, Came::True)]);
        let square = format!("x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"");
        assert!(plot.contains(&square), "{plot}");
    }

    #[test]
    fn it_has_no_colour_of_its_own_loads_nothing_and_names_no_place_of_the_page() {
        let plot = drawn([sample("a", 0.9, Came::True)]);
        for wrong in [
            "#", "rgb", "url(", "href", "<script", "style", "http", "id=",
        ] {
            assert!(!plot.contains(wrong), "{wrong}: {plot}");
        }
        assert!(plot.contains("role=\"img\">\n<title>a: 1 sample, mean confidence 0.90"));
    }

    #[test]
    fn a_hostile_name_is_text() {
        let hostile = "</text><script>alert('x')</script>\"&\u{202e}";
        let plot = drawn([sample(hostile, 0.9, Came::True)]);
        assert!(
            !plot.contains("<script") && !plot.contains('\u{202e}'),
            "{plot}"
        );
        assert!(plot.contains("&lt;/text&gt;&lt;script&gt;"), "{plot}");
        assert_eq!(
            plot.matches("<text").count(),
            plot.matches("</text>").count()
        );
    }

    #[test]
    fn nothing_and_very_much_are_drawn_too_and_what_is_flagged_comes_first() {
        assert!(drawn([]).contains("Nothing was measured yet"));
        let many = (0..100).map(|at| sample(&format!("class/{at}"), 0.9, Came::True));
        let off = vec![sample("off", 0.9, Came::False); 5];
        let plot = drawn(many.chain(off));
        assert_eq!(plot.matches("<svg").count(), MAX_PANELS);
        assert!(plot.contains("And 77 more"), "{plot}");
        let first = plot.find("<text").unwrap();
        assert!(plot[first..].starts_with("<text class=\"bad\" x=\"4\" y=\"18\">flagged: off"));
    }
}
