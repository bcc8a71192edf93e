//! Taking content back: payload and salt are replaced by a tombstone, the head stays, and so do
//! all hashes, proofs and checkpoints. A signed statement of an operator answers for each gap.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::SessionId;
use lodestar_core::note::Checkpoint;
use lodestar_core::statement::{
    Envelope, Issued, Nonce, RedactedEvent, Redaction, StatementError, Verified,
};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::clock::salt;
use crate::disk;
use crate::error::{LedgerError, OpenError};
use crate::layout::{CHECKPOINT, EVENTS, ProjectLog, SessionDir};
use crate::ledger::{ClosingRecord, LedgerState, LockedLedger, OWN_ACTOR, SessionFacts};
use crate::line::{HeadFields, payload_hash, write_line, write_tombstone};
use crate::problem::{Problem, ProblemKind};
use crate::reader::{Event, Payload, ReadError, Reader};
use crate::trust::Trust;
use crate::verify::{SessionReport, verify_session};
use crate::writer::WriterOptions;
use crate::writer::lock_session;

/// The payload of `log.redacted@1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedactedRecord {
    /// The operator's signed statement.
    pub statement: Envelope,
}

impl RedactedRecord {
    /// Reads the payload of a `log.redacted@1` and checks the statement in it.
    pub(crate) fn check(
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
    let _lock = lock_session(&dir)?;
    let mut trust = trust.clone();
    trust.operators.push(operator.public());
    trust.log_keys.push(options.key.public());
    let mut redaction = Work::new(log, &dir, &trust, options)?;
    redaction.complete_interrupted()?;
    redaction.plan(seqs)?;
    redaction.write(reason, operator)?;
    redaction.finish()
}

/// A redaction on its way.
struct Work<'a> {
    log: &'a ProjectLog,
    dir: &'a SessionDir,
    trust: &'a Trust,
    options: &'a WriterOptions,
    facts: SessionFacts,
    report: SessionReport,
    /// Event → leaf hash of everything that goes.
    targets: BTreeMap<u64, Digest>,
    blobs: BTreeSet<Digest>,
    checkpoint: Option<Checkpoint>,
}

impl<'a> Work<'a> {
    fn new(
        log: &'a ProjectLog,
        dir: &'a SessionDir,
        trust: &'a Trust,
        options: &'a WriterOptions,
    ) -> Result<Self, RedactError> {
        let ledger = LockedLedger::open(log, &options.key, &options.clock)?;
        let facts = ledger
            .ledger
            .session(dir.session())
            .cloned()
            .ok_or_else(|| OpenError::NotFound {
                session: dir.session().clone(),
            })?;
        drop(ledger);
        let report = verify_session(dir, Some(&facts), trust, &|_| ())?;
        Ok(Self {
            log,
            dir,
            trust,
            options,
            facts,
            report,
            targets: BTreeMap::new(),
            blobs: BTreeSet::new(),
            checkpoint: None,
        })
    }

    /// A crash between replacing the events and signing the new checkpoint leaves a session whose
    /// only fault is a valid redaction at its end. It is finished first.
    fn complete_interrupted(&mut self) -> Result<(), RedactError> {
        let explained = |kind: &ProblemKind| {
            matches!(
                kind,
                ProblemKind::GrownAfterClosing { .. } | ProblemKind::RedactedBlobPresent { .. }
            )
        };
        if self.report.problems.is_empty() {
            return Ok(());
        }
        let last = Reader::open(self.dir)?.last().transpose()?;
        let statement = last.as_ref().and_then(|event| match &event.payload {
            Payload::Present(bytes) if event.kind == EventType::LOG_REDACTED.as_str() => {
                RedactedRecord::check(bytes, self.dir, self.trust, event.time).ok()
            }
            _ => None,
        });
        if let Some(statement) = statement
            && self.report.problems.iter().all(|p| explained(&p.kind))
        {
            self.blobs = statement.subject().blobs.iter().copied().collect();
            self.checkpoint = Some(self.checkpoint_of(self.report.events, self.report.root));
            self.seal()?;
            *self = Self::new(self.log, self.dir, self.trust, self.options)?;
        }
        match self.report.problems.first() {
            Some(problem) => Err(RedactError::NotIntact {
                problem: Box::new(problem.clone()),
            }),
            None => Ok(()),
        }
    }

