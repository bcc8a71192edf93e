//! Links for tests, each made from a small number.

use serde_json::json;

use super::*;
use crate::digest::sha256;
use crate::id::*;
use crate::name::IndependenceGroup;
use crate::scope::Scope;
use crate::sensitivity::Sensitivity;
use crate::time::Timestamp;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros((1_700_000_000 + seconds) * 1_000_000).unwrap()
}

pub(crate) fn observation_id(n: u8) -> ObservationId {
    ObservationId::from_parts(u64::from(n), [n; 10])
}

pub(crate) fn claim(n: u8, quality: EvidenceQuality) -> Claim {
    Claim {
        id: ClaimId::from_parts(u64::from(n), [n; 10]),
        statement: format!("statement {n}"),
        predicate: Predicate {
            subject: format!("file:{n}"),
            relation: "says".into(),
            object: json!(n),
        },
        source_observations: NonEmpty::one(observation_id(n)),
        extraction_method: ExtractionMethod::Tool,
        scope: "project:web".parse::<Scope>().unwrap(),
        sensitivity: Sensitivity::Internal,
        lineage: Lineage::of_observation(observation_id(n), quality),
    }
}

/// An item that has nothing to do with any claim's own lineage.
pub(crate) fn item(
    n: u8,
    relation: EvidenceRelation,
    quality: EvidenceQuality,
    freshness: EvidenceFreshness,
    group: &str,
) -> EvidenceItem {
    EvidenceItem {
        id: EvidenceId::from_parts(u64::from(n), [n; 10]),
        source: EvidenceSource::Statement(sha256(&[n])),
        relation,
        quality,
        independence_group: IndependenceGroup::new(group).unwrap(),
        freshness,
    }
}

pub(crate) fn evidence(claim: &Claim, items: Vec<EvidenceItem>) -> EvidenceSet {
    EvidenceSet {
        id: EvidenceSetId::from_parts(1, [1; 10]),
        claim: claim.id,
        items,
        assembled_at: at(0),
    }
}
