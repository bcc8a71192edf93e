//! How the log stands.

use lodestar_core::digest::Digest;
use serde::Serialize;

use super::Events;

/// How the log stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Integrity {
    /// How many events it has.
    pub events: u64,
    /// The root over them.
    pub root: Digest,
    /// How many a signed checkpoint covers.
    pub proven: u64,
    /// The checkpoint, a signed note, as it stood when the log was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The keys by which it was verified.
    pub keys: Vec<KeyUsed>,
    /// The ledger: how many records.
    pub ledger_records: u64,
    /// The root over them.
    pub ledger_root: Digest,
    /// How many verdicts were derived again.
    pub verdicts_again: u64,
    /// How many answers were heard again.
    pub answers_again: u64,
    /// How many clearances were checked again.
    pub clearances_again: u64,
    /// How many belief events were followed again.
    pub beliefs_again: u64,
    /// What was taken out by signed redactions.
    pub redactions: Vec<Redaction>,
    /// What crashes cut off.
    pub recovered: Vec<Recovered>,
    /// What else is worth knowing, in words.
    pub remarks: Vec<String>,
}

/// A key by which the log was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyUsed {
    /// What it signs.
    pub signs: &'static str,
    /// By id.
    pub key: String,
}

/// A signed redaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redaction {
    /// The event.
    pub seq: u64,
    /// How many payloads.
    pub payloads: u64,
    /// Which events.
    pub events: Events,
    /// The operator's key.
    pub operator: String,
    /// Why.
    pub reason: String,
}

/// What a crash cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The event that says so.
    pub seq: u64,
    /// How many bytes.
    pub bytes: u64,
}
