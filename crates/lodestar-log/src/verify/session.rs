//! One session, in one pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io;
use std::ops::ControlFlow;

use lodestar_core::digest::Digest;
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
use crate::trust::{Trust, open_checkpoint, other_signatures};

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

/// Checks a session that came without its ledger, from somebody who holds the key that it is signed with: against
/// its own checkpoint and those that were received of it earlier. So that nothing depends on who reads it, a torn
/// line and a payload that no writer would write are problems here.
pub fn verify_shipped(
    dir: &SessionDir,
    received: &[Checkpoint],
    trust: &Trust,
) -> io::Result<SessionReport> {
    let check = Check {
        received: Some(received),
        ..Check::new(dir, None, trust)
    };
    check.run(&|_| ())
}

struct Check<'a> {
    dir: &'a SessionDir,
    facts: Option<&'a SessionFacts>,
    /// Of a session that came without its ledger.
    received: Option<&'a [Checkpoint]>,
    trust: &'a Trust,
    events_name: String,
    checkpoint_name: String,
    problems: Problems,
    remarks: Vec<Remark>,
    tombstones: BTreeMap<u64, Tombstone>,
    answered: BTreeMap<u64, (Digest, u64)>,
    /// Blobs that a redaction took, and which; one that a later event stored again is not among them.
    erased: BTreeMap<Digest, u64>,
    /// Recovered parts that are missing or changed, until a redaction turns out to have taken them.
    lost_parts: BTreeMap<String, (u64, u64, ProblemKind)>,
    /// Recovered parts that a redaction took, and which.
    erased_parts: BTreeMap<String, u64>,
    /// Statements seen so far: each answers once.
    statements: BTreeSet<Digest>,
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
            received: None,
            trust,
            events_name: format!("{}/{EVENTS}", dir.session()),
            checkpoint_name: format!("{}/{CHECKPOINT}", dir.session()),
            problems: Problems::default(),
            remarks: Vec::new(),
            tombstones: BTreeMap::new(),
            answered: BTreeMap::new(),
            erased: BTreeMap::new(),
            lost_parts: BTreeMap::new(),
            erased_parts: BTreeMap::new(),
            statements: BTreeSet::new(),
            closed: false,
        }
    }

    fn run(mut self, progress: &dyn Fn(Progress<'_>)) -> io::Result<SessionReport> {
        let live = is_live(self.dir)?;
        // Before the events: a live session's checkpoint only ever moves forward.
        let checkpoint = self.read_checkpoint()?;
        let begun = checkpoint.as_ref().map(|checkpoint| checkpoint.size > 0);
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
        anchors.extend(self.received.into_iter().flatten().map(|c| Anchor {
            size: c.size,
            root: c.root,
            source: Commitment::Received,
        }));
        let events_name = self.events_name.clone();
        let opening = self.facts.map(|facts| facts.opening);
        let mut chain = Chain::new(&events_name, opening, anchors);
        let is_shipped = self.received.is_some();
        let vouched = checkpoint.as_ref().filter(|_| !is_shipped);
        let vouched = vouched.map_or(0, |c| c.size);
        let is_whole = closing.is_some() || is_shipped;
        let read = disk::open_read(&self.dir.events_path())
            .and_then(|file| self.fold(&file, &mut chain, (is_whole, vouched), progress));
        match read {
            Ok(()) => chain.end(&mut self.problems),
            Err(e) if e.kind() == io::ErrorKind::NotFound && begun == Some(false) => {}
            // What cannot be read may still be there: it is not said to be missing.
            Err(e) => self.events_problem(ProblemKind::Unreadable {
                reason: e.to_string(),
            }),
        }
        let events = chain.tip.tree.size();
        self.check_closing(closing, checkpoint.as_ref(), events);
        self.check_redactions();
        let proven = checkpoint.map_or(0, |c| c.size.min(events));
        if begun == Some(false) && events == 0 {
            self.remarks.push(Remark::NotStarted {
                name: self.dir.session().to_string(),
            });
        }
        for (from, to, record) in self.facts.map_or(&[][..], |facts| &facts.late) {
            self.remarks.push(Remark::SignedLate {
                from: *from,
                to: *to - 1,
                record: *record,
            });
        }
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
        for (name, verified) in other_signatures(note, &self.dir.origin(), self.trust) {
            match verified {
                Some(Ok(())) => {}
                Some(Err(reason)) => {
                    let kind = ProblemKind::CheckpointInvalid { reason };
                    self.problems.add(&self.checkpoint_name, None, None, kind);
                }
                None => self.remarks.push(Remark::UnknownSignature { name }),
            }
        }
    }

    fn fold(
        &mut self,
        file: &File,
        chain: &mut Chain<'_>,
        (is_whole, vouched): (bool, u64),
        progress: &dyn Fn(Progress<'_>),
    ) -> io::Result<()> {
        let total = file.metadata()?.len();
        let dir = self.dir;
        let blobs = BlobCheck::new(dir, vouched);
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
                    Err(LineError::Unterminated) if !is_whole => {
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
        for name in &link.blobs {
            self.erased.remove(name);
        }
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
                let found = self.take_recovery(link.seq, offset, record);
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
        let again = |what: &str| ProblemKind::BadRedaction {
            reason: format!("{what} was redacted before: the statement is a copy"),
        };
        if !self.statements.insert(redaction.digest()) {
            return Err(again("what it names"));
        }
        for event in &statement.events {
            let answer = (event.leaf_hash, seq);
            if event.seq >= seq || self.answered.insert(event.seq, answer).is_some() {
                return Err(again(&format!("#{}", event.seq)));
            }
        }
        for part in &statement.recovered {
            self.lost_parts.remove(part);
            self.erased_parts.insert(part.clone(), seq);
        }
        self.erased
            .extend(statement.blobs.iter().map(|name| (*name, seq)));
        self.remarks.push(Remark::Redacted {
            redaction: seq,
            events: statement.events.len() as u64,
            operator: redaction.issued().key_id.to_string(),
            reason: statement.reason.clone(),
        });
        Ok(())
    }

    fn take_recovery(&mut self, seq: u64, offset: u64, record: &Record) -> Result<(), ProblemKind> {
        let changed = |reason: String| ProblemKind::RecoveredPartChanged { reason };
        let recovered: RecoveredRecord =
            serde_json::from_slice(&record.payload).map_err(|e| changed(e.to_string()))?;
        match recovered.check_kept(&self.dir.recovered_dir()) {
            Ok(()) => self.remarks.push(Remark::Recovered {
                seq,
                bytes: recovered.bytes,
                kept: recovered.kept,
            }),
            Err(reason) => {
                let problem = (seq, offset, changed(reason));
                self.lost_parts.insert(recovered.kept, problem);
            }
        }
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

    fn check_redactions(&mut self) {
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
        for (seq, offset, kind) in std::mem::take(&mut self.lost_parts).into_values() {
            self.problems
                .add(&self.events_name, Some(seq), Some(offset), kind);
        }
        for (name, redaction) in std::mem::take(&mut self.erased_parts) {
            if is_valid_name(name.as_bytes()) && self.dir.recovered_dir().join(&name).exists() {
                let kind = ProblemKind::RedactedPartPresent { redaction, name };
                self.problems
                    .add(&self.events_name, Some(redaction), None, kind);
            }
        }
        let blobs = self.dir.blobs_dir();
        for (name, redaction) in &self.erased {
            if blobs.join(name.to_string()).exists() {
                let kind = ProblemKind::RedactedBlobPresent {
                    redaction: *redaction,
                    name: *name,
                };
                self.problems
                    .add(&self.events_name, Some(*redaction), None, kind);
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
