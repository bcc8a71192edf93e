//! From drafts to beliefs: ids, evidence, the gate, and one event for all of it.

use std::collections::HashSet;

use lodestar_core::chain::{
    Adoption, AdoptionRefused, Belief, BeliefAuthority, BeliefRecord, Claim, Confidence,
    EvidenceFreshness, EvidenceItem, EvidenceQuality, EvidenceRelation, EvidenceSet,
    EvidenceSource, Predicate, Rigour, Truth,
};
use lodestar_core::id::{BeliefId, EvidenceId, EvidenceSetId, ObservationId};
use lodestar_core::name::{CalibrationClass, IndependenceGroup, ProjectId};
use lodestar_core::time::Timestamp;

use super::link::{self, Following};
use super::plain::Plain;
use super::{Firewall, FirewallError, enter, transact};
use crate::event::{
    Adopted, FirewallEvent, LogPosition, Recorder, ResultsAdopted, Source, Surroundings,
};
use crate::fold;
use crate::row::keys::Keyring;
use crate::store::Writing;

/// A claim that is to be weighed, with the evidence that it brings along itself.
pub(super) struct Draft {
    pub(super) names: Names,
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

/// The ids of what comes of one claim.
pub(super) struct Names {
    pub(super) evidence: EvidenceId,
    pub(super) evidence_set: EvidenceSetId,
    pub(super) belief: BeliefId,
}

impl Names {
    pub(super) fn drawn(ids: &mut Ids<'_>) -> Self {
        Self {
            evidence: ids.next(EvidenceId::from_parts),
            evidence_set: ids.next(EvidenceSetId::from_parts),
            belief: ids.next(BeliefId::from_parts),
        }
    }
}

/// What came of an intake.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was adopted, and what followed.
    pub adopted: Adopted,
    /// The event that says so.
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
    /// The event that recorded a tool's result; none for what is no such, or where nobody knows.
    pub(super) recorded: Option<u64>,
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
            recorded: None,
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
        let mut batch = Batch::new(now);
        let done = transact(store, |tx| {
            for lot in lots {
                batch.add(tx, keys, &mut ids, lot, recorder)?;
            }
            batch.enter(tx, keys, recorder)?;
            Ok(recorder.hand_over()?)
        });
        // What was recorded before the failure is not in the store either.
        store.stopped |= batch.recorded && done.is_err();
        done.map(|()| batch.outcomes)
    }
}

/// What adoptions that wait together are about.
#[derive(Default)]
struct About(HashSet<(String, String)>);

impl About {
    fn add(&mut self, claim: &Predicate) {
        self.0
            .insert((claim.subject.clone(), claim.relation.clone()));
    }

    fn has(&self, claim: &Predicate) -> bool {
        let key = (claim.subject.clone(), claim.relation.clone());
        !self.0.is_empty() && self.0.contains(&key)
    }
}

/// Adoptions in their order. Those that say nothing beyond themselves gather, and are recorded with one
/// event and entered together: before anything else is recorded, and before anything is weighed that
/// they have a say in.
struct Batch {
    now: Timestamp,
    gathered: Vec<(u64, Plain)>,
    /// What those that gathered say is so, and what they have only heard.
    settled: About,
    rumours: About,
    outcomes: Vec<Outcome>,
    recorded: bool,
}

impl Batch {
    fn new(now: Timestamp) -> Self {
        Self {
            now,
            gathered: Vec::new(),
            settled: About::default(),
            rumours: About::default(),
            outcomes: Vec::new(),
            recorded: false,
        }
    }

    fn add(
        &mut self,
        tx: &mut dyn Writing,
        keys: &Keyring,
        ids: &mut Ids<'_>,
        lot: Lot,
        recorder: &mut dyn Recorder,
    ) -> Result<(), FirewallError> {
        if self.has_a_say(&lot) {
            self.enter(tx, keys, recorder)?;
        }
        match weigh(tx, keys, ids, lot, self.now)? {
            Weighed::Plain(seq, plain) => self.gather(seq, plain),
            Weighed::Whole(adopted) => {
                self.enter(tx, keys, recorder)?;
                let event = FirewallEvent::Adopted(adopted);
                let at = self.record(&event, recorder)?;
                enter(tx, keys, &event, &at)?;
                if let FirewallEvent::Adopted(adopted) = event {
                    self.outcomes.push(Outcome { adopted, at });
                }
            }
        }
        Ok(())
    }

    /// Whether what gathered has to be in the store before this is weighed. What was only heard neither
    /// lends nor takes anything, unless something direct comes along: so many may read one thing.
    fn has_a_say(&self, lot: &Lot) -> bool {
        lot.drafts.iter().any(|draft| {
            let claim = &draft.claim.predicate;
            self.settled.has(claim) || link::is_direct(draft.quality) && self.rumours.has(claim)
        })
    }

