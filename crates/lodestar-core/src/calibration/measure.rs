//! The numbers of a report: none of them can be anything but a number in its range.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

/// A number from −1 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Gap(f64);

/// A number that nothing measures.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("`{0}` is out of range for a measured share")]
pub struct NotMeasured(f64);

impl Share {
    /// A part of so many. INVARIANT: there is at least one, and the part is neither below 0 nor above them,
    /// but for what adding up has rounded.
    pub(super) fn of(part: f64, of: u64) -> Self {
        debug_assert!(of > 0 && part.is_finite());
        Self((part / of as f64).clamp(0.0, 1.0))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Gap {
    pub(super) fn between(confidence: Share, accuracy: Share) -> Self {
        // Adding zero turns −0 into 0.
        Self(confidence.0 - accuracy.0 + 0.0)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Share {
    type Error = NotMeasured;

    fn try_from(number: f64) -> Result<Self, NotMeasured> {
        let is_share = (0.0..=1.0).contains(&number);
        is_share
            .then_some(Self(number + 0.0))
            .ok_or(NotMeasured(number))
    }
}

impl TryFrom<f64> for Gap {
    type Error = NotMeasured;

    fn try_from(number: f64) -> Result<Self, NotMeasured> {
        let is_gap = (-1.0..=1.0).contains(&number);
        is_gap
            .then_some(Self(number + 0.0))
            .ok_or(NotMeasured(number))
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl From<Gap> for f64 {
    fn from(gap: Gap) -> Self {
        gap.0
    }
}
