//! Two ways to say what an older belief means for a new one have to agree: live, when it is weighed,
//! and afterwards, when somebody reads the log.

use std::sync::Arc;

use lodestar_core::chain::belief::Rigour;
use lodestar_core::chain::{
    Axes, BeliefAuthority, BeliefRecord, Claim, ExtractionMethod, Lineage, NonEmpty, Predicate,
};
use lodestar_core::digest::sha256;
use lodestar_core::id::{ClaimId, ObservationId};
use lodestar_core::key::SecretKey;
use lodestar_core::name::ProjectId;
use lodestar_core::sensitivity::Sensitivity;
use serde_json::{Value, json};

use super::super::adopt::{Names, believed};
use super::super::intake::{class, group};
use super::*;
use crate::event::{LogName, LogPosition, Surroundings};
use crate::store::{MemoryStore, Store as _, Verdict};

struct Counter(u8);

impl Surroundings for Counter {
    fn now(&mut self) -> Timestamp {
        at(100)
    }

    fn random(&mut self) -> [u8; 10] {
        self.0 = self.0.wrapping_add(1);
        [self.0; 10]
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_790_000_000_000_000 + seconds * 1_000_000).unwrap()
}

fn draft(number: u8, quality: EvidenceQuality, object: &Value, observed_at: Timestamp) -> Draft {
    let observation = ObservationId::from_parts(1, [number; 10]);
    let mut chance = Counter(number);
    let mut ids = Ids::new(&mut chance, at(100));
    Draft {
        names: Names::drawn(&mut ids),
        project: ProjectId::new("web").unwrap(),
        claim: Claim {
            id: ClaimId::from_parts(1, [number; 10]),
            statement: "it says so".to_owned(),
            predicate: Predicate {
                subject: "file:a".to_owned(),
                relation: "status".to_owned(),
                object: object.clone(),
            },
            source_observations: NonEmpty::one(observation),
            extraction_method: ExtractionMethod::Tool,
            scope: "project:web".parse().unwrap(),
            sensitivity: Sensitivity::Internal,
            lineage: Lineage::of_observation(observation, quality),
        },
        source: EvidenceSource::Observation(observation),
        quality,
        group: group("server", &number.to_string()),
        freshness: EvidenceFreshness::Fresh,
        class: class("test"),
        authority: BeliefAuthority::Observed,
        observed_at,
    }
}

fn stored(draft: &Draft, axes: Axes) -> StoredBelief {
    let (evidence, belief) = believed(draft, Vec::new(), at(0), Rigour::FULL).unwrap();
    let log = LogName {
        project: draft.project.clone(),
        session: "s1".parse().unwrap(),
    };
    let adopted = LogPosition {
        log,
        seq: 1,
        leaf: sha256(b"line"),
    };
    let mut record = BeliefRecord::from(&belief);
    record.axes = axes;
    record.observed_at = draft.observed_at;
    StoredBelief {
        record,
        claim: draft.claim.clone(),
        evidence,
        source: None,
        revision: 0,
        due_at: None,
        changed: adopted.clone(),
        adopted,
    }
}

/// Every place where a settled belief can stand.
fn settled() -> Vec<Axes> {
    let mut all = Vec::new();
    for truth in [Truth::Supported, Truth::Contradicted] {
        for &retrieval in Retrieval::ALL {
            for &security in Security::ALL {
                for &freshness in Freshness::ALL {
                    all.push(Axes {
                        truth,
                        retrieval,
                        security,
                        freshness,
                    });
                }
            }
        }
    }
    all
}

#[test]
fn what_has_a_say_afterwards_is_what_had_one_when_it_was_weighed() {
    let keys = Keyring::new(Arc::new(SecretKey::from_seed([1; 32])));
    let now = at(100);
    let (mut said, mut silent) = (0, 0);
    let against = EvidenceItem {
        id: EvidenceId::from_parts(1, [77; 10]),
        source: EvidenceSource::Claim(ClaimId::from_parts(1, [77; 10])),
        relation: EvidenceRelation::Contradicts,
        quality: EvidenceQuality::DirectObservation,
        independence_group: group("server", "third"),
        freshness: EvidenceFreshness::Fresh,
    };
    let mut look = |tx: &mut dyn Writing, older: &StoredBelief, new: &Draft, other: bool| {
        let known = Known {
            key: Key::of(&new.claim.scope, &new.claim.predicate),
            settled: vec![older.clone()],
        };
        let mut chance = Counter(100);
        let mut ids = Ids::new(&mut chance, now);
        let lent = lent_to(&known, new, &mut ids, now);
        // By itself, and where something else speaks against it.
        let linked = other.then(|| against.clone()).into_iter().collect();
        let (evidence, belief) = believed(new, linked, now, Rigour::FULL).unwrap();
        let truth = belief.axes().truth;
        let followed = follow(tx, &keys, &known, new, &belief, &evidence, &mut ids, now).unwrap();
        let Following {
            changes,
            contradictions,
        } = &followed;
        let differs = older.claim.predicate.object != new.claim.predicate.object;
        // Nothing speaks against what says the same, or takes a place without being believed itself.
        assert!(contradictions.is_empty() || differs);
        assert!(changes.is_empty() || truth == Truth::Supported);
        let live = !lent.is_empty() || !changes.is_empty() || !contradictions.is_empty();
        let after = has_a_say(older, new, truth, now);
        assert_eq!(after, live, "{:?} {:?}", older.record.axes, new.quality);
        match live {
            true => said += 1,
            false => silent += 1,
        }
    };
    let mut store = MemoryStore::new();
    let looked = store.write(&mut |tx| {
        for &old_quality in EvidenceQuality::ALL {
            for &quality in EvidenceQuality::ALL {
                for axes in settled() {
                    for (object, observed) in [("x", 50), ("y", 50), ("x", 10), ("y", 10)] {
                        let old = draft(1, old_quality, &json!("x"), at(20));
                        let new = draft(2, quality, &json!(object), at(observed));
                        // Of the same observation.
                        let mut same = draft(1, quality, &json!(object), at(observed));
                        same.claim.id = ClaimId::from_parts(1, [3; 10]);
                        for other in [false, true] {
                            look(tx, &stored(&old, axes), &new, other);
                            look(tx, &stored(&old, axes), &same, other);
                        }
                    }
                }
            }
        }
        Ok(Verdict::Rollback)
    });
    looked.unwrap();
    assert!(said > 100 && silent > 100, "{said} said, {silent} silent");
}

#[test]
fn what_shares_an_observation_or_follows_from_a_claim_is_not_independent_of_it() {
    let quality = EvidenceQuality::DirectObservation;
    let old = draft(1, quality, &json!("x"), at(1));
    let older = stored(&old, settled()[0]);
    let apart = draft(2, quality, &json!("x"), at(2));
    assert!(independent(&older, &apart));
    let mut shares = draft(1, quality, &json!("x"), at(2));
    shares.claim.id = ClaimId::from_parts(1, [3; 10]);
    assert!(!independent(&older, &shares));
    let mut follows = draft(2, quality, &json!("x"), at(2));
    follows.claim.lineage.derived_from.push(older.claim.id);
    assert!(!independent(&older, &follows));
}
