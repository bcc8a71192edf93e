//! The world as it is believed: what a context says of each thing, property by property.
//!
//! A view of a [`Context`], so it has nothing that the context does not have: no rumours, no words of
//! anyone who was merely read.

use std::collections::BTreeMap;

use lodestar_core::chain::Freshness;
use lodestar_core::id::BeliefId;
use lodestar_core::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::firewall::Context;

/// What is believed of one property.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Known {
    /// The value.
    pub object: Value,
    /// The belief that says so.
    pub belief: BeliefId,
    /// When it was observed.
    pub observed_at: Timestamp,
    /// How old it is.
    pub freshness: Freshness,
    /// Whether something speaks against it.
    pub disputed: bool,
}

/// Things, their properties, and what is believed of each; more than one value where beliefs of
/// different scopes say different things, newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct World(pub BTreeMap<String, BTreeMap<String, Vec<Known>>>);

impl World {
    /// Sorts a context by thing and property.
    pub fn of(context: &Context) -> Self {
        let mut world = Self::default();
        for belief in &context.beliefs {
            let disputed = context
                .contradictions
                .iter()
                .any(|dispute| dispute.belief == belief.id);
            let thing = world.0.entry(belief.predicate.subject.clone()).or_default();
            let values = thing.entry(belief.predicate.relation.clone()).or_default();
            values.push(Known {
                object: belief.predicate.object.clone(),
                belief: belief.id,
                observed_at: belief.observed_at,
                freshness: belief.freshness,
                disputed,
            });
            values.sort_by_key(|known| std::cmp::Reverse((known.observed_at, known.belief)));
        }
        world
    }

    /// What is believed of one property of one thing: the newest.
    pub fn value(&self, subject: &str, relation: &str) -> Option<&Known> {
        self.0.get(subject)?.get(relation)?.first()
    }
}
