//! Calibration: how well the confidence of beliefs matches what came of them, class by class.
//!
//! A [`Sample`] is a belief whose confidence was said first and whose truth was settled afterwards. What
//! settles one is not decided here. The numbers are those that are usual: the expected calibration error over
//! ten bins of equal width, the Brier score, and the gap between mean confidence and accuracy. All of it is
//! arithmetic: the order of samples changes no bit of the result.

mod measure;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::Confidence;
use crate::name::CalibrationClass;

pub use measure::{Gap, NotMeasured, Share};

/// Bins of equal width over confidence: the number that the literature compares with.
pub const BINS: usize = 10;

/// Fewest samples of a class that say anything: with fewer, one surprise is a fifth of the picture or more.
pub const MIN_SAMPLES: u64 = 5;

/// How far a class may be off, in error or in gap, before it is flagged: one bin's width. Less than that, and
/// which bin a confidence falls into decides.
pub const OFF_BY: f64 = 0.1;

/// What adding up rounds does not decide: a class that is off by exactly the limit is off.
const ROUNDING: f64 = 1e-9;

/// What came of a belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// It was borne out.
    True,
    /// It was not.
    False,
}

/// A belief whose truth was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// What it is measured with.
    pub class: CalibrationClass,
    /// How sure it had been.
    pub confidence: Confidence,
    /// What came of it.
    pub came: Came,
}

/// How well confidence matches what came of it, in each class. There is none for a class without samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenReport")]
pub struct CalibrationReport {
    /// In the order of their names.
    pub classes: Vec<ClassReport>,
}

/// One class. What is read and contradicts itself is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct ClassReport {
    /// Which.
    pub class: CalibrationClass,
    /// How many samples; at least one.
    pub n: u64,
    /// Mean confidence.
    pub confidence: Share,
    /// How many of them came true, as a share.
    pub accuracy: Share,
    /// Expected calibration error: how far confidence and accuracy are apart in a bin, on average over samples.
    pub ece: Share,
    /// Brier score: the mean square of how far each confidence was from what came.
    pub brier: Share,
    /// Mean confidence less accuracy: above 0 is too sure.
    pub gap: Gap,
    /// Whether it is off, and there are enough samples to say so.
    pub flagged: bool,
    /// From 0 to 1, for a plot; all of them, also those without samples.
    pub bins: Vec<Bin>,
}

/// One bin. It holds what is at least its lower bound and below its upper one; the last holds 1 too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// How many samples.
    pub n: u64,
    /// Their mean confidence; none without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Share>,
    /// How many of them came true, as a share; none without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Share>,
}

/// Why something is no report on a class.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportError {
    /// Nothing was measured.
    #[error("the report on class `{}` has no samples", .0.shown())]
    Empty(CalibrationClass),
    /// The bins do not hold its samples.
    #[error("the bins of class `{}` do not hold its samples", .0.shown())]
    Bins(CalibrationClass),
    /// The flag is not what follows from the numbers.
    #[error("the flag of class `{}` does not follow from its numbers", .0.shown())]
    Flag(CalibrationClass),
    /// A class stands there more than once.
    #[error("there is more than one report on class `{}`", .0.shown())]
    Twice(CalibrationClass),
    /// More samples than can be counted.
    #[error("the classes have more samples than can be counted")]
    TooMany,
}

/// How often something came true, and how often not.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    yes: u64,
    no: u64,
}

impl Tally {
    fn n(self) -> u64 {
        self.yes + self.no
    }
}

/// Measures samples. The order in which they come does not matter.
pub fn measure(samples: impl IntoIterator<Item = Sample>) -> CalibrationReport {
    let mut classes: BTreeMap<CalibrationClass, BTreeMap<Confidence, Tally>> = BTreeMap::new();
    for Sample {
        class,
        confidence,
        came,
    } in samples
    {
        let tally = classes.entry(class).or_default().entry(confidence);
        let tally = tally.or_default();
        match came {
            Came::True => tally.yes += 1,
            Came::False => tally.no += 1,
        }
    }
    let classes = classes.into_iter();
    CalibrationReport {
        classes: classes
            .map(|(class, tallies)| class_report(class, &tallies))
            .collect(),
    }
}

