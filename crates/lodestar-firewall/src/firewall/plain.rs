//! Adoptions that say nothing beyond themselves: a pure function of a result, its call and a moment.
//!
//! Nothing of them stands in the log but that they happened, so that whoever reads the log makes them
//! again. Extractors, templates and the ids below are part of the log's format by that: a change that
//! makes anything else of a result that was recorded is a new version of `belief.adopted`.

use lodestar_core::chain::{AdoptionRefused, BeliefRecord, Claim, EvidenceSet};
use lodestar_core::digest::sha256_parts;
use lodestar_core::id::{BeliefId, ClaimId, EvidenceId, EvidenceSetId, ObservationId};
use lodestar_core::time::Timestamp;
use thiserror::Error;

use super::adopt::{Draft, Lot, Names, believed};
use super::intake::{Intake, drawn};
use super::link;
use crate::event::{Adopted, LogName};
use crate::extract::{Extractors, OtherCall};
use crate::fold::FoldError;
use crate::row::Key;
use crate::row::keys::{Keyring, Standing};
use crate::store::Writing;

/// Begins what ids are made of; the NUL keeps it apart from what follows.
const IDS: &[u8] = b"lodestar ids of a result v1\0";

/// What is believed of a tool's result where no older belief has a say in it.
///
/// The gate made it, and there is no other way to one:
///
/// ```compile_fail,E0423
/// use lodestar_firewall::Plain;
/// use lodestar_firewall::event::Adopted;
///
/// fn forge(adopted: Adopted) -> Plain {
///     Plain(adopted)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plain(Adopted);

/// Why nothing follows from a result.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Underivable {
    /// The observation is not of the call.
    #[error(transparent)]
    OtherCall(#[from] OtherCall),
    /// The evidence does not belong to the claim.
    #[error(transparent)]
    Adoption(#[from] AdoptionRefused),
}

impl Plain {
    /// What is believed of a result that was adopted at this moment: the same every time.
    pub fn of(
        extractors: &Extractors,
        intake: &Intake<'_>,
        adopted_at: Timestamp,
    ) -> Result<Self, Underivable> {
        let Lot {
            observation,
            source,
            drafts,
            ..
        } = drawn(extractors, intake)?;
        let mut adopted = Adopted::nothing(observation, source, drafts.len());
        for draft in drafts {
            let (evidence, belief) = believed(&draft, Vec::new(), adopted_at, extractors.rigour())?;
            adopted.add(draft.claim, evidence, &belief);
        }
        Ok(Self(adopted))
    }

    /// What was found to be plain when it was weighed.
    pub(super) fn found(adopted: Adopted) -> Self {
        Self(adopted)
    }

    /// Beliefs of this log that a store has and that have a say in this, so that it should not have been
    /// adopted as plain at this moment.
    ///
    /// Only what a log itself adopted before can be held against it: what other sessions believed by then
    /// depends on how they were interleaved. Whoever asks has to see whether they changed any of these.
    pub fn contested(
        &self,
        store: &mut dyn Writing,
        keys: &Keyring,
        log: &LogName,
    ) -> Result<Vec<BeliefId>, FoldError> {
        let Adopted {
            claims,
            evidence,
            beliefs,
            ..
        } = &self.0;
        let mut found = Vec::new();
        for ((claim, evidence), belief) in claims.iter().zip(evidence).zip(beliefs) {
            let draft = drafted(log, claim, evidence, belief);
            let (truth, now) = (belief.axes.truth, belief.adopted_at);
            let Some(key) = Key::of(&claim.scope, &claim.predicate) else {
                continue;
            };
            for row in store.settled(&key, link::MAX_SETTLED)? {
                let is_genuine = keys.standing(&row) == Standing::Genuine;
                let older = row.open()?;
                if is_genuine
                    && older.adopted.log == *log
                    && link::has_a_say(&older, &draft, truth, now)
                {
                    found.push(older.record.id);
                }
            }
        }
        Ok(found)
    }

    /// What was adopted.
    pub fn adopted(&self) -> &Adopted {
        &self.0
    }

    /// The same, to keep.
    pub fn into_adopted(self) -> Adopted {
        self.0
    }
}

/// What was weighed, told by what came of it.
fn drafted(log: &LogName, claim: &Claim, evidence: &EvidenceSet, belief: &BeliefRecord) -> Draft {
    let own = &evidence.items[0];
    Draft {
        names: Names {
            evidence: own.id,
            evidence_set: evidence.id,
            belief: belief.id,
        },
        project: log.project.clone(),
        claim: claim.clone(),
        source: own.source,
        quality: own.quality,
        group: own.independence_group.clone(),
        freshness: own.freshness,
        class: belief.calibration_class.clone(),
        authority: belief.authority,
        observed_at: belief.observed_at,
    }
}

/// The ids of what comes of an observation, claim by claim.
pub(super) struct IdsOf {
    observation: String,
    millis: u64,
}

impl IdsOf {
    pub(super) fn new(observation: ObservationId) -> Self {
        Self {
            observation: observation.to_string(),
            millis: observation.unix_millis(),
        }
    }

    pub(super) fn claim(&self, place: u32) -> ClaimId {
        self.make(ClaimId::PREFIX, place, ClaimId::from_parts)
    }

    pub(super) fn names(&self, place: u32) -> Names {
        Names {
            evidence: self.make(EvidenceId::PREFIX, place, EvidenceId::from_parts),
            evidence_set: self.make(EvidenceSetId::PREFIX, place, EvidenceSetId::from_parts),
            belief: self.make(BeliefId::PREFIX, place, BeliefId::from_parts),
        }
    }

    /// An observation's id and a place have fixed lengths, so no two kinds of ids hash the same bytes.
    fn make<T>(&self, kind: &str, place: u32, make: fn(u64, [u8; 10]) -> T) -> T {
        let digest = sha256_parts(&[
            IDS,
            self.observation.as_bytes(),
            &place.to_be_bytes(),
            kind.as_bytes(),
        ]);
        let mut random = [0; 10];
        random.copy_from_slice(&digest.as_bytes()[..10]);
        make(self.millis, random)
    }
}
