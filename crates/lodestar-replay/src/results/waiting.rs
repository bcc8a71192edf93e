//! What came back and waits to be adopted.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use lodestar_core::id::ObservationId;
use lodestar_log::Event;

#[derive(Debug)]
pub(super) struct Observed {
    pub(super) event: Event,
    /// The clearance of the call; none for what no tool returned.
    pub(super) cleared: Option<u64>,
    /// Read when somebody asks.
    pub(super) id: Option<ObservationId>,
    /// An adoption behind it was redacted, and may have been of this.
    pub(super) in_doubt: bool,
}

/// What came back and is not adopted yet, by the events that recorded it. Whoever writes a log may let much wait,
/// so nothing here looks through all of it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) all: BTreeMap<u64, Observed>,
    /// By the clearance of the call.
    of_calls: HashMap<u64, BTreeSet<u64>>,
    /// Those whose id was not read.
    unread: BTreeSet<u64>,
    by_id: HashMap<ObservationId, BTreeSet<u64>>,
}

impl Waiting {
    pub(super) fn insert(&mut self, observed: Observed) {
        let seq = observed.event.seq;
        if let Some(cleared) = observed.cleared {
            self.of_calls.entry(cleared).or_default().insert(seq);
        }
        self.unread.insert(seq);
        self.all.insert(seq, observed);
    }

    pub(super) fn remove(&mut self, seq: u64) -> Option<Observed> {
        let observed = self.all.remove(&seq)?;
        self.unread.remove(&seq);
        if let Some(id) = observed.id {
            take_out(&mut self.by_id, id, seq);
        }
        if let Some(cleared) = observed.cleared {
            take_out(&mut self.of_calls, cleared, seq);
        }
        Some(observed)
    }

    pub(super) fn is_of(&mut self, seq: u64, id: ObservationId) {
        if let Some(observed) = self.all.get_mut(&seq) {
            observed.id = Some(id);
            self.by_id.entry(id).or_default().insert(seq);
        }
    }

    /// The first that has this id, of those whose id was read.
    pub(super) fn of_id(&self, id: ObservationId) -> Option<u64> {
        self.by_id.get(&id)?.first().copied()
    }

    /// The next whose id is to be read.
    pub(super) fn next_unread(&mut self) -> Option<u64> {
        self.unread.pop_first()
    }

    /// Whether something came of a call.
    pub(super) fn has_of_call(&self, cleared: u64) -> bool {
        self.of_calls.contains_key(&cleared)
    }

    /// What came of a call.
    pub(super) fn of_call(&self, cleared: u64) -> Vec<u64> {
        let found = self.of_calls.get(&cleared);
        found.into_iter().flatten().copied().collect()
    }
}

fn take_out<K: Eq + Hash>(index: &mut HashMap<K, BTreeSet<u64>>, key: K, seq: u64) {
    if let Entry::Occupied(mut there) = index.entry(key) {
        there.get_mut().remove(&seq);
        if there.get().is_empty() {
            there.remove();
        }
    }
}
