//! Evidence: what speaks for or against a claim, and what kind of thing is speaking.
//!
//! The kind decides, never the text: what Lodestar measured, what a tool's envelope shows and what a
//! known person signed is direct; what was read or inferred is indirect; what a probe made is excluded.
//! How evidence is weighed is settled in [`super::belief::gate`].

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::{ClaimId, EvidenceId, EvidenceSetId, ObservationId};
use crate::name::{IndependenceGroup, words};
use crate::time::Timestamp;

words! {
    /// How an item bears on the claim.
    pub enum EvidenceRelation: "evidence relation" {
        /// Speaks for it.
        Supports = "supports",
        /// Speaks against it.
        Contradicts = "contradicts",
        /// Helps to understand it, and weighs nothing.
        Contextualizes = "contextualizes",
    }
}

words! {
    /// What kind of thing is speaking, from weakest to strongest.
    #[derive(PartialOrd, Ord)]
    pub enum EvidenceQuality: "evidence quality" {
        /// A probe made it.
        SyntheticProbe = "synthetic_probe",
        /// Text that someone wrote.
        ExternalDocument = "external_document",
        /// A model concluded it.
        ModelInference = "model_inference",
        /// A known person signed it.
        HumanAssertion = "human_assertion",
        /// A tool's structured envelope: the call happened and returned this shape.
        ToolResult = "tool_result",
        /// Lodestar measured it itself.
        DirectObservation = "direct_observation",
    }
}

words! {
    /// Whether a quality can carry a belief.
    pub enum Directness: "directness" {
        /// It can.
        Direct = "direct",
        /// It is on record for readers; it neither promotes nor vetoes.
        Indirect = "indirect",
        /// It is no evidence about the world.
        Excluded = "excluded",
    }
}

words! {
    /// How old an item was when it was weighed.
    pub enum EvidenceFreshness: "evidence freshness" {
        /// Recent enough for what it is about.
        Fresh = "fresh",
        /// Older than that.
        Stale = "stale",
        /// Nobody can tell.
        Unknown = "unknown",
    }
}

impl EvidenceQuality {
    /// Whether this quality can carry a belief.
    pub const fn directness(self) -> Directness {
        match self {
            Self::DirectObservation | Self::ToolResult | Self::HumanAssertion => Directness::Direct,
            Self::ModelInference | Self::ExternalDocument => Directness::Indirect,
            Self::SyntheticProbe => Directness::Excluded,
        }
    }
}

/// Where an item came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// Something that was observed.
    Observation(ObservationId),
    /// Another claim, with its lineage.
    Claim(ClaimId),
    /// A signed statement, by the digest of its payload.
    Statement(Digest),
}

/// One thing that bears on a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceItem {
    /// Its id.
    pub id: EvidenceId,
    /// Where it came from.
    pub source: EvidenceSource,
    /// How it bears on the claim.
    pub relation: EvidenceRelation,
    /// What kind of thing is speaking.
    pub quality: EvidenceQuality,
    /// What it shares its origin with.
    pub independence_group: IndependenceGroup,
    /// How old it was.
    pub freshness: EvidenceFreshness,
}

/// All that was known about a claim when it was weighed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceSet {
    /// Its id.
    pub id: EvidenceSetId,
    /// The claim it is about.
    pub claim: ClaimId,
    /// The items; their order means nothing.
    pub items: Vec<EvidenceItem>,
    /// When they were put together.
    pub assembled_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directness_is_that_of_the_specification() {
        let of = |wanted| {
            EvidenceQuality::ALL
                .iter()
                .filter(|q| q.directness() == wanted)
                .map(|q| q.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(Directness::Direct),
            ["human_assertion", "tool_result", "direct_observation"]
        );
        assert_eq!(
            of(Directness::Indirect),
            ["external_document", "model_inference"]
        );
        assert_eq!(of(Directness::Excluded), ["synthetic_probe"]);
    }

    #[test]
    fn every_direct_quality_is_stronger_than_every_other() {
        assert!(EvidenceQuality::ALL.is_sorted());
        assert!(
            EvidenceQuality::ALL.is_sorted_by_key(|q| match q.directness() {
                Directness::Excluded => 0,
                Directness::Indirect => 1,
                Directness::Direct => 2,
            })
        );
    }
}
