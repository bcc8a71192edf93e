//! The steps of a redaction: find what goes, write the new file, seal the new state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _};
use std::ops::Range;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::is_valid_name;
use lodestar_core::note::Checkpoint;
use lodestar_core::statement::{
    Envelope, Issued, Nonce, RedactedEvent, Redaction, StatementError, Verified,
};
use lodestar_core::time::Timestamp;

use super::{RedactError, Redacted, RedactedRecord};
use crate::blob;
use crate::chain::{NewEvent, Tip};
use crate::clock::salt;
use crate::disk;
use crate::error::OpenError;
use crate::layout::{CHECKPOINT, EVENTS, ProjectLog, SessionDir};
use crate::ledger::{ClosingRecord, LedgerState, LockedLedger, OWN_ACTOR, SessionFacts};
use crate::line::{
    Line, LineError, MAX_LINE_BYTES, MAX_PAYLOAD_BYTES, payload_hash, write_tombstone,
};
use crate::problem::ProblemKind;
use crate::reader::{Event, Payload, ReadError, Reader};
use crate::trust::Trust;
use crate::verify::{Remark, SessionReport, verify_session};
use crate::writer::WriterOptions;

/// A redaction on its way.
pub(super) struct Work<'a> {
    log: &'a ProjectLog,
    dir: &'a SessionDir,
    trust: &'a Trust,
    options: &'a WriterOptions,
    facts: SessionFacts,
    report: SessionReport,
    /// Event → leaf hash of everything that goes.
    targets: BTreeMap<u64, Digest>,
    blobs: BTreeSet<Digest>,
    /// What recoveries cut off: it may hold copies of what goes.
    recovered: Vec<String>,
    checkpoint: Option<Checkpoint>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
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
            recovered: Vec::new(),
            checkpoint: None,
        })
    }

    pub(super) fn ends_in_a_torn_line(&self) -> bool {
        let torn = |remark: &Remark| matches!(remark, Remark::TornTail { .. });
        self.report.remarks.iter().any(torn)
    }

    /// A crash on the way leaves blobs that a redaction took, or, between putting the new events in
    /// place and signing them, exactly one event behind the closing checkpoint: that redaction.
    /// Both are finished first; anything else is refused. Gives what was finished.
    pub(super) fn complete_interrupted(&mut self) -> Result<Option<Redacted>, RedactError> {
        if self.report.problems.is_empty() {
            return Ok(None);
        }
        super::finish_erasure(self.dir)?;
        *self = Self::new(self.log, self.dir, self.trust, self.options)?;
        let mut finished = None;
        let one_more = |kind: &ProblemKind| matches!(kind, ProblemKind::GrownAfterClosing { closed, found } if *found == closed + 1);
        if let [problem] = &self.report.problems[..]
            && one_more(&problem.kind)
            && let Some(statement) = self.last_redaction()?
        {
            let subject = statement.subject();
            finished = Some(Redacted {
                redaction: self.report.events - 1,
                events: subject.events.iter().map(|event| event.seq).collect(),
                blobs: subject.blobs.clone(),
            });
            self.checkpoint = Some(self.checkpoint_of(self.report.events, self.report.root));
            self.seal()?;
            *self = Self::new(self.log, self.dir, self.trust, self.options)?;
        }
        match self.report.problems.first() {
            Some(problem) => Err(RedactError::NotIntact {
                problem: Box::new(problem.clone()),
            }),
            None => Ok(finished),
        }
    }

    /// The statement of the session's last event, if that is a valid redaction.
    fn last_redaction(&self) -> Result<Option<Verified<Redaction>>, RedactError> {
        let last = Reader::open(self.dir)?.last().transpose()?;
        Ok(last.and_then(|event| match &event.payload {
            Payload::Present(bytes) if event.kind == EventType::LOG_REDACTED.as_str() => {
                RedactedRecord::check(bytes, self.dir, self.trust, event.time).ok()
            }
            _ => None,
        }))
    }

    /// Finds everything that has to go: the named events, those that share a blob with them, and
    /// the blobs nobody else needs.
    pub(super) fn plan(&mut self, seqs: &BTreeSet<u64>) -> Result<(), RedactError> {
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
        self.recovered = self
            .report
            .remarks
            .iter()
            .filter_map(|remark| match remark {
                Remark::Recovered { kept, .. } => Some(kept.clone()),
                _ => None,
            })
            .collect();
        Ok(())
    }

    /// Writes the new events file beside the old one and puts it in its place.
    pub(super) fn write(&mut self, reason: &str, operator: &SecretKey) -> Result<(), RedactError> {
        let now = self.options.clock.now();
        let statement = self.sign(reason, operator, now)?;
        let path = self.dir.events_path();
        let temporary = self.dir.dir().join(format!("{EVENTS}.tmp"));
        let mut old = disk::open_update(&path)?;
        let mut new = BufWriter::new(disk::create_new(&temporary)?);
        let written = self
            .copy_with_tombstones(&mut old, &mut new)
            .and_then(|(mut tip, erase)| {
                self.append_record(&mut new, &mut tip, &statement, now)?;
                let file = new.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.sync_all()?;
                Ok((tip, erase))
            });
        let (tip, erase) = match written {
            Ok(written) => written,
            Err(error) => {
                // It holds a copy of the log, and nobody would look for it here.
                let _ = disk::erase_file(&temporary);
                return Err(error);
            }
        };
        disk::put_in_place(self.dir.dir(), &format!("{EVENTS}.tmp"), EVENTS)?;
        // The old file has no name any more; its bytes are overwritten before its blocks are free.
        for range in erase {
            disk::zero(&mut old, range)?;
        }
        old.sync_all()?;
        self.checkpoint = Some(self.checkpoint_of(tip.tree.size(), tip.tree.root()));
        Ok(())
    }

    fn sign(
        &self,
        reason: &str,
        operator: &SecretKey,
        now: Timestamp,
    ) -> Result<Envelope, RedactError> {
        let events = self.targets.iter().map(|(seq, leaf)| RedactedEvent {
            seq: *seq,
            leaf_hash: *leaf,
        });
        let statement = Issued {
            key_id: operator.public().key_id(),
            issued_at: now,
            expires_at: None,
            nonce: Nonce::from_bytes(salt()?),
            subject: Redaction {
                project: self.dir.project().to_string(),
                session: self.dir.session().to_string(),
                events: events.collect(),
                blobs: self.blobs.iter().copied().collect(),
                reason: reason.to_owned(),
                recovered: self.recovered.clone(),
            },
        };
        Envelope::sign(&statement, operator).map_err(|error| match error {
            StatementError::TooLong(_) => RedactError::TooMany {
                events: self.targets.len(),
            },
            error => error.into(),
        })
    }

    /// Copies line by line; gives the state behind the last one, and which bytes of the old file
    /// are to be overwritten.
    fn copy_with_tombstones(
        &self,
        old: &mut File,
        new: &mut impl io::Write,
    ) -> Result<(Tip, Vec<Range<u64>>), RedactError> {
        let mut tip = Tip::start(self.facts.opening);
        let mut erase = Vec::new();
        let mut lines = BufReader::new(old);
        let mut line = Vec::new();
        let mut tombstone = Vec::new();
        loop {
            line.clear();
            let start = tip.end;
            let limit = MAX_LINE_BYTES as u64 + 1;
            if (&mut lines).take(limit).read_until(b'\n', &mut line)? == 0 {
                // INVARIANT: what is copied is what was verified, to the last event.
                return match tip.tree.root() == self.report.root {
                    true => Ok((tip, erase)),
                    false => Err(RedactError::Changed),
                };
            }
            let parsed = line
                .strip_suffix(b"\n")
                .ok_or(LineError::Unterminated)
                .and_then(Line::parse)
                .map_err(|error| ReadError::Line {
                    offset: start,
                    error,
                })?;
            tip.end += line.len() as u64;
            tip.last = parsed.leaf_hash();
            tip.time = parsed.time;
            tip.tree.push(tip.last);
            if self.targets.contains_key(&parsed.seq) && parsed.payload().is_some() {
                let head_end = start + ("{\"head\":".len() + parsed.head.len()) as u64;
                erase.push(head_end..tip.end);
                tombstone.clear();
                write_tombstone(&mut tombstone, parsed.head, self.report.events);
                new.write_all(&tombstone)?;
            } else {
                new.write_all(&line)?;
            }
        }
    }

    fn append_record(
        &self,
        new: &mut impl io::Write,
        tip: &mut Tip,
        statement: &Envelope,
        now: Timestamp,
    ) -> Result<(), RedactError> {
        let payload = canonical::to_vec(&RedactedRecord {
            statement: statement.clone(),
        })?;
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(RedactError::TooMany {
                events: self.targets.len(),
            });
        }
        let salt = salt()?;
        let mut line = Vec::new();
        tip.append(
            &mut line,
            &NewEvent {
                actor: OWN_ACTOR,
                parents: &[],
                project: self.dir.project().as_str(),
                session: self.dir.session().as_str(),
                kind: EventType::LOG_REDACTED,
                now,
                payload: &payload,
                payload_hash: payload_hash(&salt, &payload),
                salt: &salt,
            },
        );
        Ok(new.write_all(&line)?)
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
        erase_blobs(self.dir, &self.blobs)?;
        erase_parts(self.dir, &self.recovered)?;
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

    pub(super) fn finish(self) -> Result<Redacted, RedactError> {
        self.seal()?;
        Ok(Redacted {
            redaction: self.report.events,
            events: self.targets.into_keys().collect(),
            blobs: self.blobs.into_iter().collect(),
        })
    }
}

/// The blobs an event's payload names.
pub(super) fn blobs_of(event: &Event) -> impl Iterator<Item = Digest> {
    let refs = match &event.payload {
        Payload::Present(bytes) if blob::mentions_blobs(bytes) => blob::list(bytes).ok().flatten(),
        _ => None,
    };
    refs.into_iter().flatten().map(|blob| blob.sha256)
}

pub(super) fn erase_blobs(dir: &SessionDir, names: &BTreeSet<Digest>) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let blobs = dir.blobs_dir();
    for name in names {
        disk::erase_file(&blobs.join(name.to_string()))?;
    }
    match disk::sync_dir(&blobs) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

pub(super) fn erase_parts(dir: &SessionDir, names: &[String]) -> io::Result<()> {
    for name in names.iter().filter(|name| is_valid_name(name.as_bytes())) {
        disk::erase_file(&dir.recovered_dir().join(name))?;
    }
    Ok(())
}
