//! Probes about what is read, and what is believed.

mod chain;
mod injection;
mod memory;
mod moves;
mod obedient;
mod retrieval;
mod shared;
mod weighing;

use lodestar_core::chain::{Axes, Truth};
use lodestar_firewall::row::StoredBelief;
use serde::Serialize;

use crate::probe::{Outcome, Probe};

pub(super) fn probes() -> Vec<Probe> {
    let all = [
        weighing::probes(),
        retrieval::probes(),
        moves::probes(),
        chain::probes(),
        injection::probes(),
        memory::probes(),
        shared::probes(),
    ];
    all.into_iter().flatten().collect()
}

/// Whether something, as others are told it, has these words.
fn carries(told: &impl Serialize, words: &str) -> Outcome<bool> {
    Ok(serde_json::to_string(told)?.contains(words))
}

/// Whether a belief is about a call, and not about what the call returned.
fn is_of_call(belief: &StoredBelief) -> bool {
    belief.claim.predicate.subject.starts_with("call:")
}

/// Whether a belief stands as something that is so.
fn is_believed(axes: Axes) -> bool {
    axes.truth != Truth::Unverified
}
