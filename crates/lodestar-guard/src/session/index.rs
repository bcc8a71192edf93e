//! What the session knows of where values come from, and what it has read and not looked through yet.
//!
//! Looking through a result costs more than anything else on the way back to the agent, and nobody needs it
//! before the next call. So a result only queues here; whoever asks looks through the queue first, and a
//! task does so a moment after the answer went out.

use std::fmt;
use std::sync::Arc;

use lodestar_core::chain::Observation;
use lodestar_firewall::provenance::ProvenanceIndex;

/// Results that may wait: more are looked through at once, so that what waits stays small.
const MOST_WAITING: usize = 64;

/// The index. What it gives out knows everything that was read.
pub(super) struct Index {
    known: ProvenanceIndex,
    waiting: Vec<Arc<Observation>>,
}

impl Index {
    pub(super) fn new(known: ProvenanceIndex) -> Self {
        Self {
            known,
            waiting: Vec::new(),
        }
    }

    /// Queues a result; says whether it is the first that waits.
    pub(super) fn add(&mut self, observation: Arc<Observation>) -> bool {
        if self.waiting.len() == MOST_WAITING {
            self.look_through();
        }
        self.waiting.push(observation);
        self.waiting.len() == 1
    }

    /// Looks through what waits.
    pub(super) fn look_through(&mut self) {
        for observation in self.waiting.drain(..) {
            for block in &observation.content {
                self.known.read_block(observation.id, block);
            }
        }
    }

    /// What is known, with everything that was read so far.
    pub(super) fn known(&mut self) -> &mut ProvenanceIndex {
        self.look_through();
        &mut self.known
    }
}

/// Nothing of it is for showing.
impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Index")
    }
}
