//! One session, in one pass.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::ops::ControlFlow;

use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::event::EventType;
use lodestar_core::name::is_valid_name;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_core::statement::Redaction;
use lodestar_core::time::Timestamp;

use super::blobs::BlobCheck;
use super::{Progress, Remark, SessionReport, SessionState};
use crate::chain::{Anchor, Chain, Link, Record};
use crate::disk;
use crate::layout::{CHECKPOINT, EVENTS, MAX_CHECKPOINT_BYTES, SessionDir};
use crate::ledger::{LedgerState, SessionFacts};
use crate::line::LineError;
use crate::problem::{Commitment, ProblemKind, Problems};
use crate::recover::RecoveredRecord;
use crate::redact::RedactedRecord;
use crate::scan;
use crate::trust::{Trust, open_checkpoint};

/// How often a long check says how far it is.
const PROGRESS_EVENTS: u64 = 4096;

/// Checks one session against its own checkpoint and what the ledger says of it. Without `facts`
/// the ledger's part is left out, and whoever calls must say so.
pub fn verify_session(
    dir: &SessionDir,
    facts: Option<&SessionFacts>,
    trust: &Trust,
    progress: &dyn Fn(Progress<'_>),
) -> io::Result<SessionReport> {
    Check::new(dir, facts, trust).run(progress)
}

struct Check<'a> {
    dir: &'a SessionDir,
    facts: Option<&'a SessionFacts>,
    trust: &'a Trust,
    events_name: String,
    checkpoint_name: String,
    problems: Problems,
    remarks: Vec<Remark>,
    tombstones: BTreeMap<u64, Tombstone>,
    answered: BTreeMap<u64, (Digest, u64)>,
    /// Whether the last event that is not the log's own closes the session.
    closed: bool,
}

struct Tombstone {
    leaf: Digest,
    redaction: u64,
    offset: u64,
}

impl<'a> Check<'a> {
    fn new(dir: &'a SessionDir, facts: Option<&'a SessionFacts>, trust: &'a Trust) -> Self {
        Self {
            dir,
            facts,
            trust,
            events_name: format!("{}/{EVENTS}", dir.session()),
            checkpoint_name: format!("{}/{CHECKPOINT}", dir.session()),
            problems: Problems::default(),
            remarks: Vec::new(),
            tombstones: BTreeMap::new(),
            answered: BTreeMap::new(),
            closed: false,
        }
    }

