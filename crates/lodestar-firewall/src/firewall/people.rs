//! A person's word: orders that move a belief, and assertions that become one.
//!
//! The firewall itself checks the signature, against the keys of its own ring. There is no way to
//! hand it a statement that somebody else found good.

use lodestar_core::canonical;
use lodestar_core::chain::transition::{AuthorityKind, AxisMove};
use lodestar_core::chain::{
    BeliefAuthority, Claim, EvidenceFreshness, EvidenceItem, EvidenceQuality, EvidenceRelation,
    EvidenceSource, ExtractionMethod, Lineage, NonEmpty, Observation, Truth,
};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::{BeliefId, ClaimId, EvidenceId};
use lodestar_core::name::ProjectId;
use lodestar_core::statement::{Assertion, Envelope, Promotion, Verified};
use lodestar_core::time::Timestamp;

use super::adopt::{Draft, Ids, Names, Outcome};
use super::intake::{class, group, predicate};
use super::{Firewall, FirewallError, MAX_WORD_AGE, OrderRefused, enact, genuine, transact};
use crate::event::{
    Cause, Change, FirewallEvent, LogPosition, Promoted, PromotionGround, Recorder,
};
use crate::extract::inert::{MAX_STATEMENT, bounded};
use crate::judge::{self, Grounds};
use crate::row::StoredBelief;

/// The digest by which an order names a claim.
pub fn claim_digest(claim: &Claim) -> Digest {
    match canonical::to_vec(claim) {
        Ok(bytes) => sha256(&bytes),
        // A number that has no canonical form: its own spelling is as exact.
        Err(_) => {
            sha256(&serde_json::to_vec(claim).expect("INVARIANT: chain types have string keys"))
        }
    }
}

impl Firewall {
    /// Follows a person's signed order about one belief: all of its moves, or none.
    pub fn follow_order(
        &mut self,
        project: &ProjectId,
        envelope: &Envelope,
        recorder: &mut dyn Recorder,
    ) -> Result<(Change, LogPosition), FirewallError> {
        let now = self.now();
        let order: Verified<Promotion> = envelope.verify(self.keys.operators(), now)?;
        is_of_today(order.issued().issued_at, now)?;
        let Self {
            store,
            keys,
            surroundings,
            ..
        } = self;
        let mut ids = Ids::new(surroundings.as_mut(), now);
        let wanted = order.subject();
        transact(store, |tx| {
            let belief = genuine(tx, keys, wanted.belief)?;
            is_about(wanted, &belief, project)?;
            permit_all(&belief, &wanted.moves)?;
            let change = Change {
                belief: wanted.belief,
                revision: belief.revision + 1,
                moves: wanted.moves.clone(),
                authority: AuthorityKind::User,
                cause: Cause::Statement(order.digest()),
                at: now,
                evidence: vouched(&order, &mut ids),
            };
            let event = FirewallEvent::Promoted(Promoted {
                change: change.clone(),
                ground: PromotionGround::Statement(envelope.clone()),
            });
            let at = enact(tx, keys, recorder, &event)?;
            Ok((change, at))
        })
    }

    /// Takes in what a person asserts, signed.
    pub fn assert(
        &mut self,
        project: &ProjectId,
        envelope: &Envelope,
        observation: &Observation,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, FirewallError> {
        let now = self.now();
        let assertion: Verified<Assertion> = envelope.verify(self.keys.operators(), now)?;
        let said = assertion.subject();
        same_project(&said.project, project)?;
        is_of_today(assertion.issued().issued_at, now)?;
        // The statement's own digest is the belief's id, so that it comes in once, also after a rebuild.
        let belief = belief_of(&assertion);
        if self.store.row(&belief)?.is_some() {
            return Err(OrderRefused::Used(belief).into());
        }
        let quality = EvidenceQuality::HumanAssertion;
        let predicate = predicate(
            &said.predicate.subject,
            &said.predicate.relation,
            said.predicate.object.clone(),
        )?;
        let mut ids = Ids::new(self.surroundings.as_mut(), now);
        let draft = Draft {
            names: Names {
                belief,
                ..Names::drawn(&mut ids)
            },
            project: observation.project.clone(),
            claim: Claim {
                id: ids.next(ClaimId::from_parts),
                statement: bounded(&said.statement, MAX_STATEMENT),
                predicate,
                source_observations: NonEmpty::one(observation.id),
                extraction_method: ExtractionMethod::Human,
                scope: said.scope.clone(),
                sensitivity: observation.sensitivity,
                lineage: Lineage::of_observation(observation.id, quality),
            },
            source: EvidenceSource::Statement(assertion.digest()),
            quality,
            group: group("person", assertion.issued().key_id.as_str()),
            freshness: EvidenceFreshness::Fresh,
            class: class("asserted"),
            authority: BeliefAuthority::UserAsserted,
            observed_at: assertion.issued().issued_at.min(now),
        };
        self.adopt(observation.id, None, vec![draft], now, recorder)
    }
}

fn is_of_today(issued_at: Timestamp, now: Timestamp) -> Result<(), OrderRefused> {
    match now.since(issued_at) {
        Some(age) if age > MAX_WORD_AGE => Err(OrderRefused::TooOld { at: issued_at }),
        _ => Ok(()),
    }
}

fn belief_of(assertion: &Verified<Assertion>) -> BeliefId {
    let millis = assertion.issued().issued_at.unix_micros() / 1000;
    let digest = assertion.digest();
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    BeliefId::from_parts(u64::try_from(millis).unwrap_or_default(), random)
}

fn same_project(stated: &str, here: &ProjectId) -> Result<(), OrderRefused> {
    if stated == here.as_str() {
        return Ok(());
    }
    Err(OrderRefused::OtherProject {
        stated: bounded(stated, 128),
        here: here.to_string(),
    })
}

fn is_about(
    order: &Promotion,
    belief: &StoredBelief,
    project: &ProjectId,
) -> Result<(), OrderRefused> {
    same_project(&order.project, project)?;
    same_project(&order.project, &belief.adopted.log.project)?;
    let found = claim_digest(&belief.claim);
    if order.claim != found {
        return Err(OrderRefused::OtherClaim {
            stated: order.claim,
            found,
        });
    }
    if order.revision != belief.revision {
        return Err(OrderRefused::OtherRevision {
            stated: order.revision,
            found: belief.revision,
        });
    }
    if order.moves.is_empty() {
        return Err(OrderRefused::NoMove);
    }
    Ok(())
}

fn permit_all(belief: &StoredBelief, moves: &[AxisMove]) -> Result<(), FirewallError> {
    let mut axes = belief.record.axes;
    for &step in moves {
        axes = judge::permit(axes, step, AuthorityKind::User, Grounds::Authority).map_err(
            |refused| FirewallError::Move {
                belief: belief.record.id,
                refused,
            },
        )?;
    }
    Ok(())
}

/// Who says that something is so gives evidence for it.
fn vouched(order: &Verified<Promotion>, ids: &mut Ids<'_>) -> Vec<EvidenceItem> {
    let moves = &order.subject().moves;
    if !moves
        .iter()
        .any(|step| step.to() == Truth::Supported.into())
    {
        return Vec::new();
    }
    vec![EvidenceItem {
        id: ids.next(EvidenceId::from_parts),
        source: EvidenceSource::Statement(order.digest()),
        relation: EvidenceRelation::Supports,
        quality: EvidenceQuality::HumanAssertion,
        independence_group: group("person", order.issued().key_id.as_str()),
        freshness: EvidenceFreshness::Fresh,
    }]
}
