//! Belief: what the firewall makes of a claim, on four independent axes.
//!
//! Reading is not believing, and here the compiler says so. A [`Belief`] has private fields and one
//! way in, [`Belief::adopt`], which computes truth with the [`gate`]; nobody passes a truth in. What
//! a log or store holds is a [`BeliefRecord`]: data that is made from a belief and never becomes one.
//! The gate is a part of this module for that reason. How axes move later is in [`super::transition`].

mod axes;
pub mod gate;
mod record;
mod rigour;

pub use axes::{Axes, Freshness, Retrieval, Security, Truth};
pub use record::BeliefRecord;
pub use rigour::Rigour;

use thiserror::Error;

use super::claim::Claim;
use super::confidence::Confidence;
use super::evidence::{EvidenceQuality, EvidenceSet, EvidenceSource};
use crate::defence::Defence;
use crate::id::{BeliefId, ClaimId, EvidenceId, EvidenceSetId};
use crate::name::{CalibrationClass, words};
use crate::scope::Scope;
use crate::sensitivity::Sensitivity;
use crate::time::Timestamp;

words! {
    /// On whose word a belief is held. It explains, and does not enter truth.
    pub enum BeliefAuthority: "belief authority" {
        /// It was observed.
        Observed = "observed",
        /// A model concluded it.
        Inferred = "inferred",
        /// A person said so.
        UserAsserted = "user_asserted",
        /// A rule of the operator says so.
        PolicyAsserted = "policy_asserted",
        /// It came out of another system.
        Imported = "imported",
        /// A probe planted it.
        Synthetic = "synthetic",
    }
}

/// A claim that was weighed.
///
/// It cannot be written down, only adopted:
///
/// ```compile_fail,E0451
/// use lodestar_core::chain::{Axes, Belief};
///
/// fn forge(honest: Belief, axes: Axes) -> Belief {
///     Belief { axes, ..honest }
/// }
/// ```
///
/// Its truth can be read but not set:
///
/// ```
/// use lodestar_core::chain::{Belief, Truth};
///
/// fn read(belief: &Belief) -> Truth {
///     belief.axes().truth
/// }
/// ```
/// ```compile_fail,E0616
/// use lodestar_core::chain::{Belief, Truth};
///
/// fn set(belief: &mut Belief) {
///     belief.axes.truth = Truth::Supported;
/// }
/// ```
///
/// And what was read from a disk does not become one:
///
/// ```compile_fail,E0277
/// use lodestar_core::chain::{Belief, BeliefRecord};
///
/// fn revive(record: BeliefRecord) -> Belief {
///     record.into()
/// }
/// ```
/// ```compile_fail,E0277
/// use lodestar_core::chain::Belief;
///
/// fn revive(json: &str) -> Belief {
///     serde_json::from_str(json).unwrap()
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Belief {
    id: BeliefId,
    claim: ClaimId,
    evidence_set: EvidenceSetId,
    confidence: Confidence,
    calibration_class: CalibrationClass,
    authority: BeliefAuthority,
    scope: Scope,
    sensitivity: Sensitivity,
    observed_at: Timestamp,
    adopted_at: Timestamp,
    // INVARIANT: truth is what the gate made of the evidence set; nothing outside this module sets it.
    axes: Axes,
}

/// What [`Belief::adopt`] needs. No member says how true the claim is.
#[derive(Debug, Clone)]
pub struct Adoption<'a> {
    /// The id of the new belief.
    pub id: BeliefId,
    /// The claim.
    pub claim: &'a Claim,
    /// What is known about it.
    pub evidence: &'a EvidenceSet,
    /// The strength assigned to it.
    pub confidence: Confidence,
    /// What it is calibrated with.
    pub calibration_class: CalibrationClass,
    /// On whose word.
    pub authority: BeliefAuthority,
    /// When what it says was observed.
    pub observed_at: Timestamp,
    /// Now.
    pub adopted_at: Timestamp,
}

