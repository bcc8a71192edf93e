//! The auto-observation gate: how much the evidence for a claim weighs, and whether that carries it.
//!
//! Only direct evidence is on the scales. Items of one independence group share an origin, so per
//! group and side the strongest counts. Each side is a noisy-or over its groups, the chance that at
//! least one of several independent witnesses is right; what speaks against discounts what speaks for.
//! A hundred documents weigh nothing, on either side: indirect evidence neither promotes nor vetoes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Rigour, Truth};
use crate::chain::evidence::{
    Directness, EvidenceFreshness, EvidenceItem, EvidenceQuality, EvidenceRelation, EvidenceSet,
};
use crate::defence::Defence;

/// Lodestar measured it itself: nothing stands between the world and the record.
pub const WEIGHT_DIRECT_OBSERVATION: f64 = 1.0;

/// A tool's envelope: the call surely happened, but a server reported its shape.
pub const WEIGHT_TOOL_RESULT: f64 = 0.85;

/// A known person signed it: identity is certain, and people err. Enough alone while it is fresh.
pub const WEIGHT_HUMAN_ASSERTION: f64 = 0.7;

/// Fresh evidence counts in full.
pub const FACTOR_FRESH: f64 = 1.0;

/// Stale evidence counts half: even a measurement alone then stays below [`THRESHOLD`], and two
/// independent ones reach it together.
pub const FACTOR_STALE: f64 = 0.5;

/// Evidence of unknown age: better than known to be old. A measurement just reaches [`THRESHOLD`]
/// alone; a tool's result or a person's word does not.
pub const FACTOR_UNKNOWN: f64 = 0.6;

/// What carries a belief: any one fresh direct item that nothing direct speaks against does, and no
/// single stale one.
pub const THRESHOLD: f64 = 0.6;

/// What the evidence weighs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Weighing {
    /// What speaks for the claim, from 0 to 1.
    pub support: f64,
    /// What speaks against it, from 0 to 1.
    pub contradiction: f64,
    /// Support × (1 − contradiction).
    pub strength: f64,
    /// Supported if the strength reaches [`THRESHOLD`], else unverified; never anything else.
    pub truth: Truth,
}

/// Weighs the evidence for a claim.
///
/// A pure function of the items as a set: order, and repetition within a group, change no bit of it.
pub fn weigh(evidence: &EvidenceSet) -> Weighing {
    weigh_by(evidence, Rigour::FULL)
}

/// As [`weigh`]; in a harness, without the rules that it takes out.
pub fn weigh_by(evidence: &EvidenceSet, rigour: Rigour) -> Weighing {
    let support = side(&evidence.items, EvidenceRelation::Supports, rigour);
    let contradiction = side(&evidence.items, EvidenceRelation::Contradicts, rigour);
    let strength = support * (1.0 - contradiction);
    let truth = if strength >= THRESHOLD {
        Truth::Supported
    } else {
        Truth::Unverified
    };
    Weighing {
        support,
        contradiction,
        strength,
        truth,
    }
}

/// One side of the scales: a noisy-or over the strongest item of each independence group.
fn side(items: &[EvidenceItem], relation: EvidenceRelation, rigour: Rigour) -> f64 {
    let mut strongest = BTreeMap::new();
    for item in items.iter().filter(|item| item.relation == relation) {
        if let Some(weight) = weight(item, rigour) {
            // For a harness that takes `IndependentOrigins` out: every item is an origin of its own.
            let apart = (!rigour.keeps(Defence::IndependentOrigins)).then_some(item.id);
            let group = (&item.independence_group, apart);
            let group: &mut f64 = strongest.entry(group).or_default();
            *group = group.max(weight);
        }
    }
    let mut doubts: Vec<f64> = strongest.into_values().map(|weight| 1.0 - weight).collect();
    // Multiplication of doubles is not associative: a fixed order makes the product a function of
    // the weights alone, whatever the groups are called and in whichever order they came.
    doubts.sort_by(f64::total_cmp);
    1.0 - doubts.iter().product::<f64>()
}

/// What one item weighs; `None` for what is not on the scales.
fn weight(item: &EvidenceItem, rigour: Rigour) -> Option<f64> {
    // For a harness that takes one of these out: what was read weighs as if it had been measured.
    let reading_counts = match item.relation {
        EvidenceRelation::Supports => !rigour.keeps(Defence::IndirectWeighsNothing),
        EvidenceRelation::Contradicts => !rigour.keeps(Defence::NoVetoByReading),
        EvidenceRelation::Contextualizes => false,
    };
    let quality = match item.quality {
        quality if reading_counts && quality.directness() == Directness::Indirect => {
            WEIGHT_DIRECT_OBSERVATION
        }
        EvidenceQuality::DirectObservation => WEIGHT_DIRECT_OBSERVATION,
        EvidenceQuality::ToolResult => WEIGHT_TOOL_RESULT,
        EvidenceQuality::HumanAssertion => WEIGHT_HUMAN_ASSERTION,
        EvidenceQuality::ModelInference
        | EvidenceQuality::ExternalDocument
        | EvidenceQuality::SyntheticProbe => {
            return None;
        }
    };
    let freshness = match item.freshness {
        EvidenceFreshness::Fresh => FACTOR_FRESH,
        EvidenceFreshness::Stale => FACTOR_STALE,
        EvidenceFreshness::Unknown => FACTOR_UNKNOWN,
    };
    Some(quality * freshness)
}

#[cfg(test)]
mod tests;
