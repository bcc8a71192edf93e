//! From recorded events to rows: the one fold by which a store follows the log, live and rebuilt.
//!
//! Adoptions only add rows. Changes of one belief have an order of their own, its revisions, so the
//! rows that follow do not depend on how sessions were interleaved. A change whose turn has not come
//! yet is given back as [`Waiting`]; [`Rebuild`] keeps those until it has.

use std::collections::HashSet;

use lodestar_core::chain::belief::gate;
use lodestar_core::chain::transition::AuthorityKind;
use lodestar_core::chain::{
    Adoption, Belief, BeliefRecord, Claim, EvidenceQuality, EvidenceSet, EvidenceSource, Retrieval,
    Truth, transition,
};
use lodestar_core::id::BeliefId;
use thiserror::Error;

use crate::Plain;
use crate::event::{Adopted, Cause, Change, FirewallEvent, LogPosition, PromotionGround};
use crate::judge;
use crate::row::keys::{Keyring, Standing};
use crate::row::{BadRow, Key, StoredBelief, StoredRow};
use crate::store::{HistoryRow, StoreError, Writing};

/// Why an event was not applied.
#[derive(Debug, Error)]
pub enum FoldError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row that the event changes is not what the log says.
    #[error(transparent)]
    BadRow(#[from] BadRow),
    /// The row that the event changes was edited or is not trusted.
    #[error(
        "belief `{0}` is changed by an event, but its row in the store is not genuine; rebuild the store"
    )]
    NotGenuine(String),
    /// The payload contradicts itself.
    #[error("event #{seq} of session `{session}` cannot be applied: {problem}")]
    BadEvent {
        /// The session.
        session: String,
        /// The event.
        seq: u64,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A change whose turn has not come.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The change.
    pub change: Change,
    /// The event that says so.
    pub at: LogPosition,
}

/// Applies one event of a log of this installation; once, however often it is asked to.
///
/// Events of a log come in their order. What cannot be applied yet is given back.
pub fn apply(
    store: &mut dyn Writing,
    keys: &Keyring,
    event: &FirewallEvent,
    at: &LogPosition,
) -> Result<Vec<Waiting>, FoldError> {
    apply_so(store, keys, event, at, Way::Live)
}

/// Most rows that share a signature, but for those of one `belief.adopted@1`: each carries its way to
/// what was signed, and what is saved on signatures is lost on ways beyond this.
const MOST_SIGNED: usize = 32;

/// Applies what a `belief.adopted@2` that was recorded just now adopted.
pub(crate) fn enter_results(
    store: &mut dyn Writing,
    keys: &Keyring,
    results: &[Plain],
    at: &LogPosition,
) -> Result<(), FoldError> {
    if at.seq < store.next(keys.own_id().as_str(), &at.log)? {
        return Err(bad(at, "the store knows more than its log: rebuild it"));
    }
    adopt_results(store, keys, results, at, Way::Live)
}

/// They only add rows, and whoever has them has them from the gate: there is nothing to check.
fn adopt_results(
    store: &mut dyn Writing,
    keys: &Keyring,
    results: &[Plain],
    at: &LogPosition,
    way: Way,
) -> Result<(), FoldError> {
    adopt_some(store, keys, results, at, way, &|_| true)
}

fn adopt_some(
    store: &mut dyn Writing,
    keys: &Keyring,
    results: &[Plain],
    at: &LogPosition,
    way: Way,
    wanted: &dyn Fn(&StoredBelief) -> bool,
) -> Result<(), FoldError> {
    let beliefs = results.iter();
    let beliefs = beliefs.flat_map(|one| StoredBelief::adopted(one.adopted(), at));
    let beliefs = beliefs.filter(wanted);
    let mut rows: Vec<_> = beliefs.map(|belief| StoredRow::of(&belief)).collect();
    rows.chunks_mut(MOST_SIGNED)
        .for_each(|some| keys.sign(some));
    insert(store, &rows, way)?;
    store.advance(keys.own_id().as_str(), &at.log, at.seq + 1)?;
    Ok(())
}

/// Whether rows are expected to be new.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// They are.
    Live,
    /// A store is made again, and may hold anything.
    Again,
}

fn apply_so(
    store: &mut dyn Writing,
    keys: &Keyring,
    event: &FirewallEvent,
    at: &LogPosition,
    way: Way,
) -> Result<Vec<Waiting>, FoldError> {
    let signer = keys.own_id().as_str();
    if at.seq < store.next(signer, &at.log)? {
        return Ok(Vec::new());
    }
    if !are_in_place(event) {
        return Err(bad(
            at,
            "it changes a belief in a way that such an event cannot",
        ));
    }
    if let FirewallEvent::ResultsAdopted(_) = event {
        return Err(bad(
            at,
            "it names results, which have to be looked up in its log",
        ));
    }
    let mut waiting = Vec::new();
    if let FirewallEvent::Adopted(adopted) = event {
        adopt(store, keys, adopted, at, way)?;
    }
    for change in changes(event) {
        if !follow(store, keys, change, at)? {
            waiting.push(Waiting {
                change: change.clone(),
                at: at.clone(),
            });
        }
    }
    if let FirewallEvent::Adopted(adopted) = event {
        store.add_contradictions(&adopted.contradictions)?;
    }
    store.advance(signer, &at.log, at.seq + 1)?;
    Ok(waiting)
}