    /// Finds everything that has to go: the named events, those that share a blob with them, and
    /// the blobs nobody else needs.
    fn plan(&mut self, seqs: &BTreeSet<u64>) -> Result<(), RedactError> {
        if seqs.is_empty() {
            return Err(RedactError::Nothing);
        }
        if let Some(seq) = seqs.iter().find(|seq| **seq >= self.report.events) {
            return Err(RedactError::NoSuchEvent {
                seq: *seq,
                events: self.report.events,
            });
        }
        let mut named_blobs = BTreeSet::new();
        for event in Reader::open(self.dir)? {
            let event = event?;
            if !seqs.contains(&event.seq) {
                continue;
            }
            if matches!(event.payload, Payload::Redacted { .. }) {
                return Err(RedactError::Already { seq: event.seq });
            }
            if event.kind.starts_with("log.") {
                return Err(RedactError::Needed {
                    seq: event.seq,
                    kind: event.kind,
                });
            }
            named_blobs.extend(blobs_of(&event));
            self.targets.insert(event.seq, event.leaf_hash);
        }
        let mut gone = named_blobs.clone();
        let mut needed = BTreeSet::new();
        for event in Reader::open(self.dir)? {
            let event = event?;
            let own: BTreeSet<Digest> = blobs_of(&event).collect();
            let shares = !own.is_disjoint(&named_blobs);
            if shares || self.targets.contains_key(&event.seq) {
                self.targets.insert(event.seq, event.leaf_hash);
                gone.extend(own);
            } else {
                needed.extend(own);
            }
        }
        self.blobs = gone.difference(&needed).copied().collect();
        Ok(())
    }

    /// Writes the new events file beside the old one and puts it in its place.
    fn write(&mut self, reason: &str, operator: &SecretKey) -> Result<(), RedactError> {
        let now = self.options.clock.now();
        let statement = Envelope::sign(
            &Issued {
                key_id: operator.public().key_id(),
                issued_at: now,
                expires_at: None,
                nonce: Nonce::from_bytes(salt()?),
                subject: Redaction {
                    project: self.dir.project().to_string(),
                    session: self.dir.session().to_string(),
                    events: self
                        .targets
                        .iter()
                        .map(|(seq, leaf)| RedactedEvent {
                            seq: *seq,
                            leaf_hash: *leaf,
                        })
                        .collect(),
                    blobs: self.blobs.iter().copied().collect(),
                    reason: reason.to_owned(),
                },
            },
            operator,
        )?;
        let payload = canonical::to_vec(&RedactedRecord { statement })?;
        let old_path = self.dir.events_path();
        let mut old = OpenOptions::new().read(true).write(true).open(&old_path)?;
        let temporary = self.dir.dir().join(format!("{EVENTS}.tmp"));
        let mut new = BufWriter::new(File::create(&temporary)?);
        let redaction = self.report.events;
        let mut erase = Vec::new();
        let mut tree = lodestar_core::merkle::Frontier::new();
        let mut last = (self.facts.opening, now);
        let mut line_buffer = Vec::new();
        let mut offset = 0;
        for event in Reader::open(self.dir)? {
            let event = event?;
            debug_assert_eq!(event.offset, offset);
            let len = read_line(&mut old, event.offset, &mut line_buffer)?;
            offset = event.offset + len;
            tree.push(event.leaf_hash);
            last = (event.leaf_hash, event.time);
            if self.targets.contains_key(&event.seq) {
                let line = crate::line::Line::parse(&line_buffer[..line_buffer.len() - 1])
                    .map_err(|error| ReadError::Line {
                        offset: event.offset,
                        error,
                    })?;
                let head_end = event.offset + "{\"head\":".len() as u64 + line.head.len() as u64;
                erase.push(head_end..offset);
                let mut tombstone = Vec::new();
                write_tombstone(&mut tombstone, line.head, redaction);
                new.write_all(&tombstone)?;
            } else {
                new.write_all(&line_buffer)?;
            }
        }
        let salt = salt()?;
        let mut line = Vec::new();
        let leaf = write_line(
            &mut line,
            &HeadFields {
                actor: OWN_ACTOR,
                parents: &[],
                payload_hash: &payload_hash(&salt, &payload),
                prev: &last.0,
                project: self.dir.project().as_str(),
                seq: redaction,
                session: self.dir.session().as_str(),
                time: now.max(last.1),
                kind: EventType::LOG_REDACTED.as_str(),
            },
            &payload,
            &salt,
        );
        tree.push(leaf);
        new.write_all(&line)?;
        new.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        fs::rename(&temporary, &old_path)?;
        disk::sync_dir(self.dir.dir())?;
        // The old file has no name any more; its bytes are overwritten before its blocks are free.
        for range in erase {
            zero(&mut old, range.start, range.end - range.start)?;
        }
        old.sync_all()?;
        self.checkpoint = Some(self.checkpoint_of(redaction + 1, tree.root()));
        Ok(())
    }

