//! Evidence linking: what beliefs with the same key mean for a new one, and a new one for them.
//!
//! Only direct beliefs that are genuine and supported lend their evidence; documents lend nothing
//! and take nothing away. Cost is bounded: at most so many of each kind are looked at.

use lodestar_core::chain::belief::gate;
use lodestar_core::chain::transition::{AuthorityKind, Axis};
use lodestar_core::chain::{
    Belief, Directness, EvidenceFreshness, EvidenceItem, EvidenceQuality, EvidenceRelation,
    EvidenceSet, EvidenceSource, Freshness, Retrieval, Security, Truth,
};
use lodestar_core::defence::Defence;
use lodestar_core::id::EvidenceId;
use lodestar_core::name::IndependenceGroup;
use lodestar_core::time::Timestamp;

use super::adopt::{Draft, Ids};
use super::{FirewallError, only_genuine};
use crate::event::{Cause, Change, Contradiction};
use crate::judge::{self, Grounds};
use crate::row::keys::Keyring;
use crate::row::{Key, StoredBelief};
use crate::store::Writing;

/// Most settled beliefs of one key that a new one takes the place of at once. More than that agree
/// with each other; the next observation takes the next, and reflection finds those left.
pub(super) const MAX_SETTLED: usize = 256;

/// Most direct beliefs whose evidence a claim is weighed with: one supersedes another, so there is
/// hardly ever more than one.
const MAX_LINKED: usize = 8;

/// Most rumours of one key that a direct claim promotes or contradicts at once, newest first.
const MAX_RUMOURS: usize = 64;

/// Settled beliefs with the key of a draft, and the key.
pub(super) struct Known {
    key: Option<Key>,
    settled: Vec<StoredBelief>,
}

/// What follows for older beliefs.
#[derive(Default)]
pub(super) struct Following {
    pub(super) changes: Vec<Change>,
    pub(super) contradictions: Vec<Contradiction>,
}

/// Looks up what is settled about the same thing.
pub(super) fn same_key(
    tx: &mut dyn Writing,
    keys: &Keyring,
    draft: &Draft,
) -> Result<Known, FirewallError> {
    let key = Key::of(&draft.claim.scope, &draft.claim.predicate);
    let limit = if is_direct(draft.quality) {
        MAX_SETTLED
    } else {
        MAX_LINKED
    };
    let settled = match &key {
        Some(key) => of_project(draft, only_genuine(keys, tx.settled(key, limit)?)?),
        None => Vec::new(),
    };
    Ok(Known { key, settled })
}

/// A project's log says what becomes of its own beliefs; those of others in the same store stay.
fn of_project(draft: &Draft, mut found: Vec<StoredBelief>) -> Vec<StoredBelief> {
    found.retain(|belief| belief.adopted.log.project == draft.project);
    found
}

pub(super) fn is_direct(quality: EvidenceQuality) -> bool {
    quality.directness() == Directness::Direct
}

/// Seen or measured, not said: only this takes the place of what was observed before.
fn is_observation(quality: EvidenceQuality) -> bool {
    matches!(
        quality,
        EvidenceQuality::DirectObservation | EvidenceQuality::ToolResult
    )
}

/// Whether the draft takes the place of an older settled belief: it is a direct observation that is
/// not older; or the same kind of word, a person's, said later.
///
/// A belief from the future, which a wrong clock stamped, is no newer than what is seen now.
fn replaces(draft: &Draft, older: &StoredBelief, now: Timestamp) -> bool {
    let not_older = draft.observed_at >= older.record.observed_at.min(now);
    let said_again = draft.quality == EvidenceQuality::HumanAssertion
        && older.claim.lineage.quality() <= EvidenceQuality::HumanAssertion;
    not_older && (is_observation(draft.quality) || said_again)
}

