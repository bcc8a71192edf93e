//! What the session knows of where values come from, and what it has read and not looked through yet.
//!
//! Looking through a result costs more than anything else on the way back to the agent, and nobody needs it
//! before the next call. So a result only queues here; whoever asks looks through the queue first, and a
//! task does so a moment after the answer went out. What is large is looked through in pieces before its
//! answer goes out, on a thread that may take its time, and whoever asks comes in between two of them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestar_core::chain::Observation;
use lodestar_firewall::provenance::{ProvenanceIndex, for_each_piece};

/// Results that may wait: more are looked through at once, so that what waits stays small.
const MOST_WAITING: usize = 64;

/// The index. What it gives out knows everything that was read.
pub(super) struct Index {
    /// Whoever wants in takes this first and gives it back once in: of two, neither comes in twice while
    /// the other waits.
    turn: Mutex<()>,
    state: Mutex<State>,
}

struct State {
    known: ProvenanceIndex,
    waiting: Vec<Arc<Observation>>,
}

impl Index {
    pub(super) fn new(known: ProvenanceIndex) -> Self {
        Self {
            turn: Mutex::new(()),
            state: Mutex::new(State {
                known,
                waiting: Vec::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a result; says whether it is the first that waits.
    pub(super) fn add(&self, observation: Arc<Observation>) -> bool {
        let mut state = self.state();
        if state.waiting.len() == MOST_WAITING {
            state.look_through();
        }
        state.waiting.push(observation);
        state.waiting.len() == 1
    }

    /// Looks through what waits.
    pub(super) fn look_through(&self) {
        self.state().look_through();
    }

    /// Looks through a large result, and lets others in meanwhile.
    pub(super) fn add_in_pieces(&self, observation: &Observation) {
        for_each_piece(observation, |piece| {
            self.state().known.read(observation.id, piece);
        });
    }

    /// Works with what is known, which is everything that was read so far.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut ProvenanceIndex) -> T) -> T {
        let mut state = self.state();
        state.look_through();
        work(&mut state.known)
    }
}

impl State {
    fn look_through(&mut self) {
        for observation in self.waiting.drain(..) {
            self.known.read_observation(&observation);
        }
    }
}

/// Nothing of it is for showing.
impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Index")
    }
}