    fn checkpoint_of(&self, size: u64, root: Digest) -> Checkpoint {
        Checkpoint {
            origin: self.dir.origin(),
            size,
            root,
        }
    }

    /// Deletes the blobs, signs the new state, and enters it in the ledger if the session was closed.
    fn seal(&self) -> Result<(), RedactError> {
        let blobs_dir = self.dir.blobs_dir();
        for name in &self.blobs {
            erase_file(&blobs_dir.join(name.to_string()))?;
        }
        if !self.blobs.is_empty() {
            disk::sync_dir(&blobs_dir)?;
        }
        let Some(checkpoint) = &self.checkpoint else {
            return Ok(());
        };
        let note = checkpoint.sign(&self.options.key).to_string();
        disk::replace(self.dir.dir(), CHECKPOINT, note.as_bytes())?;
        if matches!(self.facts.state, LedgerState::Closed(_)) {
            let mut ledger = LockedLedger::open(self.log, &self.options.key, &self.options.clock)?;
            ledger.append(
                EventType::LEDGER_SESSION_CLOSED,
                &ClosingRecord {
                    session: self.dir.session().clone(),
                    checkpoint: note,
                },
            )?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Redacted, RedactError> {
        self.seal()?;
        Ok(Redacted {
            redaction: self.report.events,
            events: self.targets.into_keys().collect(),
            blobs: self.blobs.into_iter().collect(),
        })
    }
}

fn blobs_of(event: &Event) -> impl Iterator<Item = Digest> {
    let refs = match &event.payload {
        Payload::Present(bytes) if blob::mentions_blobs(bytes) => blob::list(bytes).ok().flatten(),
        _ => None,
    };
    refs.into_iter().flatten().map(|blob| blob.sha256)
}

/// Reads the line at `offset`, newline included, and gives its length.
fn read_line(file: &mut File, offset: u64, line: &mut Vec<u8>) -> io::Result<u64> {
    use std::io::BufRead as _;
    file.seek(SeekFrom::Start(offset))?;
    line.clear();
    let limit = crate::line::MAX_LINE_BYTES as u64 + 1;
    let read = io::BufReader::new(file.take(limit)).read_until(b'\n', line)?;
    Ok(read as u64)
}

fn zero(file: &mut File, from: u64, len: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(from))?;
    io::copy(&mut io::repeat(0).take(len), file)?;
    Ok(())
}

fn erase_file(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let len = file.metadata()?.len();
    zero(&mut file, 0, len)?;
    file.sync_all()?;
    fs::remove_file(path)
}