/// Why a belief was not adopted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdoptionRefused {
    /// The evidence is about another claim.
    #[error("the evidence set is about claim `{about}`, not about `{claim}`")]
    OtherClaim {
        /// The claim to be believed.
        claim: ClaimId,
        /// The claim that the evidence is about.
        about: ClaimId,
    },
    /// An item out of the claim's own lineage is passed off as better than that lineage.
    #[error(
        "evidence `{evidence}` is given as `{given}`, but the claim's own lineage is `{lineage}`"
    )]
    AboveLineage {
        /// The item.
        evidence: EvidenceId,
        /// The quality it is given.
        given: EvidenceQuality,
        /// The weakest quality the claim goes back to.
        lineage: EvidenceQuality,
    },
}

impl Belief {
    /// Weighs the evidence and adopts the claim with the truth that follows.
    ///
    /// Supported beliefs start normal, clean and fresh; everything else is gated and starts
    /// restricted, clean and fresh. Scope and sensitivity are those of the claim.
    pub fn adopt(adoption: Adoption<'_>) -> Result<Self, AdoptionRefused> {
        Self::adopt_by(adoption, Rigour::FULL)
    }

    /// As [`adopt`](Self::adopt); in a harness, without the rules that it takes out.
    pub fn adopt_by(adoption: Adoption<'_>, rigour: Rigour) -> Result<Self, AdoptionRefused> {
        let Adoption {
            claim, evidence, ..
        } = adoption;
        if evidence.claim != claim.id {
            return Err(AdoptionRefused::OtherClaim {
                claim: claim.id,
                about: evidence.claim,
            });
        }
        within_lineage(claim, evidence)?;
        let truth = gate::weigh_by(evidence, rigour).truth;
        // For a harness that takes `GatedStartsRestricted` out: all that comes in is handed out.
        let is_gated = truth != Truth::Supported && rigour.keeps(Defence::GatedStartsRestricted);
        let retrieval = if !is_gated {
            Retrieval::Normal
        } else {
            Retrieval::Restricted
        };
        Ok(Self {
            id: adoption.id,
            claim: claim.id,
            evidence_set: evidence.id,
            confidence: adoption.confidence,
            calibration_class: adoption.calibration_class,
            authority: adoption.authority,
            scope: claim.scope.clone(),
            sensitivity: claim.sensitivity,
            observed_at: adoption.observed_at,
            adopted_at: adoption.adopted_at,
            axes: Axes {
                truth,
                retrieval,
                security: Security::Clean,
                freshness: Freshness::Fresh,
            },
        })
    }

    /// Its id.
    pub fn id(&self) -> BeliefId {
        self.id
    }

    /// The claim that is believed, or not.
    pub fn claim(&self) -> ClaimId {
        self.claim
    }

    /// The evidence it was weighed by.
    pub fn evidence_set(&self) -> EvidenceSetId {
        self.evidence_set
    }

    /// The strength assigned to it.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// What it is calibrated with.
    pub fn calibration_class(&self) -> &CalibrationClass {
        &self.calibration_class
    }

    /// On whose word it is held.
    pub fn authority(&self) -> BeliefAuthority {
        self.authority
    }

    /// Where it holds.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Who may see it.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// When what it says was observed.
    pub fn observed_at(&self) -> Timestamp {
        self.observed_at
    }

    /// When it was adopted.
    pub fn adopted_at(&self) -> Timestamp {
        self.adopted_at
    }

    /// Where it stands on each axis: a copy.
    pub fn axes(&self) -> Axes {
        self.axes
    }
}

/// A restatement of its own sources is no better than they are: an item that comes from one of the
/// claim's origins, or from a claim it was derived from, is bounded by the lineage.
fn within_lineage(claim: &Claim, evidence: &EvidenceSet) -> Result<(), AdoptionRefused> {
    let lineage = claim.lineage.quality();
    let own = |source: &EvidenceSource| match source {
        EvidenceSource::Observation(observation) => claim.lineage.goes_back_to(*observation),
        EvidenceSource::Claim(other) => {
            *other == claim.id || claim.lineage.derived_from.contains(other)
        }
        EvidenceSource::Statement(_) => false,
    };
    match evidence
        .items
        .iter()
        .find(|item| item.quality > lineage && own(&item.source))
    {
        Some(item) => Err(AdoptionRefused::AboveLineage {
            evidence: item.id,
            given: item.quality,
            lineage,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