/// The belief's own direct evidence, as one item for or against another claim.
fn lent(belief: &StoredBelief, relation: EvidenceRelation, id: EvidenceId) -> Option<EvidenceItem> {
    let own = belief.evidence.items.first()?;
    Some(EvidenceItem {
        id,
        source: EvidenceSource::Claim(belief.claim.id),
        relation,
        quality: belief.claim.lineage.quality(),
        independence_group: own.independence_group.clone(),
        freshness: match belief.record.axes.freshness {
            Freshness::Fresh => EvidenceFreshness::Fresh,
            Freshness::Stale | Freshness::Expired => EvidenceFreshness::Stale,
        },
    })
}

/// Whether a belief can speak for or against another: direct, supported, and neither set apart,
/// blocked nor too old to use.
pub(super) fn may_speak(belief: &StoredBelief) -> bool {
    let axes = belief.record.axes;
    is_direct(belief.claim.lineage.quality())
        && axes.truth == Truth::Supported
        && axes.security == Security::Clean
        && axes.retrieval != Retrieval::Blocked
        && axes.freshness != Freshness::Expired
}

fn independent(a: &StoredBelief, draft: &Draft) -> bool {
    let shared = |o: &lodestar_core::chain::Origin| draft.claim.lineage.goes_back_to(o.observation);
    !a.claim.lineage.origins.iter().any(shared)
        && !draft.claim.lineage.derived_from.contains(&a.claim.id)
}

/// Evidence for and against the draft, from direct beliefs that it does not replace.
///
/// What is read while a direct belief says the same stays a rumour: it would add nothing but its own
/// words to what is believed. Only evidence that arrives later promotes.
pub(super) fn linked(
    tx: &mut dyn Writing,
    keys: &Keyring,
    known: &Known,
    draft: &Draft,
    ids: &mut Ids<'_>,
    now: Timestamp,
) -> Result<Vec<EvidenceItem>, FirewallError> {
    let mut items = lent_to(known, draft, ids, now);
    // For a harness that takes `NoVetoByReading` out: what was read before speaks against it.
    if !keys.rigour().keeps(Defence::NoVetoByReading)
        && is_direct(draft.quality)
        && let Some(key) = &known.key
    {
        for rumour in only_genuine(keys, tx.unverified(key, MAX_RUMOURS)?)? {
            let id = ids.next(EvidenceId::from_parts);
            if rumour.claim.predicate.object != draft.claim.predicate.object {
                items.extend(lent(&rumour, EvidenceRelation::Contradicts, id));
            }
        }
    }
    Ok(items)
}

fn lent_to(known: &Known, draft: &Draft, ids: &mut Ids<'_>, now: Timestamp) -> Vec<EvidenceItem> {
    known
        .settled
        .iter()
        .filter(|other| {
            may_speak(other) && independent(other, draft) && !replaces(draft, other, now)
        })
        .take(MAX_LINKED)
        .filter_map(|other| {
            let agrees = other.claim.predicate.object == draft.claim.predicate.object;
            let relation = match (agrees, is_direct(draft.quality)) {
                // For readers: it may be superseded by the time that something speaks for a rumour.
                (_, false) => EvidenceRelation::Contextualizes,
                (true, true) => EvidenceRelation::Supports,
                (false, true) => EvidenceRelation::Contradicts,
            };
            lent(other, relation, ids.next(EvidenceId::from_parts))
        })
        .collect()
}

