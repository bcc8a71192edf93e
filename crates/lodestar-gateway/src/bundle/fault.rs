//! What is wrong with a bundle: one closed list.

use std::io;

use lodestar_core::name::Excerpt;
use serde::{Serialize, Serializer};
use thiserror::Error;

/// Why a bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum Fault {
    #[error("the first line has no end within the bytes that one may have")]
    HeaderTooLong,
    #[error("the first line is no head of a bundle: {problem}")]
    Header { problem: String },
    #[error("this is `{found}`, not a bundle of this version")]
    Format { found: Excerpt },
    #[error("`{name}` is no file of a session")]
    Name { name: Excerpt },
    #[error("`{name}` stands there twice, or not in its place")]
    Order { name: String },
    #[error("there are {files} files, more than are taken")]
    TooManyFiles { files: usize },
    #[error("there are {bytes} bytes, more than are taken")]
    TooLarge { bytes: u64 },
    #[error("`{name}` is missing")]
    Missing { name: &'static str },
    #[error("`{name}` is cut off")]
    Truncated { name: String },
    #[error("`{name}` is not what the first line says")]
    Digest { name: String },
    #[error("something follows behind the last file")]
    Trailing,

    #[error("the bundle is another than the one that was signed for")]
    OtherBundle,
    #[error("the log is of another session than the attested one")]
    OtherSession,
    #[error("there are more events than are taken")]
    TooManyEvents,
    #[error("what was too large for lines unpacks to more bytes than are taken")]
    TooMuchContent,
    #[error("event {seq} holds {bytes} bytes of structure, more than are taken")]
    TooMuchStructure { seq: u64, bytes: u64 },
    #[error("no event names `{name}`")]
    Unnamed { name: String },
    #[error("no checkpoint was received while the run went on")]
    NoCheckpoint,
    #[error("the checkpoint does not verify with the device's log key: {problem}")]
    Checkpoint { problem: String },
    #[error("a checkpoint is of another log, `{origin}`")]
    OtherLog { origin: Excerpt },
    #[error("the first {size} events are not those that a checkpoint was received of")]
    Inconsistent { size: u64 },
    #[error("{size} events are attested, the log has {found}")]
    OtherSize { size: u64, found: u64 },
    #[error("the log has another root than the attested one")]
    OtherRoot,
    #[error("the log's checkpoint covers {proven} of {events} events")]
    Unproven { proven: u64, events: u64 },
    #[error("the session was not closed")]
    NotClosed,
    #[error("the log's opening cannot be read: {problem}")]
    Opening { problem: String },
    #[error("the log's opening names no run")]
    NoTicket,
    #[error("the log is of another run")]
    OtherRun,
    #[error("the log's opening has another nonce than the one that was given out")]
    OtherNonce,
    #[error("the log does not hold: {problem}")]
    Log { code: &'static str, problem: String },
}

impl Fault {
    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeaderTooLong => "header_too_long",
            Self::Header { .. } => "header",
            Self::Format { .. } => "format",
            Self::Name { .. } => "file_name",
            Self::Order { .. } => "file_order",
            Self::TooManyFiles { .. } => "too_many_files",
            Self::TooLarge { .. } => "too_large",
            Self::Missing { .. } => "file_missing",
            Self::Truncated { .. } => "truncated",
            Self::Digest { .. } => "file_digest",
            Self::Trailing => "trailing_bytes",
            Self::OtherBundle => "other_bundle",
            Self::OtherSession => "other_session",
            Self::TooManyEvents => "too_many_events",
            Self::TooMuchContent => "too_much_content",
            Self::TooMuchStructure { .. } => "too_much_structure",
            Self::Unnamed { .. } => "file_unnamed",
            Self::NoCheckpoint => "no_checkpoint",
            Self::Checkpoint { .. } => "checkpoint",
            Self::OtherLog { .. } => "other_log",
            Self::Inconsistent { .. } => "inconsistent",
            Self::OtherSize { .. } => "other_size",
            Self::OtherRoot => "other_root",
            Self::Unproven { .. } => "unproven",
            Self::NotClosed => "not_closed",
            Self::Opening { .. } => "opening",
            Self::NoTicket => "no_ticket",
            Self::OtherRun => "other_run",
            Self::OtherNonce => "other_nonce",
            Self::Log { .. } => "log",
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Fault", 2)?;
        fields.serialize_field("code", self.code())?;
        fields.serialize_field("message", &self.to_string())?;
        fields.end()
    }
}

/// Why a bundle could not be looked at, or is refused.
#[derive(Debug, Error)]
pub enum BundleError {
    /// It is refused.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// There is no room to unpack it: nothing is wrong with the bundle.
    #[error("there is no room to unpack the bundle: {0}")]
    NoRoom(io::Error),
    /// Something cannot be read or written here: nothing is wrong with the bundle.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for BundleError {
    fn from(problem: io::Error) -> Self {
        match problem.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoRoom(problem),
            _ => Self::Io(problem),
        }
    }
}
