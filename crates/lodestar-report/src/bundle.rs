//! A proof bundle: the events that a report cites, with all that it takes to check them elsewhere.
//!
//! One file, one canonical JSON object a line, in this order: what it is; the public keys, for comparing;
//! the session's signed checkpoint; the ledger's signed head with the records that opened and closed the
//! session; the events in their order, each with its way to the checkpoint's root; the blobs that they
//! name; an end with counts; and a seal, by which the key of the log vouches for everything before it. It is
//! written and read line by line, so its size costs no memory.
//!
//! Nothing in it is believed because it is in it. [`check`] takes keys from elsewhere; the checkpoint must be
//! signed by one of them, and everything else must lead to it. What the proofs cannot show, that nothing was
//! left out and why payloads are missing, is on the word of whoever sealed it; so that too must be one of
//! these keys. Payloads above the ceiling stay out: their heads, with the payloads' hashes, are proven all the
//! same.

mod check;
mod checked;
mod forms;
mod seal;
mod write;

use lodestar_core::digest::Digest;
use lodestar_core::merkle::InclusionProof;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::ProvenEvent;
use serde::{Deserialize, Serialize};

pub use check::check;
pub use checked::{Checked, Fault};
pub use forms::Forms;
pub use write::{BundleError, Written, write};

/// What a bundle says it is.
pub const FORMAT: &str = "lodestar.bundle/2";

/// Blobs above this do not travel in a bundle; it says so.
pub const MAX_BLOB: u64 = 64 << 20;

/// One line of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Piece {
    /// The first.
    Bundle(Head),
    /// Keys, for comparing.
    Keys(Vec<Key>),
    /// The session's checkpoint.
    Checkpoint(String),
    /// The ledger's head, and what it says of the session.
    Ledger(LedgerPart),
    /// An event.
    Event(EventPart),
    /// A blob.
    Blob(BlobPart),
    /// How much there was.
    End(End),
    /// The last: a signed note over everything before it.
    Seal(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    project: ProjectId,
    session: SessionId,
    ceiling: Sensitivity,
    /// The report that this proves, by its digests.
    report: Forms,
    /// Every event that it cites, rising.
    cited: Vec<u64>,
}

/// A public key that the log was verified by where the bundle was made. It proves nothing here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    signs: String,
    vkey: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerPart {
    head: String,
    records: Vec<RecordPart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordPart {
    event: ProvenEvent,
    path: InclusionProof,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventPart {
    event: ProvenEvent,
    path: InclusionProof,
    /// Why there is only a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    without: Option<Without>,
}

/// Why a payload is not in the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Without {
    /// It is more sensitive than the bundle's ceiling.
    Withheld(Sensitivity),
    /// It was redacted in the log.
    Redacted,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlobPart {
    sha256: Digest,
    base64: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    events: u64,
    /// Events that the report cites and that no checkpoint covers yet: they are not in here.
    unproven: u64,
    blobs: u64,
    /// Blobs that are too large to travel.
    left_out: u64,
    /// Changes of beliefs that the report tells and that other sessions hold: they are not in here.
    elsewhere: u64,
}
