//! Lodestar's event log: the record that everything else is a projection of.
//!
//! One session is one directory with one writer. Each event is one line of canonical JSON whose
//! head commits to its payload and to the head before it; the heads are the leaves of an RFC 6962
//! tree, whose root is signed in checkpoints; a ledger per project ties the sessions together.
//!
//! - write: [`LogWriter`], [`Receipt`], [`WriterOptions`]
//! - read: [`Reader`], [`Event`]
//! - check: [`verify`], [`Problem`], [`Trust`]
//! - prove: [`Proof`]
//! - take back: [`redact`]; make it known: [`record_anchor`]
#![deny(missing_docs)]

mod anchor;
mod blob;
mod chain;
mod clock;
mod disk;
mod error;
mod layout;
mod ledger;
mod line;
mod problem;
mod prove;
mod reader;
mod recover;
mod redact;
mod scan;
mod trust;
pub mod verify;
mod writer;

pub use anchor::{AnchorError, record_anchor};
pub use blob::{
    BlobEncoding, BlobError, BlobRef, MAX_BLOB_BYTES, MAX_RESTORED_BYTES, RestoreError, SPILL_BYTES,
};
pub use clock::Clock;
pub use error::{AppendError, LedgerError, OpenError, Stopped};
pub use layout::{LogRoot, ProjectLog, SessionDir};
pub use ledger::{
    AnchoredRecord, ClosingRecord, FORMAT, LEDGER_NAME, Ledger, LedgerState, OpeningRecord,
    ReopeningRecord, SessionFacts,
};
pub use line::{
    Body, Line, LineError, MAX_LINE_BYTES, MAX_PARENTS, MAX_PAYLOAD_BYTES, Part, SALT_BYTES,
};
pub use problem::{Commitment, Problem, ProblemKind};
pub use prove::{
    Consistency, Disclosure, Extends, Inclusion, MAX_PROOF_BYTES, Proof, ProveError, Proven,
    ProvenEvent, ProvenHead, SignedCheckpoint, prove_consistency, prove_inclusion,
};
pub use reader::{Event, Payload, ReadError, Reader, each_line, each_record};
pub use recover::RecoveredRecord;
pub use redact::{RedactError, Redacted, RedactedRecord, redact};
pub use trust::Trust;
pub use writer::{Barrier, Durability, LogWriter, Reached, Receipt, WriterOptions};
