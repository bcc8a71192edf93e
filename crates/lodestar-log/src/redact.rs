//! Taking content back: payload and salt are replaced by a tombstone, the head stays, and so do
//! all hashes, proofs and checkpoints. A signed statement of an operator answers for each gap.

mod work;

use std::collections::BTreeSet;
use std::io;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Envelope, Issued, Redaction, StatementError, Verified};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use self::work::Work;
use crate::error::{LedgerError, OpenError};
use crate::layout::{ProjectLog, SessionDir};
use crate::problem::{Problem, ProblemKind};
use crate::reader::{Payload, ReadError, Reader};
use crate::trust::Trust;
use crate::writer::{LogWriter, WriterOptions, lock_session};

/// The payload of `log.redacted@1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedactedRecord {
    /// The operator's signed statement.
    pub statement: Envelope,
}

impl RedactedRecord {
    /// Reads the payload of a `log.redacted@1` of this session and checks the statement in it. Nothing is
    /// read from disk.
    pub fn check(
        payload: &[u8],
        dir: &SessionDir,
        trust: &Trust,
        time: Timestamp,
    ) -> Result<Verified<Redaction>, ProblemKind> {
        let bad = |reason: String| ProblemKind::BadRedaction { reason };
        let record: Self = serde_json::from_slice(payload).map_err(|e| bad(e.to_string()))?;
        // The log key signs checkpoints; it must not be able to take content away as well.
        let operators: Vec<_> = trust
            .operators
            .iter()
            .filter(|key| !trust.log_keys.contains(key))
            .cloned()
            .collect();
        let verified = record
            .statement
            .verify::<Redaction>(&operators, time)
            .map_err(|error| match error {
                StatementError::Untrusted => ProblemKind::UnknownOperator {
                    keys: signers(&record.statement),
                },
                error => bad(error.to_string()),
            })?;
        let subject = verified.subject();
        if subject.project != dir.project().as_str() || subject.session != dir.session().as_str() {
            return Err(bad(format!(
                "it is about session `{}` of project `{}`",
                subject.session, subject.project
            )));
        }
        Ok(verified)
    }
}

fn signers(statement: &Envelope) -> String {
    let keys: Vec<String> = statement
        .signatures()
        .iter()
        .map(|signature| signature.key_id.to_string())
        .collect();
    keys.join(", ")
}

/// Why nothing was redacted.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The session cannot be written now, or is not there.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The session does not verify, so nobody knows what would be redacted.
    #[error("the session does not verify, and nothing was redacted: {problem}")]
    NotIntact {
        /// The first problem.
        problem: Box<Problem>,
    },
    /// There is no such event.
    #[error("there is no event {seq}; the session has {events}")]
    NoSuchEvent {
        /// What was asked for.
        seq: u64,
        /// How many there are.
        events: u64,
    },
    /// The log's own events hold the chain of evidence together.
    #[error("event {seq} is `{kind}`, which the log needs to be verified")]
    Needed {
        /// Which.
        seq: u64,
        /// Its type.
        kind: String,
    },
    /// It has no payload any more.
    #[error("event {seq} is redacted already")]
    Already {
        /// Which.
        seq: u64,
    },
    /// Nothing was asked for.
    #[error("no event was named")]
    Nothing,
    /// The statement that names them all would not fit its line.
    #[error("{events} events are too many for one redaction; redact them in several")]
    TooMany {
        /// How many.
        events: usize,
    },
    /// Somebody else changed the file meanwhile.
    #[error("the events changed while they were copied, and nothing was redacted")]
    Changed,
    /// The operator's key must not be the log's.
    #[error("the operator's key is the log key; a redaction needs a key of its own")]
    LogKey,
    /// The statement could not be made.
    #[error("the redaction cannot be signed: {0}")]
    Statement(#[from] StatementError),
    /// The log cannot be read.
    #[error("the log cannot be read: {0}")]
    Read(#[from] ReadError),
    /// A record cannot be written.
    #[error("the redaction's record cannot be written: {0}")]
    Record(#[from] canonical::CanonicalError),
    /// A file operation failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<LedgerError> for RedactError {
    fn from(error: LedgerError) -> Self {
        Self::Open(error.into())
    }
}

/// What was redacted.
#[derive(Debug, Clone, Serialize)]
pub struct Redacted {
    /// The event that answers for it.
    pub redaction: u64,
    /// All events whose payloads are gone: the ones that were named, and others that referred to
    /// the same blobs.
    pub events: Vec<u64>,
    /// The blobs that are gone.
    pub blobs: Vec<Digest>,
}

/// Redacts the payloads of the named events.
pub fn redact(
    log: &ProjectLog,
    session: &SessionId,
    seqs: &BTreeSet<u64>,
    reason: &str,
    operator: &SecretKey,
    trust: &Trust,
    options: &WriterOptions,
) -> Result<Redacted, RedactError> {
    if operator.public() == options.key.public() {
        return Err(RedactError::LogKey);
    }
    let dir = log.session(session);
    if !dir.dir().is_dir() {
        return Err(RedactError::Open(OpenError::NotFound {
            session: session.clone(),
        }));
    }
    let mut lock = lock_session(&dir)?;
    let mut trust = trust.clone();
    trust.operators.push(operator.public());
    trust.log_keys.push(options.key.public());
    let mut work = Work::new(log, &dir, &trust, options)?;
    if work.ends_in_a_torn_line() {
        // The session's next writer cuts it off and records it; here that is this redaction.
        drop(lock);
        drop(LogWriter::reopen(log, session, options)?);
        lock = lock_session(&dir)?;
        work = Work::new(log, &dir, &trust, options)?;
    }
    if let Some(finished) = work.complete_interrupted()?
        && seqs.iter().all(|seq| finished.events.contains(seq))
    {
        return Ok(finished);
    }
    work.plan(seqs)?;
    work.write(reason, operator)?;
    let done = work.finish();
    drop(lock);
    done
}

/// Erases what redactions took and a crash left: the blobs that a `log.redacted@1` names and no
/// later event stored again, and the recovered parts it names.
pub(crate) fn finish_erasure(dir: &SessionDir) -> io::Result<()> {
    let mut erased = BTreeSet::new();
    for event in Reader::open(dir)? {
        let Ok(event) = event else { break };
        for name in work::blobs_of(&event) {
            erased.remove(&name);
        }
        if let Payload::Present(bytes) = &event.payload
            && event.kind == EventType::LOG_REDACTED.as_str()
            && let Ok(record) = serde_json::from_slice::<RedactedRecord>(bytes)
            && let Ok(issued) =
                serde_json::from_slice::<Issued<Redaction>>(record.statement.unverified_payload())
        {
            erased.extend(issued.subject.blobs);
            work::erase_parts(dir, &issued.subject.recovered)?;
        }
    }
    work::erase_blobs(dir, &erased)
}
