//! Adoptions that say nothing beyond themselves: a pure function of a result, its call and a moment.
//!
//! Nothing of them stands in the log but that they happened, so that whoever reads the log makes them
//! again. Extractors, templates and the ids below are part of the log's format by that: a change that
//! makes anything else of a result that was recorded is a new version of `belief.adopted`.

use lodestar_core::chain::AdoptionRefused;
use lodestar_core::digest::sha256_parts;
use lodestar_core::id::{BeliefId, ClaimId, EvidenceId, EvidenceSetId, ObservationId};
use lodestar_core::time::Timestamp;
use thiserror::Error;

use super::adopt::{Lot, Names, believed};
use super::intake::{Intake, drawn};
use crate::event::Adopted;
use crate::extract::{Extractors, OtherCall};

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
            let (evidence, belief) = believed(&draft, Vec::new(), adopted_at)?;
            adopted.add(draft.claim, evidence, &belief);
        }
        Ok(Self(adopted))
    }

    /// What was found to be plain when it was weighed.
    pub(super) fn found(adopted: Adopted) -> Self {
        Self(adopted)
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
