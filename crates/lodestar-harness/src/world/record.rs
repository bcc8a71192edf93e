//! The log of a session, read back: its events, whole, and what is believed by it alone.

use std::sync::Arc;

use lodestar_core::chain::Truth;
use lodestar_core::defence::Defence;
use lodestar_core::key::SecretKey;
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{MemoryStore, Store as _};
use lodestar_kernel::opening::Opening;
use lodestar_kernel::terse;
use lodestar_log::{Reader, SessionDir};
use lodestar_replay::follow_alone;
use serde_json::Value;

use crate::probe::{Broken, Outcome};

/// More beliefs than a scenario has.
const ALL: usize = 100_000;

/// One event.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its number.
    pub seq: u64,
    /// Its type, with its version.
    pub kind: String,
    /// The events that caused it.
    pub parents: Vec<u64>,
    /// What it says; nothing where it was redacted.
    pub payload: Value,
}

/// A session, as its log tells it.
#[derive(Debug)]
pub struct Record {
    /// Every event.
    pub events: Vec<Recorded>,
    /// Every belief, folded out of this log alone.
    pub beliefs: Vec<StoredBelief>,
}

impl Record {
    /// Reads a session. Nothing of it comes from an agent, a proxy or a store.
    pub fn read(dir: &SessionDir) -> Outcome<Self> {
        let mut opening: Option<Opening> = None;
        let mut missing: Vec<Defence> = Vec::new();
        let mut events = Vec::new();
        for event in Reader::open(dir)? {
            let event = event?;
            let payload = terse::whole(&event, dir, opening.as_ref());
            let payload = payload.map_err(|problem| Broken::Failed(problem.to_string()))?;
            let payload = payload.unwrap_or_default();
            if event.seq == 0 {
                opening = serde_json::from_value(payload.clone()).ok();
                let off = payload["defences_off"].as_array();
                let off = off.into_iter().flatten().filter_map(Value::as_str);
                missing = off.filter_map(|name| name.parse().ok()).collect();
            }
            events.push(Recorded {
                seq: event.seq,
                parents: event.parents.to_vec(),
                kind: event.kind,
                payload,
            });
        }
        // As lax as the session was, so that what came of it there can be seen.
        let keys = Keyring::new(Arc::new(SecretKey::from_seed([0; 32]))).without(&missing);
        let mut store = MemoryStore::new();
        follow_alone(&mut store, &keys, dir)?;
        let rows = store.scan(None, ALL)?;
        let beliefs = rows.iter().map(|row| row.open());
        Ok(Self {
            events,
            beliefs: beliefs.collect::<Result<_, _>>()?,
        })
    }

    /// The events whose type begins so.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Recorded> {
        self.events
            .iter()
            .filter(move |event| event.kind.starts_with(kind))
    }

    /// How many there are of them.
    pub fn count(&self, kind: &str) -> usize {
        self.of(kind).count()
    }

    /// Beliefs whose statement or object says this, and where they stand.
    pub fn saying<'a>(&'a self, words: &'a str) -> impl Iterator<Item = &'a StoredBelief> {
        self.beliefs.iter().filter(move |belief| {
            belief.claim.statement.contains(words)
                || belief.claim.predicate.object.to_string().contains(words)
        })
    }

    /// How many beliefs that say this are supported.
    pub fn supported(&self, words: &str) -> usize {
        let is_supported = |belief: &&StoredBelief| belief.record.axes.truth == Truth::Supported;
        self.saying(words).filter(is_supported).count()
    }
}
