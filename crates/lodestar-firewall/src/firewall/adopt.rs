//! From drafts to beliefs: ids, evidence, the gate, and one event for all of it.

use std::collections::HashSet;

use lodestar_core::chain::{
    Adoption, Belief, BeliefAuthority, BeliefRecord, Claim, Confidence, EvidenceFreshness,
    EvidenceItem, EvidenceQuality, EvidenceRelation, EvidenceSet, EvidenceSource,
};
use lodestar_core::id::{BeliefId, EvidenceId, EvidenceSetId, ObservationId};
use lodestar_core::name::{CalibrationClass, IndependenceGroup, ProjectId};
use lodestar_core::time::Timestamp;

use super::link::{self, Following};
use super::{Firewall, FirewallError, enter, transact};
use crate::event::{Adopted, FirewallEvent, LogPosition, Recorder, Source, Surroundings};
use crate::fold;
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

/// What one observation gave, to be weighed together.
pub(super) struct Lot {
    pub(super) observation: ObservationId,
    pub(super) source: Option<Source>,
    pub(super) drafts: Vec<Draft>,
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
        let lot = Lot {
            observation,
            source,
            drafts,
        };
        let mut outcomes = self.adopt_all(vec![lot], now, recorder)?;
        Ok(outcomes.pop().expect("INVARIANT: one lot has one outcome"))
    }

    /// The same for several observations, in their order and in one transaction.
    pub(super) fn adopt_all(
        &mut self,
        lots: Vec<Lot>,
        now: Timestamp,
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<Outcome>, FirewallError> {
        let Self {
            store,
            keys,
            surroundings,
            ..
        } = self;
        let mut ids = Ids::new(surroundings.as_mut(), now);
        let mut recorded = false;
        let adopted = transact(store, |tx| {
            let mut batch = Batch::default();
            for lot in lots {
                if batch.is_about_the_same(&lot) {
                    batch.enter(tx, keys)?;
                }
                let adopted = weigh(tx, keys, &mut ids, lot, now)?;
                let event = FirewallEvent::Adopted(adopted);
                let at = recorder.record(&event)?;
                recorded = true;
                batch.add(tx, keys, event, at)?;
            }
            batch.enter(tx, keys)?;
            recorder.hand_over()?;
            Ok(batch.finished())
        });
        // What was recorded before the failure is not in the store either.
        store.stopped |= recorded && adopted.is_err();
        adopted
    }
}

/// Most rows that share a signature, but for those of one event: each carries its way to what was signed,
/// and what is saved on signatures is lost on ways beyond this.
const MAX_TOGETHER: usize = 32;

/// Adoptions that are recorded, the last of which the store does not have yet: those are entered together,
/// as long as none is about what another is about.
#[derive(Default)]
struct Batch {
    adopted: Vec<(Adopted, LogPosition)>,
    entered: usize,
    /// What those that are not entered are about.
    about: HashSet<(String, String)>,
}

impl Batch {
    fn is_about_the_same(&self, lot: &Lot) -> bool {
        let mut claims = lot.drafts.iter().map(|draft| &draft.claim.predicate);
        claims.any(|claim| {
            let key = (claim.subject.clone(), claim.relation.clone());
            self.about.contains(&key)
        })
    }

    fn add(
        &mut self,
        tx: &mut dyn Writing,
        keys: &Keyring,
        event: FirewallEvent,
        at: LogPosition,
    ) -> Result<(), FirewallError> {
        let FirewallEvent::Adopted(adopted) = &event else {
            unreachable!("INVARIANT: only adoptions are added")
        };
        let changes_others = !adopted.changes.is_empty() || !adopted.contradictions.is_empty();
        if changes_others || self.about.len() + adopted.claims.len() > MAX_TOGETHER {
            self.enter(tx, keys)?;
        }
        if changes_others {
            enter(tx, keys, &event, &at)?;
            self.entered += 1;
        } else {
            let claims = adopted.claims.iter().map(|claim| &claim.predicate);
            self.about
                .extend(claims.map(|claim| (claim.subject.clone(), claim.relation.clone())));
        }
        let FirewallEvent::Adopted(adopted) = event else {
            unreachable!("INVARIANT: only adoptions are added")
        };
        self.adopted.push((adopted, at));
        Ok(())
    }

    fn enter(&mut self, tx: &mut dyn Writing, keys: &Keyring) -> Result<(), FirewallError> {
        let new = &self.adopted[self.entered..];
        if let Some((_, first)) = new.first() {
            fold::apply_together(tx, keys, new).map_err(|problem| FirewallError::Behind {
                seq: first.seq,
                problem,
            })?;
        }
        self.entered = self.adopted.len();
        self.about.clear();
        Ok(())
    }

    fn finished(self) -> Vec<Outcome> {
        let outcomes = self.adopted.into_iter();
        outcomes
            .map(|(adopted, at)| Outcome { adopted, at })
            .collect()
    }
}

fn weigh(
    tx: &mut dyn Writing,
    keys: &Keyring,
    ids: &mut Ids<'_>,
    lot: Lot,
    now: Timestamp,
) -> Result<Adopted, FirewallError> {
    let Lot {
        observation,
        source,
        drafts,
    } = lot;
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