    fn gather(&mut self, seq: u64, plain: Plain) {
        let adopted = plain.adopted();
        for (claim, belief) in adopted.claims.iter().zip(&adopted.beliefs) {
            match belief.axes.truth {
                Truth::Unverified => self.rumours.add(&claim.predicate),
                _ => self.settled.add(&claim.predicate),
            }
        }
        self.gathered.push((seq, plain));
    }

    fn record(
        &mut self,
        event: &FirewallEvent,
        recorder: &mut dyn Recorder,
    ) -> Result<LogPosition, FirewallError> {
        let at = recorder.record(event)?;
        self.recorded = true;
        Ok(at)
    }

    /// Records what gathered, and lets the store have it.
    fn enter(
        &mut self,
        tx: &mut dyn Writing,
        keys: &Keyring,
        recorder: &mut dyn Recorder,
    ) -> Result<(), FirewallError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let (results, plain): (Vec<_>, Vec<_>) = self.gathered.drain(..).unzip();
        (self.settled, self.rumours) = (About::default(), About::default());
        let event = FirewallEvent::ResultsAdopted(ResultsAdopted {
            adopted_at: self.now,
            results,
        });
        let at = self.record(&event, recorder)?;
        fold::enter_results(tx, keys, &plain, &at).map_err(|problem| FirewallError::Behind {
            seq: at.seq,
            problem,
        })?;
        self.outcomes.extend(plain.into_iter().map(|plain| Outcome {
            adopted: plain.into_adopted(),
            at: at.clone(),
        }));
        Ok(())
    }
}

/// What came of weighing one lot.
enum Weighed {
    /// It says nothing beyond itself, and the event with this number has what it follows from.
    Plain(u64, Plain),
    /// All of it has to be written down.
    Whole(Adopted),
}

fn weigh(
    tx: &mut dyn Writing,
    keys: &Keyring,
    ids: &mut Ids<'_>,
    lot: Lot,
    now: Timestamp,
) -> Result<Weighed, FirewallError> {
    let Lot {
        observation,
        recorded,
        source,
        drafts,
    } = lot;
    let mut adopted = Adopted::nothing(observation, source, drafts.len());
    let mut stands_alone = true;
    for mut draft in drafts {
        // A clock that was wrong elsewhere does not make anything newer than now.
        draft.observed_at = draft.observed_at.min(now);
        let known = link::same_key(tx, keys, &draft)?;
        let linked = link::linked(tx, keys, &known, &draft, ids, now)?;
        stands_alone &= linked.is_empty();
        let (evidence, belief) = believed(&draft, linked, now, keys.rigour())?;
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
        adopted.add(draft.claim, evidence, &belief);
    }
    stands_alone &= adopted.changes.is_empty() && adopted.contradictions.is_empty();
    Ok(match recorded.filter(|_| stands_alone) {
        Some(seq) => Weighed::Plain(seq, Plain::found(adopted)),
        None => Weighed::Whole(adopted),
    })
}

/// What is believed of a claim by the evidence that it brings along and what older beliefs lend.
pub(super) fn believed(
    draft: &Draft,
    linked: Vec<EvidenceItem>,
    now: Timestamp,
    rigour: Rigour,
) -> Result<(EvidenceSet, Belief), AdoptionRefused> {
    let own = EvidenceItem {
        id: draft.names.evidence,
        source: draft.source,
        relation: EvidenceRelation::Supports,
        quality: draft.quality,
        independence_group: draft.group.clone(),
        freshness: draft.freshness,
    };
    let mut items = vec![own];
    items.extend(linked);
    let evidence = EvidenceSet {
        id: draft.names.evidence_set,
        claim: draft.claim.id,
        items,
        assembled_at: now,
    };
    let adoption = Adoption {
        id: draft.names.belief,
        claim: &draft.claim,
        evidence: &evidence,
        confidence: Confidence::EXTRACTED,
        calibration_class: draft.class.clone(),
        authority: draft.authority,
        observed_at: draft.observed_at.min(now),
        adopted_at: now,
    };
    let belief = Belief::adopt_by(adoption, rigour)?;
    Ok((evidence, belief))
}

impl Adopted {
    /// Before anything was adopted.
    pub(super) fn nothing(
        observation: ObservationId,
        source: Option<Source>,
        claims: usize,
    ) -> Self {
        Self {
            observation,
            source,
            claims: Vec::with_capacity(claims),
            evidence: Vec::with_capacity(claims),
            beliefs: Vec::with_capacity(claims),
            changes: Vec::new(),
            contradictions: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, claim: Claim, evidence: EvidenceSet, belief: &Belief) {
        self.beliefs.push(BeliefRecord::from(belief));
        self.claims.push(claim);
        self.evidence.push(evidence);
    }
}
