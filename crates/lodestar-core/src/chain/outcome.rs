//! Outcome: what came of an action.

use serde::{Deserialize, Serialize};

use crate::id::{ActionId, ObservationId, OutcomeId};
use crate::name::words;
use crate::time::Timestamp;

words! {
    /// How it went.
    pub enum OutcomeResult: "outcome result" {
        /// It did what it should.
        Success = "success",
        /// It did not.
        Failure = "failure",
        /// It did some of it.
        Partial = "partial",
        /// Nobody can tell.
        Unknown = "unknown",
    }
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its id.
    pub id: OutcomeId,
    /// The action.
    pub action: ActionId,
    /// How it went.
    pub result: OutcomeResult,
    /// What was observed of its effect.
    pub effect_observations: Vec<ObservationId>,
    /// How long it took, in microseconds.
    pub duration_micros: u64,
    /// When it was over.
    pub ended_at: Timestamp,
}
