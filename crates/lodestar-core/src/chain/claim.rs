//! Claim: a statement drawn out of observations, with everything it was drawn from.
//!
//! Lineage travels with a claim: whatever is derived from it (summary, inference, import) carries the
//! origins of all its sources, and is only as good as the weakest of them. Restating something, or
//! storing it and reading it back, therefore raises nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evidence::EvidenceQuality;
use super::non_empty::NonEmpty;
use crate::id::{ClaimId, ObservationId};
use crate::name::words;
use crate::scope::Scope;
use crate::sensitivity::Sensitivity;

words! {
    /// Who drew the claim out of its sources.
    pub enum ExtractionMethod: "extraction method" {
        /// A tool's own structured result.
        Tool = "tool",
        /// A model.
        Llm = "llm",
        /// A person.
        Human = "human",
        /// An export of another system.
        Import = "import",
    }
}

/// What a claim says, in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Predicate {
    /// The thing spoken about, such as `file:notes.md`.
    pub subject: String,
    /// Which of its properties.
    pub relation: String,
    /// The value claimed.
    pub object: Value,
}

impl Predicate {
    /// Whether both speak about the same property of the same thing, and so agree or disagree.
    pub fn same_key(&self, other: &Self) -> bool {
        self.subject == other.subject && self.relation == other.relation
    }
}

/// A statement and where it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its id.
    pub id: ClaimId,
    /// The statement, for readers.
    pub statement: String,
    /// The statement, for comparison.
    pub predicate: Predicate,
    /// The observations it was drawn from.
    pub source_observations: NonEmpty<ObservationId>,
    /// Who drew it.
    pub extraction_method: ExtractionMethod,
    /// Where it holds.
    pub scope: Scope,
    /// Who may see it.
    pub sensitivity: Sensitivity,
    /// Everything it goes back to.
    pub lineage: Lineage,
}

/// An observation that a claim goes back to, and what kind of evidence it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The observation.
    pub observation: ObservationId,
    /// What kind of evidence it is.
    pub quality: EvidenceQuality,
}

/// Everything that a claim goes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The claims it was derived from; empty for one that was drawn from observations directly.
    pub derived_from: Vec<ClaimId>,
    /// The observations at the very beginning.
    pub origins: NonEmpty<Origin>,
}

impl Lineage {
    /// The lineage of a claim drawn from one observation.
    pub fn of_observation(observation: ObservationId, quality: EvidenceQuality) -> Self {
        Self {
            derived_from: Vec::new(),
            origins: NonEmpty::one(Origin {
                observation,
                quality,
            }),
        }
    }

    /// The lineage of a claim derived from others: all their origins, each once.
    pub fn derived(first: &Claim, others: &[&Claim]) -> Self {
        let mut lineage = Self {
            derived_from: vec![first.id],
            origins: first.lineage.origins.clone(),
        };
        for source in others {
            if !lineage.derived_from.contains(&source.id) {
                lineage.derived_from.push(source.id);
            }
            for origin in &source.lineage.origins {
                if !lineage.origins.as_slice().contains(origin) {
                    lineage.origins.push(*origin);
                }
            }
        }
        lineage
    }

    /// What kind of evidence the claim is by itself: the weakest of its origins.
    pub fn quality(&self) -> EvidenceQuality {
        self.origins
            .iter()
            .map(|origin| origin.quality)
            .fold(self.origins.first().quality, Ord::min)
    }

    /// Whether the observation is one of the origins.
    pub fn goes_back_to(&self, observation: ObservationId) -> bool {
        self.origins
            .iter()
            .any(|origin| origin.observation == observation)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    #[test]
    fn a_claim_without_a_source_does_not_parse() {
        let mut json =
            serde_json::to_value(samples::claim(1, EvidenceQuality::ToolResult)).unwrap();
        assert!(serde_json::from_value::<Claim>(json.clone()).is_ok());
        json["source_observations"] = serde_json::json!([]);
        assert!(serde_json::from_value::<Claim>(json).is_err());
    }

    #[test]
    fn a_summary_is_only_as_good_as_its_weakest_source() {
        let measured = samples::claim(1, EvidenceQuality::DirectObservation);
        let read = samples::claim(2, EvidenceQuality::ExternalDocument);
        let summary = Lineage::derived(&measured, &[&read, &measured]);
        assert_eq!(summary.quality(), EvidenceQuality::ExternalDocument);
        assert_eq!(summary.derived_from, [measured.id, read.id]);
        assert_eq!(summary.origins.as_slice().len(), 2);
        assert!(summary.goes_back_to(*read.source_observations.first()));
    }

    proptest! {
        #[test]
        fn deriving_never_raises_quality(qualities in prop::collection::vec(prop::sample::select(EvidenceQuality::ALL), 1..8)) {
            let claims: Vec<_> = qualities.iter().enumerate().map(|(i, &q)| samples::claim(i as u8, q)).collect();
            let others: Vec<_> = claims[1..].iter().collect();
            let derived = Lineage::derived(&claims[0], &others);
            prop_assert_eq!(Some(derived.quality()), qualities.iter().copied().min());
            let again = Claim { lineage: derived.clone(), ..claims[0].clone() };
            prop_assert_eq!(Lineage::derived(&again, &others).quality(), derived.quality());
        }
    }
}
