//! From drafts to beliefs: ids, evidence, the gate, and one event for all of it.

use lodestar_core::chain::{
    Adoption, Belief, BeliefAuthority, BeliefRecord, Claim, Confidence, EvidenceFreshness,
    EvidenceItem, EvidenceQuality, EvidenceRelation, EvidenceSet, EvidenceSource,
};
use lodestar_core::id::{BeliefId, EvidenceId, EvidenceSetId, ObservationId};
use lodestar_core::name::{CalibrationClass, IndependenceGroup, ProjectId};
use lodestar_core::time::Timestamp;

use super::link::{self, Following};
use super::{Firewall, FirewallError, enact, transact};
use crate::event::{Adopted, FirewallEvent, LogPosition, Recorder, Source, Surroundings};
use crate::row::keys::Keyring;
use crate::store::Writing;

/// A claim that is to be weighed, with the evidence that it brings along itself.
pub(super) struct Draft {
    /// The id that the belief must have; chosen here where there is none.
    pub(super) id: Option<BeliefId>,
    /// The project whose log records it.
    pub(super) project: ProjectId,
    pub(super) claim: Claim,
    pub(super) source: EvidenceSource,
    pub(super) quality: EvidenceQuality,
    pub(super) group: IndependenceGroup,
    pub(super) freshness: EvidenceFreshness,
    pub(super) class: CalibrationClass,
    pub(super) authority: BeliefAuthority,
    pub(super) observed_at: Timestamp,
}

/// What came of an intake.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The event, as it was recorded.
    pub adopted: Adopted,
    /// Where it stands.
    pub at: LogPosition,
}

impl Outcome {
    /// The new beliefs, as data.
    pub fn beliefs(&self) -> &[BeliefRecord] {
        &self.adopted.beliefs
    }
}

/// Makes ids out of one moment and fresh randomness.
pub(super) struct Ids<'a> {
    pub(super) surroundings: &'a mut dyn Surroundings,
    pub(super) millis: u64,
}

impl<'a> Ids<'a> {
    pub(super) fn new(surroundings: &'a mut dyn Surroundings, now: Timestamp) -> Self {
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or_default();
        Self {
            surroundings,
            millis,
        }
    }

    pub(super) fn next<T>(&mut self, make: fn(u64, [u8; 10]) -> T) -> T {
        make(self.millis, self.surroundings.random())
    }
}

impl Firewall {
    /// Weighs drafts, records what came of them, and keeps it.
    pub(super) fn adopt(
        &mut self,
        observation: ObservationId,
        source: Option<Source>,
        drafts: Vec<Draft>,
        now: Timestamp,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, FirewallError> {
        let Self {
            store,
            keys,
            surroundings,
            ..
        } = self;
        let mut ids = Ids::new(surroundings.as_mut(), now);
        transact(store, |tx| {
            let adopted = weigh(tx, keys, &mut ids, observation, source, drafts, now)?;
            let event = FirewallEvent::Adopted(adopted);
            let at = enact(tx, keys, recorder, &event)?;
            let FirewallEvent::Adopted(adopted) = event else {
                unreachable!("INVARIANT: made one line above")
            };
            Ok(Outcome { adopted, at })
        })
    }
}

fn weigh(
    tx: &mut dyn Writing,
    keys: &Keyring,
    ids: &mut Ids<'_>,
    observation: ObservationId,
    source: Option<Source>,
    drafts: Vec<Draft>,
    now: Timestamp,
) -> Result<Adopted, FirewallError> {
    let mut adopted = Adopted {
        observation,
        source,
        claims: Vec::with_capacity(drafts.len()),
        evidence: Vec::with_capacity(drafts.len()),
        beliefs: Vec::with_capacity(drafts.len()),
        changes: Vec::new(),
        contradictions: Vec::new(),
    };
    for mut draft in drafts {
        // A clock that was wrong elsewhere does not make anything newer than now.
        draft.observed_at = draft.observed_at.min(now);
        let known = link::same_key(tx, keys, &draft)?;
        let own = EvidenceItem {
            id: ids.next(EvidenceId::from_parts),
            source: draft.source,
            relation: EvidenceRelation::Supports,
            quality: draft.quality,
            independence_group: draft.group.clone(),
            freshness: draft.freshness,
        };
        let mut items = vec![own];
        items.extend(link::linked(&known, &draft, ids, now));
        let evidence = EvidenceSet {
            id: ids.next(EvidenceSetId::from_parts),
            claim: draft.claim.id,
            items,
            assembled_at: now,
        };
        let belief = Belief::adopt(Adoption {
            id: draft.id.unwrap_or_else(|| ids.next(BeliefId::from_parts)),
            claim: &draft.claim,
            evidence: &evidence,
            confidence: Confidence::EXTRACTED,
            calibration_class: draft.class.clone(),
            authority: draft.authority,
            observed_at: draft.observed_at,
            adopted_at: now,
        })?;
        let Following {
            changes,
            contradictions,
        } = link::follow(tx, keys, &known, &draft, &belief, &evidence, ids, now)?;
        // Two claims of one observation may touch the same older belief: the first change stands.
        for change in changes {
            if adopted
                .changes
                .iter()
                .all(|other| other.belief != change.belief)
            {
                adopted.changes.push(change);
            }
        }
        adopted.contradictions.extend(contradictions);
        adopted.beliefs.push(BeliefRecord::from(&belief));
        adopted.claims.push(draft.claim);
        adopted.evidence.push(evidence);
    }
    Ok(adopted)
}
