//! What verification can find wrong, one variant per reason, and where it was found.

use std::fmt;

use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use serde::Serialize;

use crate::line::LineError;

/// Something that is not as the writer left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the project's log directory.
    pub file: String,
    /// The event, where one is concerned.
    pub seq: Option<u64>,
    /// The byte offset in the file, where one is known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(seq) = self.seq {
            write!(f, " #{seq}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " (byte {offset})")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Problem", 5)?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("seq", &self.seq)?;
        fields.serialize_field("offset", &self.offset)?;
        fields.serialize_field("code", self.kind.code())?;
        fields.serialize_field("message", &self.kind.to_string())?;
        fields.end()
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ProblemKind {
    #[error("{0}")]
    Line(#[from] LineError),
    #[error(
        "event {expected} was expected here, found {found}: events are missing, repeated or out of order"
    )]
    WrongSeq { expected: u64, found: u64 },
    #[error(
        "`prev` is not the hash of the event before: this event or the one before was changed, or events were removed, inserted or moved"
    )]
    BrokenChain,
    #[error("`prev` is not the hash of the session's opening record in the ledger")]
    WrongOpening,
    #[error("the payload is not the one the head commits to")]
    PayloadChanged,
    #[error("the payload is not canonical JSON: no writer of this log wrote it")]
    NotCanonical,
    #[error("time runs backwards")]
    TimeRunsBackwards,
    #[error("the event belongs to session `{found}`")]
    WrongSession { found: String },
    #[error("the event belongs to project `{found}`")]
    WrongProject { found: String },
    #[error("the event names event {parent} as its cause, which does not come before it")]
    ParentAhead { parent: u64 },
    #[error("the first event is `{found}`, not `session.opened@1`")]
    NotOpened { found: String },
    #[error("the record cannot be read: {reason}")]
    BadRecord { reason: String },
    #[error("the list of blobs cannot be read: {reason}")]
    BadBlobList { reason: String },
    #[error("blob `{name}` is missing")]
    BlobMissing { name: Digest },
    #[error("blob `{name}` is damaged: {reason}")]
    BlobDamaged { name: Digest, reason: String },
    #[error(
        "there is no checkpoint: the session never finished opening, or the checkpoint was deleted"
    )]
    CheckpointMissing,
    #[error("the checkpoint does not verify: {reason}")]
    CheckpointInvalid { reason: String },
    #[error(
        "{by} commits to {size} events, but only {found} are here: the log was truncated or rolled back"
    )]
    Truncated {
        by: Commitment,
        size: u64,
        found: u64,
    },
    #[error(
        "the events up to {size} do not have the root that {by} commits to: they were rewritten"
    )]
    Rewritten { by: Commitment, size: u64 },
    #[error(
        "the ledger says the session was closed with {closed} events, but {found} are here: events were added after closing"
    )]
    GrownAfterClosing { closed: u64, found: u64 },
    #[error(
        "the checkpoint (size {checkpoint}) is not the closing checkpoint in the ledger (size {closing})"
    )]
    NotTheClosingCheckpoint { checkpoint: u64, closing: u64 },
    #[error("the payload is redacted, but no valid `log.redacted@1` answers for it")]
    UnansweredTombstone,
    #[error("the redaction is signed by `{keys}`, which is not a known operator's key")]
    UnknownOperator { keys: String },
    #[error("the redaction's statement does not verify: {reason}")]
    BadRedaction { reason: String },
    #[error("redaction #{redaction} covers this event, but its payload is still here")]
    RedactedPayloadPresent { redaction: u64 },
    #[error("redaction #{redaction} covers blob `{name}`, but it is still on disk")]
    RedactedBlobPresent { redaction: u64, name: Digest },
    #[error("redaction #{redaction} covers the recovered part `{name}`, but it is still on disk")]
    RedactedPartPresent { redaction: u64, name: String },
    #[error("the part that was cut off in a recovery is missing or changed: {reason}")]
    RecoveredPartChanged { reason: String },
    #[error(
        "session `{session}` stands in the ledger (#{opened}), but its directory is gone: it was deleted"
    )]
    SessionMissing { session: String, opened: u64 },
    #[error(
        "session `{session}` has a directory, but the ledger does not know it: it was added, or the ledger was rolled back"
    )]
    UnknownSession { session: String },
    #[error("there are sessions, but no ledger: it was deleted")]
    LedgerMissing,
    #[error("session `{session}` is opened twice in the ledger")]
    OpenedTwice { session: String },
    #[error("the ledger names session `{session}`, which was never opened")]
    NeverOpened { session: String },
    #[error(
        "{count} records stand behind the ledger's checkpoint: an append was interrupted, or records were inserted"
    )]
    LedgerTail { count: u64 },
    #[error(
        "the witnessed head has {size} records, the ledger only {found}: the project's log was rolled back"
    )]
    RolledBack { size: u64, found: u64 },
    #[error(
        "the ledger's first {size} records are not the ones that were witnessed: the project's log was rewritten"
    )]
    NotWhatWasWitnessed { size: u64 },
    #[error("the witnessed head does not verify: {reason}")]
    BadWitnessedHead { reason: String },
    #[error("the file cannot be read: {reason}")]
    Unreadable { reason: String },
    #[error("{count} further problems are not listed")]
    More { count: u64 },
}

