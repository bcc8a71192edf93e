//! Provenance of argument values: hand-made cases, generated ones, laws, hostile input.

mod answers;
mod boundaries;
mod cases;
mod changes;
mod edits;
mod generated;
mod generator;
mod hostile;
mod laws;
mod spelling;

use lodestar_core::id::ObservationId;
use lodestar_core::provenance::{GivenSource, Label};
use lodestar_firewall::provenance::{Limits, ProvenanceIndex};
use serde_json::json;

/// The n-th observation of a test.
fn observation(n: usize) -> ObservationId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(n as u64).to_be_bytes());
    ObservationId::from_parts(n as u64, random)
}

/// An index small enough to be made by the thousand.
fn small_index() -> ProvenanceIndex {
    let limits = Limits {
        given_bytes: 1 << 20,
        value_slots: 1 << 14,
        gram_slots: 1 << 16,
        observations: 1 << 10,
    };
    ProvenanceIndex::new(limits, *b"a key for a test")
}

fn contacts() -> GivenSource {
    GivenSource::KnownValue {
        list: "contacts".to_owned(),
    }
}

/// What one text is called.
fn label(index: &ProvenanceIndex, argument: &str) -> Label {
    index.explain(&json!(argument)).remove(0).label
}
