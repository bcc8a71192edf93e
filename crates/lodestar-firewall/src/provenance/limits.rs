//! How much an index may hold.

use thiserror::Error;

use super::sightings::{SLOT_BYTES, Sightings};
use super::trusted::Trusted;

/// Bytes for given and measured values: some 40,000 contacts, or a task of a few hundred pages.
pub const GIVEN_BYTES: usize = 8 << 20;

/// Whole values of what was read, with their parts. Prose has a word every six bytes, so this and
/// [`GRAM_SLOTS`] cover about the same megabyte of recent reading: some hundred pages, in memory that a
/// session of a hundred thousand calls may take.
pub const VALUE_SLOTS: usize = 1 << 18;

/// Runs of eight characters of what was read: one per letter or digit.
pub const GRAM_SLOTS: usize = 1 << 20;

/// Observations that can still be named. Beyond this the slots above have long moved on.
pub const OBSERVATIONS: usize = 1 << 15;

/// Bounds of a [`ProvenanceIndex`](super::ProvenanceIndex).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes for given and measured values. When they are used up, adding one is an error. A quarter
    /// more is used for hints.
    pub given_bytes: usize,
    /// Whole values of what was read; rounded up to a power of two. Old ones are forgotten.
    pub value_slots: usize,
    /// Runs of characters of what was read; rounded up to a power of two. Old ones are forgotten.
    pub gram_slots: usize,
    /// Observations that can be named. Old ones are forgotten.
    pub observations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            given_bytes: GIVEN_BYTES,
            value_slots: VALUE_SLOTS,
            gram_slots: GRAM_SLOTS,
            observations: OBSERVATIONS,
        }
    }
}

impl Limits {
    /// The most memory that an index of these limits ever holds, in bytes.
    ///
    /// A table that doubles briefly stands beside its predecessor of half the size: that half is
    /// counted.
    pub fn memory_bound(&self) -> usize {
        let slots = Sightings::rounded(self.value_slots) + Sightings::rounded(self.gram_slots);
        Trusted::memory_bound(self.given_bytes)
            + slots * SLOT_BYTES * 3 / 2
            + self.observations * OBSERVATION_BYTES
    }
}

/// Bytes per observation that can be named: its id, in a ring that may be half full.
pub(super) const OBSERVATION_BYTES: usize = 2 * size_of::<lodestar_core::id::ObservationId>();

/// There is no room for another given or measured value.
///
/// Nothing was added: values of the call that failed are unknown, and none was forgotten for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "given values would take {needed} bytes and {limit} are allowed; raise the limit or give fewer"
)]
pub struct GivenFull {
    /// What all given and measured values would take with the new ones.
    pub needed: usize,
    /// What they may take.
    pub limit: usize,
}