/// The changes that an event makes to beliefs that were there before.
pub fn changes(event: &FirewallEvent) -> &[Change] {
    match event {
        FirewallEvent::Adopted(adopted) => &adopted.changes,
        FirewallEvent::Moved(moved) => &moved.changes,
        FirewallEvent::Promoted(promoted) => std::slice::from_ref(&promoted.change),
        FirewallEvent::ResultsAdopted(_)
        | FirewallEvent::ReadPrivileged(_)
        | FirewallEvent::Reflected(_)
        | FirewallEvent::Revised(_) => &[],
    }
}

/// The rows of an adoption, if it is one that the gate could have made; not yet signed.
fn adopted_rows(event: &Adopted, at: &LogPosition) -> Result<Vec<StoredRow>, FoldError> {
    let belong_together = event.claims.len() == event.beliefs.len()
        && event.evidence.len() == event.beliefs.len()
        && event
            .beliefs
            .iter()
            .zip(event.claims.iter().zip(&event.evidence))
            .all(|(belief, (claim, evidence))| {
                belief.claim == claim.id
                    && evidence.claim == claim.id
                    && belief.evidence_set == evidence.id
                    && belief.scope == claim.scope
                    && belief.sensitivity == claim.sensitivity
            });
    if !belong_together {
        return Err(bad(
            at,
            "its claims, evidence and beliefs do not belong together",
        ));
    }
    let derived_again = event
        .beliefs
        .iter()
        .zip(event.claims.iter().zip(&event.evidence))
        .all(|(record, (claim, evidence))| follows(record, claim, evidence));
    if !derived_again {
        return Err(bad(at, "a belief in it does not follow from its evidence"));
    }
    let beliefs = StoredBelief::adopted(event, at);
    Ok(beliefs.map(|belief| StoredRow::of(&belief)).collect())
}

fn adopt(
    store: &mut dyn Writing,
    keys: &Keyring,
    event: &Adopted,
    at: &LogPosition,
    way: Way,
) -> Result<(), FoldError> {
    let mut rows = adopted_rows(event, at)?;
    keys.sign(&mut rows);
    insert(store, &rows, way)
}

fn insert(store: &mut dyn Writing, rows: &[StoredRow], way: Way) -> Result<(), FoldError> {
    if let Way::Again = way {
        // The log says what these rows are; whatever stands in their place was put there.
        let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
        store.remove(&ids)?;
    }
    store.insert(rows)?;
    Ok(())
}

fn bad(at: &LogPosition, problem: &'static str) -> FoldError {
    FoldError::BadEvent {
        session: at.log.session.to_string(),
        seq: at.seq,
        problem,
    }
}

/// Whether the gate, asked again, makes the same of the evidence.
fn follows(record: &BeliefRecord, claim: &Claim, evidence: &EvidenceSet) -> bool {
    let adoption = Adoption {
        id: record.id,
        claim,
        evidence,
        confidence: record.confidence,
        calibration_class: record.calibration_class.clone(),
        authority: record.authority,
        observed_at: record.observed_at,
        adopted_at: record.adopted_at,
    };
    Belief::adopt(adoption).is_ok_and(|belief| BeliefRecord::from(&belief) == *record)
}

/// Whether the change is one that its authority may make, on the grounds that it names: the table has
/// every move, or it is the lift that goes with a promotion; and what leads to `supported` is the
/// gate asked again, a statement that stands among the evidence, or a rule.
fn is_permitted(belief: &StoredBelief, change: &Change) -> bool {
    let promotes = promotes(change);
    let lift = judge::between(Retrieval::Restricted.into(), Retrieval::Normal.into());
    let in_table = change.moves.iter().all(|&step| {
        transition::condition(step, change.authority).is_ok() || (promotes && step == lift)
    });
    let by_clock = change.moves.iter().all(|step| {
        change.authority != AuthorityKind::System
            || (step.axis() == transition::Axis::Freshness && change.cause == Cause::Clock)
    });
    in_table && by_clock && (!promotes || has_grounds(belief, change))
}

fn promotes(change: &Change) -> bool {
    let mut steps = change.moves.iter();
    steps.any(|step| step.to() == Truth::Supported.into())
}

fn has_grounds(belief: &StoredBelief, change: &Change) -> bool {
    match (change.authority, &change.cause) {
        (AuthorityKind::AutoObservation, Cause::Claim(_)) => {
            let mut evidence = belief.evidence.clone();
            evidence.items.extend_from_slice(&change.evidence);
            gate::weigh(&evidence).truth == Truth::Supported
        }
        (AuthorityKind::User, Cause::Statement(digest)) => {
            let mut items = change.evidence.iter();
            items.any(|item| {
                item.source == EvidenceSource::Statement(*digest)
                    && item.quality == EvidenceQuality::HumanAssertion
            })
        }
        (AuthorityKind::Policy, Cause::Rule(_)) | (AuthorityKind::Probe, _) => true,
        _ => false,
    }
}

