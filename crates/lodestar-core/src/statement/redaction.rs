//! The statement by which an operator removes payloads from a log.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;

/// An operator takes payloads out of a session's log; the log itself stays verifiable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// The blobs that are deleted, by the hash that names them.
    pub blobs: Vec<Digest>,
    /// The events whose payload is removed.
    pub events: Vec<RedactedEvent>,
    /// The project of the session.
    pub project: String,
    /// Why, in the operator's words.
    pub reason: String,
    /// What recoveries had cut off and kept, by file name: it may hold copies, and goes too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<String>,
    /// The session.
    pub session: String,
}

/// One event whose payload is removed. The hash ties the order to this log and no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactedEvent {
    /// The leaf hash of the event.
    pub leaf_hash: Digest,
    /// The position of the event in the session.
    pub seq: u64,
}

impl Statement for Redaction {
    const KIND: StatementKind = StatementKind::Redaction;
}