/// INVARIANT: there is at least one sample.
fn class_report(class: CalibrationClass, tallies: &BTreeMap<Confidence, Tally>) -> ClassReport {
    let mut bins = [Sums::default(); BINS];
    let (mut all, mut squares) = (Sums::default(), 0.0);
    for (confidence, tally) in tallies {
        bins[bin_of(*confidence)].add(*confidence, *tally);
        all.add(*confidence, *tally);
        let said = confidence.get();
        squares += tally.yes as f64 * (1.0 - said).powi(2) + tally.no as f64 * said.powi(2);
    }
    let n = all.n();
    let error: f64 = bins
        .iter()
        .map(|bin| (bin.said - bin.yes as f64).abs())
        .sum();
    let bins = bins.map(|bin| Bin {
        n: bin.n(),
        confidence: (bin.n() > 0).then(|| Share::of(bin.said, bin.n())),
        accuracy: (bin.n() > 0).then(|| Share::of(bin.yes as f64, bin.n())),
    });
    let (confidence, accuracy) = (Share::of(all.said, n), Share::of(all.yes as f64, n));
    let (ece, gap) = (Share::of(error, n), Gap::between(confidence, accuracy));
    ClassReport {
        class,
        n,
        confidence,
        accuracy,
        ece,
        brier: Share::of(squares, n),
        gap,
        flagged: is_flagged(n, ece, gap),
        bins: bins.to_vec(),
    }
}

fn is_flagged(n: u64, ece: Share, gap: Gap) -> bool {
    let is_off = |by: f64| by >= OFF_BY - ROUNDING;
    n >= MIN_SAMPLES && (is_off(ece.get()) || is_off(gap.get().abs()))
}

fn bin_of(confidence: Confidence) -> usize {
    // INVARIANT: from 0 to 1, so the cast neither wraps nor saturates.
    ((confidence.get() * BINS as f64) as usize).min(BINS - 1)
}

/// What was said and what came, added up.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    said: f64,
    yes: u64,
    no: u64,
}

impl Sums {
    fn add(&mut self, confidence: Confidence, tally: Tally) {
        self.said += confidence.get() * tally.n() as f64;
        self.yes += tally.yes;
        self.no += tally.no;
    }

    fn n(self) -> u64 {
        self.yes + self.no
    }
}

impl CalibrationReport {
    /// The classes that are off.
    pub fn flagged(&self) -> impl Iterator<Item = &CalibrationClass> {
        let flagged = self.classes.iter().filter(|class| class.flagged);
        flagged.map(|class| &class.class)
    }

    /// How many samples it rests on.
    pub fn samples(&self) -> u64 {
        let all = self.classes.iter().map(|class| class.n);
        all.fold(0, u64::saturating_add)
    }
}

/// A report, as it is read.
#[derive(Deserialize)]
struct WrittenReport {
    classes: Vec<ClassReport>,
}

impl TryFrom<WrittenReport> for CalibrationReport {
    type Error = ReportError;

    fn try_from(written: WrittenReport) -> Result<Self, ReportError> {
        let classes = written.classes;
        let mut known = BTreeSet::new();
        if let Some(twice) = classes.iter().find(|one| !known.insert(&one.class)) {
            return Err(ReportError::Twice(twice.class.clone()));
        }
        let mut samples = classes.iter().map(|one| one.n);
        if samples.try_fold(0u64, u64::checked_add).is_none() {
            return Err(ReportError::TooMany);
        }
        Ok(Self { classes })
    }
}

/// A report on a class, as it is read.
#[derive(Deserialize)]
struct Written {
    class: CalibrationClass,
    n: u64,
    confidence: Share,
    accuracy: Share,
    ece: Share,
    brier: Share,
    gap: Gap,
    flagged: bool,
    bins: Vec<Bin>,
}

impl TryFrom<Written> for ClassReport {
    type Error = ReportError;

    fn try_from(written: Written) -> Result<Self, ReportError> {
        let Written {
            class,
            n,
            confidence,
            accuracy,
            ece,
            brier,
            gap,
            flagged,
            bins,
        } = written;
        if n == 0 {
            return Err(ReportError::Empty(class));
        }
        let held = bins
            .iter()
            .try_fold(0u64, |all, bin| all.checked_add(bin.n));
        if bins.len() != BINS || held != Some(n) {
            return Err(ReportError::Bins(class));
        }
        if flagged != is_flagged(n, ece, gap) {
            return Err(ReportError::Flag(class));
        }
        Ok(Self {
            class,
            n,
            confidence,
            accuracy,
            ece,
            brier,
            gap,
            flagged,
            bins,
        })
    }
}

#[cfg(test)]
mod tests;
