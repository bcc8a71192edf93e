//! A calibration as people read it, whatever shows it: the columns of its table, its numbers, and what it comes to.

use lodestar_core::calibration::{ClassReport, MIN_SAMPLES, OFF_BY};
use lodestar_replay::calibration::Computed;

use crate::words;

/// What stands above the columns: the class, and then [`numbers`] of it.
pub const HEADINGS: [&str; 7] = [
    "class",
    "n",
    "confidence",
    "came true",
    "ece",
    "brier",
    "gap",
];

/// The numbers of a class, in the order of [`HEADINGS`].
pub fn numbers(class: &ClassReport) -> [String; 6] {
    let share = |number: f64| format!("{number:.3}");
    [
        words::number(class.n),
        share(class.confidence.get()),
        share(class.accuracy.get()),
        share(class.ece.get()),
        share(class.brier.get()),
        format!("{:+.3}", class.gap.get()),
    ]
}

/// `10 samples from 1 session; 1 class is flagged (at least 5 samples, and off by 0.1 or more)`
pub fn summary(computed: &Computed) -> String {
    let samples = words::count(computed.report.samples(), "sample");
    let sessions = words::count(computed.sessions, "session");
    let flagged = match computed.report.flagged().count() {
        0 => "no class is flagged".to_owned(),
        1 => "1 class is flagged".to_owned(),
        several => format!("{several} classes are flagged"),
    };
    format!(
        "{samples} from {sessions}; {flagged} (at least {MIN_SAMPLES} samples, and off by {OFF_BY} or more)"
    )
}
