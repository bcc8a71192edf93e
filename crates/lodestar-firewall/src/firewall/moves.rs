//! Moves by those who hold a seat, and promotion by an operator's rule.

use lodestar_core::chain::transition::{AuthorityKind, State};
use lodestar_core::id::BeliefId;

use super::{Firewall, FirewallError, enact, genuine, link, transact};
use crate::authority::{self, Authority, PolicySeat};
use crate::event::{
    Cause, Change, FirewallEvent, LogPosition, Moved, Promoted, PromotionGround, Recorder,
};
use crate::extract::inert::{MAX_STATEMENT, bounded};
use crate::judge::{self, Grounds};
use crate::row::StoredBelief;
use crate::rule::PromotionRule;

/// Why somebody with a seat moves a belief.
#[derive(Debug, Clone, Copy)]
pub enum Finding<'a> {
    /// In words.
    Words(&'a str),
    /// A supported direct belief says otherwise.
    SaysOtherwise(BeliefId),
}

impl Firewall {
    /// Moves a belief along one axis, as far as the table lets the holder of the seat.
    pub fn shift(
        &mut self,
        seat: &dyn Authority,
        belief: BeliefId,
        to: State,
        finding: Finding<'_>,
        recorder: &mut dyn Recorder,
    ) -> Result<(Change, LogPosition), FirewallError> {
        self.check_seat(authority::brand(seat))?;
        let authority = authority::kind(seat);
        let now = self.now();
        let Self { store, keys, .. } = self;
        transact(store, |tx| {
            let found = genuine(tx, keys, belief)?;
            let (grounds, cause) = match finding {
                Finding::Words(words) => (
                    Grounds::Authority,
                    Cause::Finding(bounded(words, MAX_STATEMENT)),
                ),
                Finding::SaysOtherwise(other) => {
                    let other = genuine(tx, keys, other)?;
                    let grounds = if says_otherwise(&other, &found) {
                        Grounds::DirectEvidence
                    } else {
                        Grounds::Authority
                    };
                    (grounds, Cause::Belief(other.record.id))
                }
            };
            let axes = found.record.axes;
            let step = judge::between(axes.on(to.axis()), to);
            judge::permit_by(keys.rigour(), axes, step, authority, grounds)
                .map_err(|refused| FirewallError::Move { belief, refused })?;
            let change = Change {
                belief,
                revision: found.revision + 1,
                moves: vec![step],
                authority,
                cause,
                at: now,
                evidence: Vec::new(),
            };
            let event = FirewallEvent::Moved(Moved {
                changes: vec![change.clone()],
            });
            let at = enact(tx, keys, recorder, &event)?;
            Ok((change, at))
        })
    }

    /// Promotes a belief by a rule of the operator that holds now and names it.
    pub fn promote_by_rule(
        &mut self,
        seat: &PolicySeat,
        rule: &PromotionRule,
        belief: BeliefId,
        recorder: &mut dyn Recorder,
    ) -> Result<(Change, LogPosition), FirewallError> {
        self.check_seat(authority::brand(seat))?;
        let now = self.now();
        rule.check(now)?;
        let Self { store, keys, .. } = self;
        transact(store, |tx| {
            let found = genuine(tx, keys, belief)?;
            rule.names(&found)?;
            let authority = AuthorityKind::Policy;
            let moves = judge::promotion(
                found.record.axes,
                authority,
                Grounds::Rule,
                rule.lifts_retrieval,
            )
            .map_err(|refused| FirewallError::Move { belief, refused })?;
            let change = Change {
                belief,
                revision: found.revision + 1,
                moves,
                authority,
                cause: Cause::Rule(rule.id.clone()),
                at: now,
                evidence: Vec::new(),
            };
            let event = FirewallEvent::Promoted(Promoted {
                change: change.clone(),
                ground: PromotionGround::Rule {
                    rule: rule.clone(),
                    evidence: found.evidence.items,
                },
            });
            let at = enact(tx, keys, recorder, &event)?;
            Ok((change, at))
        })
    }
}

/// Whether a direct belief that stands speaks against another.
fn says_otherwise(direct: &StoredBelief, other: &StoredBelief) -> bool {
    link::may_speak(direct)
        && direct.record.scope == other.record.scope
        && direct.claim.predicate.same_key(&other.claim.predicate)
        && direct.claim.predicate.object != other.claim.predicate.object
}
