//! An assigned strength between 0 and 1. It is shown and calibrated, and never enters truth.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Confidence(f64);

/// Why a number is not a confidence.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum ConfidenceError {
    /// Not a number.
    #[error("a confidence is a number from 0 to 1, this is not a number")]
    NotANumber,
    /// Below 0 or above 1.
    #[error("a confidence is a number from 0 to 1, found `{0}`")]
    OutOfRange(f64),
}

impl Confidence {
    /// What extractors assign to a tool's envelope and to content alike: how sure they are to have
    /// read correctly, which says nothing about whether what they read is true.
    pub const EXTRACTED: Self = Self(0.95);

    /// Takes a number from 0 to 1.
    pub fn new(value: f64) -> Result<Self, ConfidenceError> {
        if value.is_nan() {
            Err(ConfidenceError::NotANumber)
        } else if (0.0..=1.0).contains(&value) {
            // Adding zero turns −0 into 0, so that equal confidences have equal bytes.
            Ok(Self(value + 0.0))
        } else {
            Err(ConfidenceError::OutOfRange(value))
        }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

// INVARIANT: never NaN, so equality is total.
impl Eq for Confidence {}

impl PartialOrd for Confidence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Confidence {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl TryFrom<f64> for Confidence {
    type Error = ConfidenceError;

    fn try_from(value: f64) -> Result<Self, ConfidenceError> {
        Self::new(value)
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_from_zero_to_one_get_in() {
        for fine in [0.0, -0.0, 0.5, 1.0, f64::MIN_POSITIVE] {
            assert_eq!(Confidence::new(fine).unwrap().get(), fine);
        }
        assert!(Confidence::new(-0.0).unwrap().get().is_sign_positive());
        for bad in [-0.1, 1.000_000_1, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Confidence::new(bad), Err(ConfidenceError::OutOfRange(bad)));
        }
        assert_eq!(Confidence::new(f64::NAN), Err(ConfidenceError::NotANumber));
        assert_eq!(Confidence::new(0.95).unwrap(), Confidence::EXTRACTED);
    }

    #[test]
    fn json_is_checked() {
        assert_eq!(serde_json::from_str::<Confidence>("1").unwrap().get(), 1.0);
        for bad in ["1.5", "-1", "null", "\"0.5\""] {
            assert!(serde_json::from_str::<Confidence>(bad).is_err(), "{bad}");
        }
    }
}
