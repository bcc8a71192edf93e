//! Appending to the ledger, under a lock on the project's directory.

use std::fs::File;
use std::io::Write as _;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::SessionId;
use lodestar_core::note::Checkpoint;
use serde::Serialize;

use super::{FORMAT, LEDGER_NAME, Ledger, OWN_ACTOR, OpeningRecord};
use crate::clock::{Clock, salt};
use crate::disk;
use crate::error::LedgerError;
use crate::layout::{LEDGER, LEDGER_CHECKPOINT, ProjectLog, origin};
use crate::line::{HeadFields, payload_hash, write_line};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::recover::{self, RecoveredRecord};
use crate::trust::Trust;

/// The ledger, locked for appending.
pub(crate) struct LockedLedger<'a> {
    log: &'a ProjectLog,
    key: &'a SecretKey,
    clock: &'a Clock,
    file: File,
    pub(crate) ledger: Ledger,
    /// Held until this value goes.
    _lock: File,
}

impl<'a> LockedLedger<'a> {
    /// Waits for the lock, reads the ledger, and sets aside what an interrupted append left.
    pub(crate) fn open(
        log: &'a ProjectLog,
        key: &'a SecretKey,
        clock: &'a Clock,
    ) -> Result<Self, LedgerError> {
        disk::create_dirs(log.dir()).map_err(LedgerError::io(log.dir()))?;
        let lock = File::open(log.dir()).map_err(LedgerError::io(log.dir()))?;
        lock.lock().map_err(LedgerError::io(log.dir()))?;
        let path = log.ledger_path();
        let file = disk::open_append(&path).map_err(LedgerError::io(&path))?;
        let trust = Trust::only(key.public());
        let mut problems = Problems::default();
        let ledger =
            Ledger::fold(log, &trust, &[], &mut problems).map_err(LedgerError::io(&path))?;
        let mut this = Self {
            log,
            key,
            clock,
            file,
            ledger,
            _lock: lock,
        };
        let len = this.file.metadata().map_err(LedgerError::io(&path))?.len();
        let proven = this.ledger.head.as_ref().map_or(0, |(c, _)| c.size);
        // An append is one record and then the checkpoint over it; only the last can be cut short.
        let interrupted = this.ledger.size() <= proven + 1;
        if this.ledger.size() == proven && this.ledger.tip.end == len && problems.is_empty() {
            return Ok(this);
        }
        if !interrupted {
            problems.add(
                LEDGER,
                Some(proven),
                None,
                ProblemKind::LedgerTail {
                    count: this.ledger.size() - proven,
                },
            );
        }
        this.set_tail_aside(proven, problems.finish())?;
        Ok(this)
    }

    /// Cuts the ledger back to what its checkpoint covers, or refuses where that is not all.
    fn set_tail_aside(&mut self, proven: u64, found: Vec<Problem>) -> Result<(), LedgerError> {
        let path = self.log.ledger_path();
        let io = |e| LedgerError::Io {
            path: path.clone(),
            source: e,
        };
        let trust = Trust::only(self.key.public());
        let covered =
            recover::covered_prefix(self.log, proven, Ledger::genesis(self.log)).map_err(io)?;
        let head_root = self.ledger.head.as_ref().map(|(c, _)| c.root);
        let whole = covered.tree.size() == proven
            && head_root.is_none_or(|root| covered.tree.root() == root);
        let checkpoint_broken = found.iter().any(|p| {
            p.file == LEDGER_CHECKPOINT || matches!(p.kind, ProblemKind::LedgerTail { .. })
        });
        if !whole || checkpoint_broken {
            let problem = found.into_iter().next().unwrap_or(Problem {
                file: LEDGER.to_owned(),
                seq: None,
                offset: None,
                kind: ProblemKind::CheckpointMissing,
            });
            return Err(LedgerError::Tampered {
                problem: Box::new(problem),
            });
        }
        let cut = recover::set_aside(&self.file, covered.end, self.log.dir(), "ledger.recovered")
            .map_err(io)?;
        // Read again, so that nothing of what was cut stays in the view.
        let mut problems = Problems::default();
        self.ledger = Ledger::fold(self.log, &trust, &[], &mut problems).map_err(io)?;
        if let Some(problem) = problems.finish().into_iter().next() {
            return Err(LedgerError::Tampered {
                problem: Box::new(problem),
            });
        }
        if let Some(cut) = cut {
            self.append::<RecoveredRecord>(EventType::LOG_RECOVERED, &cut)?;
        }
        Ok(())
    }

    /// Appends a record, durably, with a new signed head over it.
    pub(crate) fn append<P: Serialize>(
        &mut self,
        kind: EventType,
        payload: &P,
    ) -> Result<Digest, LedgerError> {
        let path = self.log.ledger_path();
        let payload = canonical::to_vec(payload)?;
        let salt = salt().map_err(LedgerError::io(&path))?;
        let tip = &self.ledger.tip;
        let time = self.clock.now().max(tip.time);
        let seq = tip.tree.size();
        let mut line = Vec::with_capacity(payload.len() + 512);
        let leaf = write_line(
            &mut line,
            &HeadFields {
                actor: OWN_ACTOR,
                parents: &[],
                payload_hash: &payload_hash(&salt, &payload),
                prev: &tip.last,
                project: self.log.project().as_str(),
                seq,
                session: LEDGER_NAME,
                time,
                kind: kind.as_str(),
            },
            &payload,
            &salt,
        );
        let mut next = tip.clone();
        next.tree.push(leaf);
        next.last = leaf;
        next.time = time;
        next.end += line.len() as u64;
        let head = Checkpoint {
            origin: origin(self.log.project(), LEDGER_NAME),
            size: next.tree.size(),
            root: next.tree.root(),
        };
        let note = head.sign(self.key).to_string();
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(LedgerError::io(&path))?;
        disk::replace(self.log.dir(), LEDGER_CHECKPOINT, note.as_bytes())
            .map_err(LedgerError::io(self.log.ledger_checkpoint_path()))?;
        self.ledger.tip = next;
        self.ledger.head = Some((head, note));
        Ok(leaf)
    }

    /// The opening record of a session: the one that is there, or a new one.
    pub(crate) fn open_session(&mut self, session: &SessionId) -> Result<Digest, LedgerError> {
        if let Some(facts) = self.ledger.session(session) {
            return Ok(facts.opening);
        }
        let key: PublicKey = self.key.public();
        self.append(
            EventType::LEDGER_SESSION_OPENED,
            &OpeningRecord {
                format: FORMAT.to_owned(),
                session: session.clone(),
                log_key: Digest::from_bytes(*key.as_bytes()),
            },
        )
    }
}
