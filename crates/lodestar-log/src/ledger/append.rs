//! Appending to the ledger, under a lock on the project's directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;

use lodestar_core::canonical;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::SessionId;
use lodestar_core::note::Checkpoint;
use serde::Serialize;

use super::{FORMAT, Interruption, LEDGER_NAME, Ledger, OWN_ACTOR, OpeningRecord};
use crate::chain::NewEvent;
use crate::clock::{Clock, salt};
use crate::disk;
use crate::error::LedgerError;
use crate::layout::{LEDGER, LEDGER_CHECKPOINT, LEDGER_NEXT, ProjectLog};
use crate::line::payload_hash;
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
    /// Waits for the lock, reads the ledger, and finishes an append that was interrupted.
    pub(crate) fn open(
        log: &'a ProjectLog,
        key: &'a SecretKey,
        clock: &'a Clock,
    ) -> Result<Self, LedgerError> {
        disk::create_dirs(log.dir()).map_err(LedgerError::io(log.dir()))?;
        let lock = File::open(log.dir()).map_err(LedgerError::io(log.dir()))?;
        disk::wait_for_lock(|| lock.try_lock()).map_err(LedgerError::io(log.dir()))?;
        let path = log.ledger_path();
        let file = disk::open_append(&path).map_err(LedgerError::io(&path))?;
        let trust = Trust::only(key.public());
        let mut problems = Problems::default();
        let ledger = Ledger::fold(log, &trust, &BTreeSet::new(), &mut problems)
            .map_err(LedgerError::io(&path))?;
        if let Some(problem) = problems.finish().into_iter().next() {
            return Err(LedgerError::Tampered {
                problem: Box::new(problem),
            });
        }
        let mut this = Self {
            log,
            key,
            clock,
            file,
            ledger,
            _lock: lock,
        };
        this.finish_interrupted()?;
        Ok(this)
    }

    /// A record that the announced head covers is whole and stays; a torn one is cut off and kept
    /// aside. Anything else behind the checkpoint was reported as a problem.
    fn finish_interrupted(&mut self) -> Result<(), LedgerError> {
        let io = LedgerError::io(self.log.ledger_path());
        match self.ledger.interrupted.take() {
            None => Ok(()),
            Some(Interruption::HeadNotInPlace) => {
                disk::put_in_place(self.log.dir(), LEDGER_NEXT, LEDGER_CHECKPOINT).map_err(io)
            }
            Some(Interruption::TornRecord { .. }) => {
                let end = self.ledger.tip.end;
                let cut = recover::set_aside(&self.file, end, self.log.dir(), "ledger.recovered")
                    .map_err(io)?;
                if let Some(cut) = cut {
                    self.append::<RecoveredRecord>(EventType::LOG_RECOVERED, &cut)?;
                }
                Ok(())
            }
        }
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
        let mut line = Vec::with_capacity(payload.len() + 512);
        let mut tip = self.ledger.tip.clone();
        let leaf = tip.append(
            &mut line,
            &NewEvent {
                actor: OWN_ACTOR,
                parents: &[],
                project: self.log.project().as_str(),
                session: LEDGER_NAME,
                kind,
                now: self.clock.now(),
                payload: &payload,
                payload_hash: payload_hash(&salt, &payload),
                salt: &salt,
            },
        );
        let head = Checkpoint {
            origin: self.log.ledger_origin(),
            size: tip.tree.size(),
            root: tip.tree.root(),
        };
        let note = head.sign(self.key).to_string();
        // INVARIANT: the head is announced before its record is written and put in place after,
        // so a record behind the checkpoint is either announced, and ours, or forged.
        let dir = self.log.dir();
        disk::write_whole(dir, LEDGER_NEXT, note.as_bytes())
            .and_then(|()| disk::sync_dir(dir))
            .and_then(|()| self.file.write_all(&line))
            .and_then(|()| self.file.sync_data())
            .and_then(|()| disk::put_in_place(dir, LEDGER_NEXT, LEDGER_CHECKPOINT))
            .map_err(LedgerError::io(&path))?;
        self.ledger.tip = tip;
        self.ledger.head = Some((head, note));
        Ok(leaf)
    }

    /// The opening record of a new session: a new one, or the one that an interrupted start left.
    pub(crate) fn open_session(&mut self, session: &SessionId) -> Result<Digest, LedgerError> {
        if let Some(facts) = self.ledger.session(session) {
            if facts.is_untouched() {
                return Ok(facts.opening);
            }
            return Err(LedgerError::Tampered {
                problem: Box::new(Problem {
                    file: LEDGER.to_owned(),
                    seq: Some(facts.opened_seq),
                    offset: None,
                    kind: ProblemKind::SessionMissing {
                        session: session.to_string(),
                        opened: facts.opened_seq,
                    },
                }),
            });
        }
        self.append(
            EventType::LEDGER_SESSION_OPENED,
            &OpeningRecord {
                format: FORMAT.to_owned(),
                session: session.clone(),
                log_key: self.key.public(),
            },
        )
    }
}
