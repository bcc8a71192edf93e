//! A belief as a store keeps it: columns, bound together by a digest that the installation signs.
//!
//! Every column that decides anything is under the digest, also those that only speed up a search:
//! whoever edits one of them is found out. [`keys`] has signing and checking; [`StoredRow::open`] is
//! the way back to typed data.

mod columns;
pub mod keys;
mod tree;

pub use columns::{Key, StoredRow};

use std::time::Duration;

use lodestar_core::chain::transition::State;
use lodestar_core::chain::{BeliefRecord, Claim, EvidenceSet, Freshness};
use lodestar_core::name::Excerpt;
use lodestar_core::time::Timestamp;
use thiserror::Error;

use crate::event::{Adopted, Change, LogPosition, Source};

/// After this time a belief is due to be looked at again: for a week most of what agents read
/// (issues, dependencies, calendars) stays as it is.
pub const STALE_AFTER: Duration = Duration::from_secs(7 * 86_400);

/// After this time a belief is too old to use; the default context has the same limit.
pub const EXPIRED_AFTER: Duration = Duration::from_secs(30 * 86_400);

/// A row, read: data, and no more a belief than the row was.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredBelief {
    /// The belief.
    pub record: BeliefRecord,
    /// Its claim.
    pub claim: Claim,
    /// Its evidence.
    pub evidence: EvidenceSet,
    /// Whose tool it came from.
    pub source: Option<Source>,
    /// How often it changed.
    pub revision: u64,
    /// When its freshness changes next by the clock.
    pub due_at: Option<Timestamp>,
    /// The event that adopted it.
    pub adopted: LogPosition,
    /// The event that changed it last; the adopting one if none did.
    pub changed: LogPosition,
}

impl StoredBelief {
    /// The beliefs that an event adopted, in its order.
    pub fn adopted(event: &Adopted, at: &LogPosition) -> impl Iterator<Item = Self> {
        let parts = event.beliefs.iter().zip(&event.claims).zip(&event.evidence);
        parts.map(|((record, claim), evidence)| Self {
            record: record.clone(),
            claim: claim.clone(),
            evidence: evidence.clone(),
            source: event.source.clone(),
            revision: 0,
            due_at: Some(later(record.observed_at, STALE_AFTER)),
            adopted: at.clone(),
            changed: at.clone(),
        })
    }

    /// Whether the change is the next of this belief and starts where the belief stands.
    pub fn fits(&self, change: &Change) -> bool {
        let mut axes = self.record.axes;
        self.record.id == change.belief
            && self.revision + 1 == change.revision
            && change.moves.iter().all(|step| {
                let there = axes.on(step.axis()) == step.from();
                axes = axes.with(step.to());
                there
            })
    }

    /// The belief after the change, which [fits](Self::fits).
    pub fn after(mut self, change: &Change, at: &LogPosition) -> Self {
        for step in &change.moves {
            self.record.axes = self.record.axes.with(step.to());
            if let State::Freshness(freshness) = step.to() {
                self.due_at = match freshness {
                    Freshness::Fresh => Some(later(change.at, STALE_AFTER)),
                    Freshness::Stale => self
                        .due_at
                        .map(|due| later(due, EXPIRED_AFTER - STALE_AFTER)),
                    Freshness::Expired => None,
                };
            }
        }
        self.evidence.items.extend_from_slice(&change.evidence);
        self.revision = change.revision;
        self.changed = at.clone();
        self
    }
}

fn later(moment: Timestamp, by: Duration) -> Timestamp {
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A column does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("row `{id}`: column `{column}` cannot be read: {problem}")]
pub struct BadRow {
    /// Which row, inert.
    pub id: Excerpt,
    /// Which column.
    pub column: &'static str,
    /// What is wrong with it.
    pub problem: String,
}
