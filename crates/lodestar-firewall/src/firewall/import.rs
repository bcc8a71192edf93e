//! Memories of other systems: taken in whole, believed not at all.

use lodestar_core::chain::{
    BeliefAuthority, Claim, EvidenceFreshness, EvidenceQuality, EvidenceSource, ExtractionMethod,
    Lineage, NonEmpty, Observation, Predicate,
};
use lodestar_core::defence::Defence;
use lodestar_core::digest::sha256;
use lodestar_core::id::ClaimId;
use lodestar_core::scope::Scope;
use serde_json::json;

use super::adopt::{Draft, Ids, Names, Outcome};
use super::intake::{class, group};
use super::{Firewall, FirewallError};
use crate::event::Recorder;
use crate::extract::MAX_OBJECT;
use crate::extract::inert::{MAX_SUBJECT, Statement, bounded};
use crate::import::{ExportFormat, ImportedMemory};

/// Some memories of an export, recorded together as one observation.
#[derive(Debug, Clone, Copy)]
pub struct ImportBatch<'a> {
    /// The memories, as they were recorded.
    pub observation: &'a Observation,
    /// Of which system.
    pub format: ExportFormat,
    /// The memories.
    pub memories: &'a [ImportedMemory],
    /// Where they hold.
    pub scope: &'a Scope,
}

impl Firewall {
    /// Takes in memories: documents, whatever they say of themselves.
    pub fn import(
        &mut self,
        batch: ImportBatch<'_>,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, FirewallError> {
        let now = self.now();
        let mut ids = Ids::new(self.surroundings.as_mut(), now);
        // For a harness that takes `ImportsAreReadings` out: the other system's word is a tool's result.
        let (quality, freshness) = match self.keys.rigour().keeps(Defence::ImportsAreReadings) {
            true => (
                EvidenceQuality::ExternalDocument,
                EvidenceFreshness::Unknown,
            ),
            false => (EvidenceQuality::ToolResult, EvidenceFreshness::Fresh),
        };
        let drafts = batch.memories.iter().map(|memory| Draft {
            freshness,
            ..draft(&batch, memory, quality, &mut ids)
        });
        let drafts = drafts.collect();
        self.adopt(batch.observation.id, None, drafts, now, recorder)
    }
}

fn draft(
    batch: &ImportBatch<'_>,
    memory: &ImportedMemory,
    quality: EvidenceQuality,
    ids: &mut Ids<'_>,
) -> Draft {
    let observation = batch.observation;
    let subject = format!("memory:{}/{}", batch.format, memory.reference);
    let text = &memory.text;
    // Half of the room: JSON may double what it escapes.
    let object = if text.len() > MAX_OBJECT / 2 {
        json!({"digest": sha256(text.as_bytes()), "length": text.len()})
    } else {
        json!({"text": text})
    };
    let statement = Statement::new()
        .say("a memory imported from ")
        .say(batch.format.as_str())
        .say(" says ")
        .quote(text);
    Draft {
        names: Names::drawn(ids),
        project: observation.project.clone(),
        claim: Claim {
            id: ids.next(ClaimId::from_parts),
            statement: statement.into_string(),
            predicate: Predicate {
                subject: bounded(&subject, MAX_SUBJECT),
                relation: memory.aspect.as_str().to_owned(),
                object,
            },
            source_observations: NonEmpty::one(observation.id),
            extraction_method: ExtractionMethod::Import,
            scope: batch.scope.clone(),
            sensitivity: observation.sensitivity,
            lineage: Lineage::of_observation(observation.id, quality),
        },
        source: EvidenceSource::Observation(observation.id),
        quality,
        group: group("import", batch.format.as_str()),
        freshness: EvidenceFreshness::Unknown,
        class: class("import"),
        authority: BeliefAuthority::Imported,
        observed_at: observation.captured_at,
    }
}