/// Whether changes stand in the kind of event that may carry them.
fn are_in_place(event: &FirewallEvent) -> bool {
    changes(event).iter().all(|change| {
        let by = change.authority;
        match event {
            FirewallEvent::Adopted(_) => {
                matches!(by, AuthorityKind::AutoObservation | AuthorityKind::User)
                    && (by == AuthorityKind::AutoObservation || !promotes(change))
            }
            FirewallEvent::Promoted(promoted) => match &promoted.ground {
                PromotionGround::Statement(envelope) => {
                    by == AuthorityKind::User && change.cause == Cause::Statement(envelope.digest())
                }
                PromotionGround::Rule { rule, .. } => {
                    by == AuthorityKind::Policy && change.cause == Cause::Rule(rule.id.clone())
                }
            },
            _ => !promotes(change) || by == AuthorityKind::Probe,
        }
    })
}

/// Makes one change, if its turn has come.
fn follow(
    store: &mut dyn Writing,
    keys: &Keyring,
    change: &Change,
    at: &LogPosition,
) -> Result<bool, FoldError> {
    let Some(row) = store.row(&change.belief)? else {
        return Ok(false);
    };
    if keys.standing(&row) != Standing::Genuine {
        return Err(FoldError::NotGenuine(change.belief.to_string()));
    }
    let belief = row.open()?;
    if belief.changed == *at && belief.revision == change.revision {
        // A row of another machine, which a rebuild of ours leaves where it is.
        return Ok(true);
    }
    if !belief.fits(change) {
        return Ok(false);
    }
    if !is_permitted(&belief, change) {
        return Err(bad(at, "it moves a belief in a way that nobody may"));
    }
    let mut after = [StoredRow::of(&belief.after(change, at))];
    keys.sign(&mut after);
    store.replace(&after[0])?;
    store.add_history(&HistoryRow {
        change: change.clone(),
        at: at.clone(),
    })?;
    Ok(true)
}

/// Applies the events of many logs, whatever order the logs come in.
#[derive(Debug, Default)]
pub struct Rebuild {
    waiting: Vec<Waiting>,
}

impl Rebuild {
    /// Applies an event, and keeps what has to wait.
    pub fn apply(
        &mut self,
        store: &mut dyn Writing,
        keys: &Keyring,
        event: &FirewallEvent,
        at: &LogPosition,
    ) -> Result<(), FoldError> {
        let waiting = apply_so(store, keys, event, at, Way::Again)?;
        self.waiting.extend(waiting);
        Ok(())
    }

    /// Applies what a `belief.adopted@2` adopted; once, however often it is asked to.
    ///
    /// That the log says so is enough for the rows: whether an older belief should have spoken up
    /// depends on what other sessions had done by then, which comes in any order here.
    pub fn apply_results(
        &mut self,
        store: &mut dyn Writing,
        keys: &Keyring,
        results: &[Plain],
        at: &LogPosition,
    ) -> Result<(), FoldError> {
        if at.seq < store.next(keys.own_id().as_str(), &at.log)? {
            return Ok(());
        }
        adopt_results(store, keys, results, at, Way::Again)
    }

    /// The same for a store that is thrown away afterwards: of what was adopted it only gets what is ever
    /// looked at again, which is what a later change names, and what is settled about things that others may
    /// speak of.
    pub fn apply_needed(
        &mut self,
        store: &mut dyn Writing,
        keys: &Keyring,
        results: &[Plain],
        at: &LogPosition,
        named: &HashSet<BeliefId>,
    ) -> Result<(), FoldError> {
        if at.seq < store.next(keys.own_id().as_str(), &at.log)? {
            return Ok(());
        }
        // INVARIANT: an adoption is read again by its id, if a change names it, or by its key among those
        // that are settled; there is no third way in this file or in `Plain::contested`.
        let is_needed = |belief: &StoredBelief| {
            let is_settled = belief.record.axes.truth != Truth::Unverified;
            named.contains(&belief.record.id)
                || (is_settled && Key::of(&belief.claim.scope, &belief.claim.predicate).is_some())
        };
        adopt_some(store, keys, results, at, Way::Again, &is_needed)
    }

    /// Applies what had to wait, and gives back what never had its turn: two sessions that both
    /// made the same revision of a belief, where one of them was cut short before the store knew.
    pub fn finish(
        mut self,
        store: &mut dyn Writing,
        keys: &Keyring,
    ) -> Result<Vec<Waiting>, FoldError> {
        self.waiting.sort_by(|a, b| {
            let place = |w: &Waiting| {
                (
                    w.change.belief,
                    w.change.revision,
                    w.change.at,
                    w.at.log.clone(),
                    w.at.seq,
                )
            };
            place(a).cmp(&place(b))
        });
        let mut left = Vec::new();
        for waiting in self.waiting {
            if !follow(store, keys, &waiting.change, &waiting.at)? {
                left.push(waiting);
            }
        }
        Ok(left)
    }
}