impl ProblemKind {
    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Line(LineError::Malformed { .. }) => "malformed_line",
            Self::Line(LineError::TooLong { .. }) => "line_too_long",
            Self::Line(LineError::Unterminated) => "unterminated_line",
            Self::WrongSeq { .. } => "wrong_seq",
            Self::BrokenChain => "broken_chain",
            Self::WrongOpening => "wrong_opening",
            Self::PayloadChanged => "payload_changed",
            Self::NotCanonical => "not_canonical",
            Self::TimeRunsBackwards => "time_runs_backwards",
            Self::WrongSession { .. } => "wrong_session",
            Self::WrongProject { .. } => "wrong_project",
            Self::ParentAhead { .. } => "parent_ahead",
            Self::NotOpened { .. } => "not_opened",
            Self::BadRecord { .. } => "bad_record",
            Self::BadBlobList { .. } => "bad_blob_list",
            Self::BlobMissing { .. } => "blob_missing",
            Self::BlobDamaged { .. } => "blob_damaged",
            Self::CheckpointMissing => "checkpoint_missing",
            Self::CheckpointInvalid { .. } => "checkpoint_invalid",
            Self::Truncated { .. } => "truncated",
            Self::Rewritten { .. } => "rewritten",
            Self::GrownAfterClosing { .. } => "grown_after_closing",
            Self::NotTheClosingCheckpoint { .. } => "not_the_closing_checkpoint",
            Self::UnansweredTombstone => "unanswered_tombstone",
            Self::UnknownOperator { .. } => "unknown_operator",
            Self::BadRedaction { .. } => "bad_redaction",
            Self::RedactedPayloadPresent { .. } => "redacted_payload_present",
            Self::RedactedBlobPresent { .. } => "redacted_blob_present",
            Self::RedactedPartPresent { .. } => "redacted_part_present",
            Self::RecoveredPartChanged { .. } => "recovered_part_changed",
            Self::SessionMissing { .. } => "session_missing",
            Self::UnknownSession { .. } => "unknown_session",
            Self::LedgerMissing => "ledger_missing",
            Self::OpenedTwice { .. } => "opened_twice",
            Self::NeverOpened { .. } => "never_opened",
            Self::LedgerTail { .. } => "ledger_tail",
            Self::RolledBack { .. } => "rolled_back",
            Self::NotWhatWasWitnessed { .. } => "not_what_was_witnessed",
            Self::BadWitnessedHead { .. } => "bad_witnessed_head",
            Self::Unreadable { .. } => "unreadable",
            Self::More { .. } => "more",
        }
    }
}

impl ProblemKind {
    /// Which of the log's defences it takes to see this: what goes unseen in a harness that lacks it.
    pub fn found_by(&self) -> Defence {
        match self {
            Self::WrongSeq { .. }
            | Self::BrokenChain
            | Self::WrongOpening
            | Self::PayloadChanged
            | Self::NotCanonical
            | Self::BlobMissing { .. }
            | Self::BlobDamaged { .. } => Defence::HashChain,
            Self::CheckpointMissing
            | Self::CheckpointInvalid { .. }
            | Self::NotTheClosingCheckpoint { .. }
            | Self::Truncated {
                by: Commitment::Checkpoint | Commitment::Received,
                ..
            }
            | Self::Rewritten {
                by: Commitment::Checkpoint | Commitment::Received,
                ..
            } => Defence::Checkpoints,
            Self::Truncated {
                by: Commitment::Ledger { .. },
                ..
            }
            | Self::Rewritten {
                by: Commitment::Ledger { .. },
                ..
            }
            | Self::GrownAfterClosing { .. }
            | Self::SessionMissing { .. }
            | Self::UnknownSession { .. }
            | Self::LedgerMissing
            | Self::OpenedTwice { .. }
            | Self::NeverOpened { .. }
            | Self::LedgerTail { .. }
            | Self::RolledBack { .. }
            | Self::NotWhatWasWitnessed { .. }
            | Self::BadWitnessedHead { .. } => Defence::LedgerRecords,
            Self::UnansweredTombstone
            | Self::UnknownOperator { .. }
            | Self::BadRedaction { .. }
            | Self::RedactedPayloadPresent { .. }
            | Self::RedactedBlobPresent { .. }
            | Self::RedactedPartPresent { .. } => Defence::RedactionStatement,
            Self::Line(_)
            | Self::TimeRunsBackwards
            | Self::WrongSession { .. }
            | Self::WrongProject { .. }
            | Self::ParentAhead { .. }
            | Self::NotOpened { .. }
            | Self::BadRecord { .. }
            | Self::BadBlobList { .. }
            | Self::RecoveredPartChanged { .. }
            | Self::Unreadable { .. }
            | Self::More { .. } => Defence::LogVerification,
        }
    }
}

/// Who committed to a size and a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commitment {
    /// The checkpoint beside the events.
    Checkpoint,
    /// A record of the project's ledger.
    Ledger {
        /// Which.
        seq: u64,
    },
    /// A checkpoint that somebody else was sent while the session went on.
    Received,
}

impl fmt::Display for Commitment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint => f.write_str("the checkpoint"),
            Self::Ledger { seq } => write!(f, "ledger record #{seq}"),
            Self::Received => f.write_str("a checkpoint that was received earlier"),
        }
    }
}

/// Problems in the order they were found; a destroyed file of a million lines must not fill the
/// memory, so the list is bounded and the rest is counted.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    unlisted: u64,
}

/// Enough to see what happened.
const MOST_LISTED: usize = 1000;

impl Problems {
    pub(crate) fn add(
        &mut self,
        file: &str,
        seq: Option<u64>,
        offset: Option<u64>,
        kind: ProblemKind,
    ) {
        if self.list.len() < MOST_LISTED {
            self.list.push(Problem {
                file: file.to_owned(),
                seq,
                offset,
                kind,
            });
        } else {
            self.unlisted += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn finish(mut self) -> Vec<Problem> {
        if self.unlisted > 0
            && let Some(last) = self.list.last()
        {
            let file = last.file.clone();
            self.list.push(Problem {
                file,
                seq: None,
                offset: None,
                kind: ProblemKind::More {
                    count: self.unlisted,
                },
            });
        }
        self.list
    }
}
