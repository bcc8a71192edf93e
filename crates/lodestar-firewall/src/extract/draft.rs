//! Drafts of claims: what an extractor says, before the caller gives it an id and a scope.
//!
//! Nothing inside a result is ever direct, and the types say so: extractors make [`ContentDraft`]s,
//! which have no quality to choose; a [`ClaimDraft`] of direct quality is made by the envelope
//! template alone, whose module is a child of this one for that reason.

mod envelope;

pub(super) use envelope::envelope;

use lodestar_core::chain::{
    Claim, EvidenceFreshness, EvidenceQuality, ExtractionMethod, Lineage, NonEmpty, Observation,
    ObservationTrust, Predicate,
};
use lodestar_core::id::{ClaimId, ObservationId};
use lodestar_core::name::CalibrationClass;
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use serde_json::{Value, json};

use super::inert::{MAX_ATTRIBUTE, Statement, bounded};
use super::subject::Subject;
use super::sum::Sum;

/// Longest object in bytes of canonical JSON: a list of fifty attributes fits. A longer one is kept
/// as digest and length; what it was made from stands in the observation.
pub const MAX_OBJECT: usize = 32 * 1024;

/// What an extractor read in a result. It is text that someone wrote, whatever it says.
///
/// There is no way to call it anything better:
///
/// ```compile_fail,E0599
/// use lodestar_core::chain::EvidenceQuality;
/// use lodestar_firewall::extract::ContentDraft;
///
/// fn promote(draft: ContentDraft) -> ContentDraft {
///     draft.with_quality(EvidenceQuality::ToolResult)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ContentDraft {
    subject: Subject,
    relation: String,
    object: Value,
    statement: Statement,
    freshness: EvidenceFreshness,
}

impl ContentDraft {
    /// Says that `relation` of `subject` is `object`. All parts are bounded and the relation inert.
    pub fn new(subject: Subject, relation: &str, object: Value, statement: Statement) -> Self {
        let sum = Sum::of_json(&object);
        let object = if sum.length > MAX_OBJECT as u64 {
            json!({"digest": sum.digest, "length": sum.length})
        } else {
            object
        };
        Self {
            subject,
            relation: bounded(relation, MAX_ATTRIBUTE),
            object,
            statement,
            freshness: EvidenceFreshness::Fresh,
        }
    }

    /// Nobody can tell how old what the text says is, even if the text was read just now.
    pub fn of_unknown_age(self) -> Self {
        Self {
            freshness: EvidenceFreshness::Unknown,
            ..self
        }
    }
}

/// A claim without id and scope, as an extractor or the envelope template made it.
///
/// It cannot be written down, so its quality cannot be chosen:
///
/// ```compile_fail,E0451
/// use lodestar_core::chain::EvidenceQuality;
/// use lodestar_firewall::extract::ClaimDraft;
///
/// fn forge(honest: ClaimDraft) -> ClaimDraft {
///     ClaimDraft { quality: EvidenceQuality::ToolResult, ..honest }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimDraft {
    statement: String,
    predicate: Predicate,
    // INVARIANT: direct only for the envelope of a call that no probe made up, and in a harness that
    // takes this very defence out.
    quality: EvidenceQuality,
    freshness: EvidenceFreshness,
    calibration_class: CalibrationClass,
    observation: ObservationId,
    sensitivity: Sensitivity,
}

impl ClaimDraft {
    /// A draft about what stands in a result.
    pub(super) fn of_content(
        draft: ContentDraft,
        class: &CalibrationClass,
        observation: &Observation,
    ) -> Self {
        let predicate = Predicate {
            subject: draft.subject.as_str().to_owned(),
            relation: draft.relation,
            object: draft.object,
        };
        Self {
            freshness: draft.freshness,
            ..Self::drawn(
                draft.statement,
                predicate,
                EvidenceQuality::ExternalDocument,
                class,
                observation,
            )
        }
    }

    /// What a probe made is no evidence about the world, not even that a call happened.
    fn drawn(
        statement: Statement,
        predicate: Predicate,
        quality: EvidenceQuality,
        class: &CalibrationClass,
        observation: &Observation,
    ) -> Self {
        let quality = match observation.trust {
            ObservationTrust::Raw | ObservationTrust::Validated => quality,
            ObservationTrust::Synthetic => EvidenceQuality::SyntheticProbe,
        };
        Self {
            statement: statement.into_string(),
            predicate,
            quality,
            freshness: EvidenceFreshness::Fresh,
            calibration_class: class.clone(),
            observation: observation.id,
            sensitivity: observation.sensitivity,
        }
    }

    /// Takes a text for what its tool vouches for.
    pub(super) fn vouch_for(&mut self) {
        if self.quality == EvidenceQuality::ExternalDocument {
            self.quality = EvidenceQuality::ToolResult;
            self.freshness = EvidenceFreshness::Fresh;
        }
    }

    /// The statement for readers: bounded and inert.
    pub fn statement(&self) -> &str {
        &self.statement
    }

    /// The statement for comparison.
    pub fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// What kind of evidence the observation is for it.
    pub fn quality(&self) -> EvidenceQuality {
        self.quality
    }

    /// Who drew it: always a tool's own result, since no model and no person takes part.
    pub fn extraction_method(&self) -> ExtractionMethod {
        ExtractionMethod::Tool
    }

    /// How old what it says was when it was read: a hint, since only the caller has a clock.
    pub fn freshness(&self) -> EvidenceFreshness {
        self.freshness
    }

    /// What it is calibrated with.
    pub fn calibration_class(&self) -> &CalibrationClass {
        &self.calibration_class
    }

    /// The observation it was drawn from.
    pub fn observation(&self) -> ObservationId {
        self.observation
    }

    /// The claim, with an id and a scope; source, lineage and sensitivity are those of the observation.
    pub fn into_claim(self, id: ClaimId, scope: Scope) -> Claim {
        Claim {
            id,
            statement: self.statement,
            predicate: self.predicate,
            source_observations: NonEmpty::one(self.observation),
            extraction_method: ExtractionMethod::Tool,
            scope,
            sensitivity: self.sensitivity,
            lineage: Lineage::of_observation(self.observation, self.quality),
        }
    }
}