    fn run(mut self, progress: &dyn Fn(Progress<'_>)) -> io::Result<SessionReport> {
        let live = is_live(self.dir)?;
        // Before the events: a live session's checkpoint only ever moves forward.
        let checkpoint = self.read_checkpoint()?;
        let closing = match self.facts.map(|facts| &facts.state) {
            Some(LedgerState::Closed(closing)) => Some(closing),
            _ => None,
        };
        let mut anchors: Vec<Anchor> = self.facts.map_or(Vec::new(), |f| f.anchors.clone());
        anchors.extend(checkpoint.iter().map(|c| Anchor {
            size: c.size,
            root: c.root,
            source: Commitment::Checkpoint,
        }));
        let events_name = self.events_name.clone();
        let opening = self.facts.map(|facts| facts.opening);
        let mut chain = Chain::new(&events_name, opening, anchors);
        match File::open(self.dir.events_path()) {
            Ok(file) => self.fold(&file, &mut chain, closing.is_some(), progress)?,
            Err(e) => self.events_problem(ProblemKind::Unreadable {
                reason: e.to_string(),
            }),
        }
        chain.end(&mut self.problems);
        let events = chain.tip.tree.size();
        self.check_closing(closing, checkpoint.as_ref(), events);
        self.check_tombstones();
        let proven = checkpoint.map_or(0, |c| c.size.min(events));
        if closing.is_none() && events > proven {
            self.remarks.push(Remark::UnprovenTail {
                events: events - proven,
            });
        }
        Ok(SessionReport {
            session: self.dir.session().clone(),
            state: match (live, closing) {
                (true, _) => SessionState::Live,
                (false, Some(_)) => SessionState::Closed,
                (false, None) => SessionState::Open,
            },
            events,
            root: chain.tip.tree.root(),
            proven,
            problems: self.problems.finish(),
            remarks: self.remarks,
        })
    }

    fn events_problem(&mut self, kind: ProblemKind) {
        self.problems.add(&self.events_name, None, None, kind);
    }

    fn read_checkpoint(&mut self) -> io::Result<Option<Checkpoint>> {
        let bytes = disk::read_small(&self.dir.checkpoint_path(), MAX_CHECKPOINT_BYTES);
        let kind = match bytes {
            Ok(None) => ProblemKind::CheckpointMissing,
            Err(e) => ProblemKind::Unreadable {
                reason: e.to_string(),
            },
            Ok(Some(bytes)) => match open_checkpoint(&bytes, &self.dir.origin(), self.trust) {
                Ok((checkpoint, note)) => {
                    self.check_witnesses(&note);
                    return Ok(Some(checkpoint));
                }
                Err(reason) => ProblemKind::CheckpointInvalid { reason },
            },
        };
        self.problems.add(&self.checkpoint_name, None, None, kind);
        Ok(None)
    }

    /// Signature lines beyond the log's own are kept, and verified where the key is known.
    fn check_witnesses(&mut self, note: &Note) {
        let origin = self.dir.origin();
        for signature in note.signatures().iter().filter(|s| s.name != origin) {
            let key =
                self.trust.witnesses.iter().find(|key| {
                    key.name() == signature.name && key.key_hash() == signature.key_hash
                });
            match key.map(|key| key.verify(note)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => self.problems.add(
                    &self.checkpoint_name,
                    None,
                    None,
                    ProblemKind::CheckpointInvalid {
                        reason: error.to_string(),
                    },
                ),
                None => self.remarks.push(Remark::UnknownSignature {
                    name: signature.name.clone(),
                }),
            }
        }
    }

    fn fold(
        &mut self,
        file: &File,
        chain: &mut Chain<'_>,
        closed: bool,
        progress: &dyn Fn(Progress<'_>),
    ) -> io::Result<()> {
        let total = file.metadata()?.len();
        let dir = self.dir;
        let blobs = BlobCheck::new(dir);
        scan::scan(
            file,
            total,
            |_, line| blobs.inspect(line),
            |entry| {
                let end = entry.offset + entry.bytes + 1;
                match entry.outcome {
                    Ok(mut link) => {
                        chain.follow(&mut link, entry.offset, end, &mut self.problems);
                        self.take(&link, entry.offset);
                    }
                    Err(LineError::Unterminated) if !closed => {
                        self.remarks.push(Remark::TornTail { bytes: entry.bytes });
                    }
                    Err(error) => chain.unreadable(entry.offset, error, &mut self.problems),
                }
                if chain.tip.tree.size().is_multiple_of(PROGRESS_EVENTS) {
                    progress(Progress {
                        session: dir.session(),
                        done: end.min(total),
                        total,
                    });
                }
                ControlFlow::Continue(())
            },
        )
    }

    /// What an event means to the log itself.
    fn take(&mut self, link: &Link, offset: u64) {
        if let Some(redaction) = link.tombstone {
            self.tombstones.insert(
                link.seq,
                Tombstone {
                    leaf: link.leaf,
                    redaction,
                    offset,
                },
            );
        }
        let kind = link.record.as_ref().map(|record| record.kind.as_str());
        let opened = EventType::SESSION_OPENED.as_str();
        if link.seq == 0 && kind != Some(opened) {
            self.problems.add(
                &self.events_name,
                Some(0),
                Some(offset),
                ProblemKind::NotOpened {
                    found: kind.unwrap_or("another type").to_owned(),
                },
            );
        }
        match (
            kind.and_then(|k| EventType::parse(k.as_bytes())),
            &link.record,
        ) {
            (Some(EventType::SESSION_CLOSED), _) => self.closed = true,
            (Some(EventType::LOG_REDACTED), Some(record)) => {
                let found = self.take_redaction(link.seq, link.time, record);
                self.report(link.seq, offset, found);
            }
            (Some(EventType::LOG_RECOVERED), Some(record)) => {
                let found = self.take_recovery(link.seq, record);
                self.report(link.seq, offset, found);
            }
            _ if kind.is_some_and(|kind| kind.starts_with("log.")) => {}
            _ => self.closed = false,
        }
    }

    fn report(&mut self, seq: u64, offset: u64, found: Result<(), ProblemKind>) {
        if let Err(kind) = found {
            self.problems
                .add(&self.events_name, Some(seq), Some(offset), kind);
        }
    }

    fn take_redaction(
        &mut self,
        seq: u64,
        time: Timestamp,
        record: &Record,
    ) -> Result<(), ProblemKind> {
        let redaction = RedactedRecord::check(&record.payload, self.dir, self.trust, time)?;
        let statement: &Redaction = redaction.subject();
        for event in &statement.events {
            self.answered.insert(event.seq, (event.leaf_hash, seq));
        }
        for name in &statement.blobs {
            if self.dir.blobs_dir().join(name.to_string()).exists() {
                return Err(ProblemKind::RedactedBlobPresent {
                    redaction: seq,
                    name: *name,
                });
            }
        }
        self.remarks.push(Remark::Redacted {
            redaction: seq,
            events: statement.events.len() as u64,
            operator: redaction.issued().key_id.to_string(),
            reason: statement.reason.clone(),
        });
        Ok(())
    }

    fn take_recovery(&mut self, seq: u64, record: &Record) -> Result<(), ProblemKind> {
        let changed = |reason: String| ProblemKind::RecoveredPartChanged { reason };
        let recovered: RecoveredRecord =
            serde_json::from_slice(&record.payload).map_err(|e| changed(e.to_string()))?;
        if !is_valid_name(recovered.kept.as_bytes()) {
            return Err(changed("its name is not a file name".to_owned()));
        }
        let mut file = File::open(self.dir.recovered_dir().join(&recovered.kept))
            .map_err(|e| changed(e.to_string()))?;
        let mut hash = HashWriter(Hasher::new());
        let bytes = io::copy(&mut file, &mut hash).map_err(|e| changed(e.to_string()))?;
        if bytes != recovered.bytes || hash.0.finish() != recovered.sha256 {
            return Err(changed("it does not have the recorded hash".to_owned()));
        }
        self.remarks.push(Remark::Recovered {
            seq,
            bytes: recovered.bytes,
            kept: recovered.kept,
        });
        Ok(())
    }

    fn check_closing(
        &mut self,
        closing: Option<&Checkpoint>,
        checkpoint: Option<&Checkpoint>,
        events: u64,
    ) {
        let Some(closing) = closing else {
            if self.closed && self.facts.is_some() {
                self.remarks.push(Remark::CloseInterrupted);
            }
            return;
        };
        if let Some(checkpoint) = checkpoint.filter(|c| *c != closing) {
            self.problems.add(
                &self.checkpoint_name,
                None,
                None,
                ProblemKind::NotTheClosingCheckpoint {
                    checkpoint: checkpoint.size,
                    closing: closing.size,
                },
            );
        }
        if events > closing.size {
            self.problems.add(
                &self.events_name,
                Some(closing.size),
                None,
                ProblemKind::GrownAfterClosing {
                    closed: closing.size,
                    found: events,
                },
            );
        }
    }

    fn check_tombstones(&mut self) {
        for (seq, tombstone) in &self.tombstones {
            if self.answered.get(seq) != Some(&(tombstone.leaf, tombstone.redaction)) {
                self.problems.add(
                    &self.events_name,
                    Some(*seq),
                    Some(tombstone.offset),
                    ProblemKind::UnansweredTombstone,
                );
            }
        }
        for (seq, (_, redaction)) in &self.answered {
            if !self.tombstones.contains_key(seq) {
                self.problems.add(
                    &self.events_name,
                    Some(*seq),
                    None,
                    ProblemKind::RedactedPayloadPresent {
                        redaction: *redaction,
                    },
                );
            }
        }
    }
}

/// Whether some process is writing the session.
pub fn is_live(dir: &SessionDir) -> io::Result<bool> {
    match File::open(dir.dir())?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

struct HashWriter(Hasher);

impl io::Write for HashWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.update(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
