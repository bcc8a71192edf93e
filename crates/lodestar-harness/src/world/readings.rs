//! What is believed of what was read: beliefs about the content of results, found by the words that stood
//! there. A claim names the bytes that were read by their digest, so the words alone do not find it.

use std::collections::BTreeSet;

use lodestar_core::chain::Truth;
use lodestar_firewall::row::StoredBelief;

use super::record::Record;

/// The subject of what is known of a call itself: that it was made, and returned.
const CALL: &str = "call:";

impl Record {
    /// Beliefs about what stood in observations that say this.
    pub fn readings(&self, words: &str) -> Vec<&StoredBelief> {
        let said = self.of("observation.recorded@").filter(|event| {
            let content = &event.payload["content"];
            content.to_string().contains(words)
        });
        let said: BTreeSet<&str> = said
            .filter_map(|event| event.payload["id"].as_str())
            .collect();
        let is_of = |belief: &&StoredBelief| {
            let claim = &belief.claim;
            let mut sources = claim.source_observations.iter();
            !claim.predicate.subject.starts_with(CALL)
                && sources.any(|one| said.contains(one.to_string().as_str()))
        };
        self.beliefs.iter().filter(is_of).collect()
    }

    /// How many of them stand so.
    pub fn readings_at(&self, words: &str, truth: Truth) -> usize {
        let readings = self.readings(words).into_iter();
        readings
            .filter(|belief| belief.record.axes.truth == truth)
            .count()
    }
}
