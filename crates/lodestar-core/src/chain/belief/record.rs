//! What a log or a store holds of a belief: data, to be shown, compared and derived again.

use serde::{Deserialize, Serialize};

use super::{Axes, Belief, BeliefAuthority};
use crate::chain::confidence::Confidence;
use crate::id::{BeliefId, ClaimId, EvidenceSetId};
use crate::name::CalibrationClass;
use crate::scope::Scope;
use crate::sensitivity::Sensitivity;
use crate::time::Timestamp;

/// A belief as data.
///
/// Made from a [`Belief`], or read from anywhere; there is no way back from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeliefRecord {
    /// Its id.
    pub id: BeliefId,
    /// The claim.
    pub claim: ClaimId,
    /// The evidence it was weighed by.
    pub evidence_set: EvidenceSetId,
    /// The strength assigned to it.
    pub confidence: Confidence,
    /// What it is calibrated with.
    pub calibration_class: CalibrationClass,
    /// On whose word it is held.
    pub authority: BeliefAuthority,
    /// Where it holds.
    pub scope: Scope,
    /// Who may see it.
    pub sensitivity: Sensitivity,
    /// When what it says was observed.
    pub observed_at: Timestamp,
    /// When it was adopted.
    pub adopted_at: Timestamp,
    /// Where it stands on each axis; in JSON, four members of the record.
    #[serde(flatten)]
    pub axes: Axes,
}

impl From<&Belief> for BeliefRecord {
    fn from(belief: &Belief) -> Self {
        Self {
            id: belief.id,
            claim: belief.claim,
            evidence_set: belief.evidence_set,
            confidence: belief.confidence,
            calibration_class: belief.calibration_class.clone(),
            authority: belief.authority,
            scope: belief.scope.clone(),
            sensitivity: belief.sensitivity,
            observed_at: belief.observed_at,
            adopted_at: belief.adopted_at,
            axes: belief.axes,
        }
    }
}