/// What the new belief means for older ones.
#[allow(
    clippy::too_many_arguments,
    reason = "one step of an intake, split off to be read alone"
)]
pub(super) fn follow(
    tx: &mut dyn Writing,
    keys: &Keyring,
    known: &Known,
    draft: &Draft,
    belief: &Belief,
    evidence: &EvidenceSet,
    ids: &mut Ids<'_>,
    now: Timestamp,
) -> Result<Following, FirewallError> {
    let mut following = Following::default();
    let Some(key) = &known.key else {
        return Ok(following);
    };
    let supported = belief.axes().truth == Truth::Supported;
    let direct = is_direct(draft.quality);
    for older in &known.settled {
        let differs = older.claim.predicate.object != draft.claim.predicate.object;
        let older_is_direct = is_direct(older.claim.lineage.quality());
        // For a harness that takes `Supersession` out: what was observed before stays where it is.
        let takes_place = keys.rigour().keeps(Defence::Supersession) && replaces(draft, older, now);
        if supported && direct && takes_place && (differs || older_is_direct) {
            following.changes.extend(superseded(older, draft, now));
        } else if differs && older.record.axes.truth == Truth::Supported {
            following.contradictions.push(Contradiction {
                belief: older.record.id,
                against: belief.id(),
            });
        }
    }
    if supported && direct {
        let rumours = only_genuine(keys, tx.unverified(key, MAX_RUMOURS)?)?;
        for rumour in of_project(draft, rumours) {
            if rumour.claim.predicate.object == draft.claim.predicate.object {
                let group = &evidence.items[0].independence_group;
                let item = supporting(draft, group, ids);
                following
                    .changes
                    .extend(promoted(keys, &rumour, draft, item, now));
            } else if draft.claim.sensitivity <= rumour.claim.sensitivity {
                following.contradictions.push(Contradiction {
                    belief: belief.id(),
                    against: rumour.record.id,
                });
            }
        }
    }
    Ok(following)
}

/// Whether an older settled belief lends something to the draft, or the draft says something of it: as
/// [`linked`] and [`follow`] find it, for somebody who asks afterwards.
pub(super) fn has_a_say(older: &StoredBelief, draft: &Draft, truth: Truth, now: Timestamp) -> bool {
    let replaced = replaces(draft, older, now);
    let lends = may_speak(older) && independent(older, draft) && !replaced;
    let differs = older.claim.predicate.object != draft.claim.predicate.object;
    let older_is_direct = is_direct(older.claim.lineage.quality());
    let is_told = truth == Truth::Supported && is_direct(draft.quality);
    let said_of_it = if is_told && replaced && (differs || older_is_direct) {
        superseded(older, draft, now).is_some()
    } else {
        differs && older.record.axes.truth == Truth::Supported
    };
    lends || said_of_it
}

fn superseded(older: &StoredBelief, draft: &Draft, now: Timestamp) -> Option<Change> {
    let axes = older.record.axes;
    let step = judge::between(axes.on(Axis::Truth), Truth::Superseded.into());
    let (authority, grounds) = if is_observation(draft.quality) {
        (
            AuthorityKind::AutoObservation,
            Grounds::NewerDirectObservation,
        )
    } else {
        (AuthorityKind::User, Grounds::Authority)
    };
    judge::permit(axes, step, authority, grounds).ok()?;
    Some(Change {
        belief: older.record.id,
        revision: older.revision + 1,
        moves: vec![step],
        authority,
        cause: Cause::Claim(draft.claim.id),
        at: now,
        evidence: Vec::new(),
    })
}

fn supporting(draft: &Draft, group: &IndependenceGroup, ids: &mut Ids<'_>) -> EvidenceItem {
    EvidenceItem {
        id: ids.next(EvidenceId::from_parts),
        source: EvidenceSource::Claim(draft.claim.id),
        relation: EvidenceRelation::Supports,
        quality: draft.quality,
        independence_group: group.clone(),
        freshness: draft.freshness,
    }
}

/// Weighs a rumour again with the direct evidence that arrived; `None` if it does not carry it.
fn promoted(
    keys: &Keyring,
    rumour: &StoredBelief,
    draft: &Draft,
    item: EvidenceItem,
    now: Timestamp,
) -> Option<Change> {
    // Promoting what is less sensitive would tell what the direct evidence is.
    if !independent(rumour, draft) || draft.claim.sensitivity > rumour.claim.sensitivity {
        return None;
    }
    let mut evidence = rumour.evidence.clone();
    evidence.items.push(item.clone());
    let truth = gate::weigh_by(&evidence, keys.rigour()).truth;
    let authority = AuthorityKind::AutoObservation;
    let moves = judge::promotion(rumour.record.axes, authority, Grounds::Gate(truth), true).ok()?;
    Some(Change {
        belief: rumour.record.id,
        revision: rumour.revision + 1,
        moves,
        authority,
        cause: Cause::Claim(draft.claim.id),
        at: now,
        evidence: vec![item],
    })
}

#[cfg(test)]
mod tests;
