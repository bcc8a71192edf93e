//! Opening a session for writing: a new one, or one that stopped.

use std::fs::{File, TryLockError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::merkle::Frontier;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::note::Checkpoint;
use serde::Serialize;

use super::commit::{EventSink, Shared};
use super::{After, Barrier, Inner, LogWriter, WriterOptions};
use crate::chain::{Anchor, Tip};
use crate::disk;
use crate::error::{AppendError, OpenError};
use crate::layout::{CHECKPOINT, EVENTS, MAX_CHECKPOINT_BYTES, ProjectLog, SessionDir};
use crate::ledger::{LedgerState, LockedLedger, ReopeningRecord, SessionFacts};
use crate::problem::{Commitment, Problem, ProblemKind};
use crate::recover::{self, RecoveredRecord};
use crate::redact;
use crate::trust::{Trust, open_checkpoint};

impl LogWriter {
    /// Starts a session: an opening record in the ledger, then `session.opened@1` with this
    /// payload, on disk and under a checkpoint when it returns.
    pub fn create<P: Serialize + ?Sized>(
        log: &ProjectLog,
        session: &SessionId,
        actor: &ActorId,
        opening: &P,
        options: &WriterOptions,
    ) -> Result<Self, OpenError> {
        let dir = log.session(session);
        disk::create_dirs(dir.dir()).map_err(OpenError::io(dir.dir()))?;
        let lock = lock_for(&dir, options)?;
        let mut ledger = LockedLedger::open(log, &options.key, &options.clock)?;
        let begun = dir.checkpoint_path().symlink_metadata().is_ok();
        if begun && Self::read_own_checkpoint(&dir, options)?.size > 0 {
            return Err(OpenError::Exists {
                session: session.clone(),
            });
        }
        // INVARIANT: a session has a checkpoint, if only over nothing, before the ledger knows it.
        // So a session in the ledger without one lost it, and one with a checkpoint over nothing
        // was never told to anybody: its start is begun again, on the same ledger record.
        if !begun {
            if ledger.ledger.session(session).is_some() {
                return Err(missing_checkpoint(&dir));
            }
            let nothing = Checkpoint {
                origin: dir.origin(),
                size: 0,
                root: Frontier::new().root(),
            };
            let note = nothing.sign(&options.key).to_string();
            disk::replace(dir.dir(), CHECKPOINT, note.as_bytes())
                .map_err(OpenError::io(dir.checkpoint_path()))?;
        }
        let opening_hash = ledger.open_session(session)?;
        drop(ledger);
        let path = dir.events_path();
        let events = disk::open_append(&path).map_err(OpenError::io(&path))?;
        discard_interrupted_start(&dir, &events)?;
        disk::sync_dir(dir.dir()).map_err(OpenError::io(dir.dir()))?;
        let tip = Tip::start(opening_hash);
        let writer = Self::start(dir, Box::new(events), tip, 0, lock, options)?;
        let first = writer.append_any(
            EventType::SESSION_OPENED,
            actor.as_str(),
            &[],
            opening,
            After::Continue,
        )?;
        first.wait(Barrier::Checkpoint).map_err(AppendError::from)?;
        Ok(writer)
    }

    /// Takes up a session again, after a crash or after it was closed. A torn tail is set aside
    /// and recorded; anything worse is refused.
    pub fn reopen(
        log: &ProjectLog,
        session: &SessionId,
        options: &WriterOptions,
    ) -> Result<Self, OpenError> {
        Self::reopen_if(log, session, options, |_| true)
    }

    /// As [`reopen`](Self::reopen), unless somebody has closed it or taken it up since the ledger said
    /// this of it: of all that have seen the same, one takes it up.
    pub fn reopen_as_seen(
        log: &ProjectLog,
        session: &SessionId,
        seen: &SessionFacts,
        options: &WriterOptions,
    ) -> Result<Self, OpenError> {
        Self::reopen_if(log, session, options, |facts| facts == seen)
    }

    fn reopen_if(
        log: &ProjectLog,
        session: &SessionId,
        options: &WriterOptions,
        is_wanted: impl FnOnce(&SessionFacts) -> bool,
    ) -> Result<Self, OpenError> {
        let dir = log.session(session);
        let not_found = || OpenError::NotFound {
            session: session.clone(),
        };
        if !dir.dir().is_dir() {
            return Err(not_found());
        }
        let lock = lock_for(&dir, options)?;
        let clean = disk::sweep(dir.dir()).and_then(|()| disk::sweep(&dir.blobs_dir()));
        clean.map_err(OpenError::io(dir.dir()))?;
        let ledger = LockedLedger::open(log, &options.key, &options.clock)?;
        let facts = ledger
            .ledger
            .session(session)
            .ok_or_else(not_found)?
            .clone();
        if !is_wanted(&facts) {
            return Err(OpenError::Changed {
                session: session.clone(),
            });
        }
        // A scan may take long; the session's own lock is enough for it.
        drop(ledger);
        let proven = Self::read_own_checkpoint(&dir, options)?;
        if proven.size == 0 {
            return Err(not_found());
        }
        let path = dir.events_path();
        let events = disk::open_append(&path).map_err(OpenError::io(&path))?;
        let (tip, cut) = Self::recover_tail(&dir, &events, &facts, &proven, options)?;
        let mut ledger = LockedLedger::open(log, &options.key, &options.clock)?;
        ledger.append(
            EventType::LEDGER_SESSION_REOPENED,
            &ReopeningRecord {
                session: session.clone(),
                size: tip.tree.size(),
                root: tip.tree.root(),
                proven: proven.size,
            },
        )?;
        drop(ledger);
        let writer = Self::start(dir, Box::new(events), tip, proven.size, lock, options)?;
        if let Some(cut) = cut {
            writer.append_own(EventType::LOG_RECOVERED, &cut)?;
        }
        Ok(writer)
    }

    /// Finds the last whole event and cuts off what a crash left behind it. Whatever a crash does
    /// not explain is refused, and nothing is changed.
    fn recover_tail(
        dir: &SessionDir,
        events: &File,
        facts: &SessionFacts,
        proven: &Anchor,
        options: &WriterOptions,
    ) -> Result<(Tip, Option<RecoveredRecord>), OpenError> {
        let path = dir.events_path();
        let name = format!("{}/{EVENTS}", dir.session());
        let mut anchors = facts.anchors.clone();
        anchors.push(proven.clone());
        let prefix = recover::valid_prefix(
            events,
            &name,
            (dir.project().as_str(), dir.session().as_str()),
            facts.opening,
            anchors.clone(),
            proven.size,
        )
        .map_err(OpenError::io(&path))?;
        let size = prefix.tip.tree.size();
        if let Some(problem) = prefix.problem {
            // A crash tears the last line, behind every commitment, and does nothing else.
            let beyond = anchors.iter().all(|anchor| anchor.size <= size);
            let rewritten = matches!(problem.kind, ProblemKind::Rewritten { .. });
            let more =
                recover::lines_follow(events, prefix.tip.end).map_err(OpenError::io(&path))?;
            if !beyond || rewritten || more {
                return Err(tampered(dir.session(), problem));
            }
        }
        let len = events.metadata().map_err(OpenError::io(&path))?.len();
        if let LedgerState::Closed(closing) = &facts.state
            && (size > closing.size || proven.size != closing.size || len > prefix.tip.end)
        {
            let kind = ProblemKind::GrownAfterClosing {
                closed: closing.size,
                found: size,
            };
            return Err(tampered(dir.session(), at(&name, kind)));
        }
        if prefix.redacted {
            redact::finish_erasure(dir).map_err(OpenError::io(dir.blobs_dir()))?;
        }
        if options.lacks(Defence::TornTailRecovery) {
            return Ok((prefix.tip, None));
        }
        let cut = recover::set_aside(events, prefix.tip.end, &dir.recovered_dir(), "events")
            .map_err(OpenError::io(dir.recovered_dir()))?;
        // What a crashed process left in the page cache counts as on disk from here on.
        events.sync_all().map_err(OpenError::io(&path))?;
        Ok((prefix.tip, cut))
    }

    fn read_own_checkpoint(dir: &SessionDir, options: &WriterOptions) -> Result<Anchor, OpenError> {
        let path = dir.checkpoint_path();
        let broken = |kind| {
            let file = format!("{}/{CHECKPOINT}", dir.session());
            tampered(dir.session(), at(&file, kind))
        };
        let note = disk::read_small(&path, MAX_CHECKPOINT_BYTES)
            .map_err(OpenError::io(&path))?
            .ok_or_else(|| missing_checkpoint(dir))?;
        let trust = Trust::only(options.key.public());
        let (checkpoint, _) = open_checkpoint(&note, &dir.origin(), &trust)
            .map_err(|reason| broken(ProblemKind::CheckpointInvalid { reason }))?;
        Ok(Anchor {
            size: checkpoint.size,
            root: checkpoint.root,
            source: Commitment::Checkpoint,
        })
    }

    pub(super) fn start(
        dir: SessionDir,
        sink: Box<dyn EventSink>,
        tip: Tip,
        proven: u64,
        lock: File,
        options: &WriterOptions,
    ) -> Result<Self, OpenError> {
        let path = dir.events_path();
        let sync = sink.syncer().map_err(OpenError::io(&path))?;
        let shared = Arc::new(Shared::new(dir, options, sink, tip, proven));
        let thread = thread::Builder::new()
            .name("lodestar-log".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run(sync)
            })
            .map_err(OpenError::io(&path))?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                durability: options.durability,
                thread: Mutex::new(Some(thread)),
                lock,
            }),
        })
    }
}

/// How often, and how long apart, a taken lock is tried again: whoever only looks whether a
/// session is live holds it for microseconds, a writer for as long as it lives.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The lock of whoever writes a session. For a harness that takes [`Defence::WriterLock`] out there is none.
fn lock_for(dir: &SessionDir, options: &WriterOptions) -> Result<File, OpenError> {
    match options.lacks(Defence::WriterLock) {
        true => File::open(dir.dir()).map_err(OpenError::io(dir.dir())),
        false => lock_session(dir),
    }
}

/// The exclusive lock on a session's directory; the operating system drops it with the process.
pub(crate) fn lock_session(dir: &SessionDir) -> Result<File, OpenError> {
    let handle = File::open(dir.dir()).map_err(OpenError::io(dir.dir()))?;
    for attempt in 1.. {
        match handle.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if attempt < LOCK_TRIES => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Busy {
                    session: dir.session().clone(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(OpenError::io(dir.dir())(source)),
        }
    }
    Ok(handle)
}

/// An interrupted start leaves at most its first event. More than that under a checkpoint over
/// nothing means that the checkpoint was put back.
fn discard_interrupted_start(dir: &SessionDir, events: &File) -> Result<(), OpenError> {
    let path = dir.events_path();
    let mut lines = 0u64;
    let len = events.metadata().map_err(OpenError::io(&path))?.len();
    crate::scan::scan(
        events,
        len,
        |_, _| (),
        |_| {
            lines += 1;
            match lines {
                0..=1 => std::ops::ControlFlow::Continue(()),
                _ => std::ops::ControlFlow::Break(()),
            }
        },
    )
    .map_err(OpenError::io(&path))?;
    if lines > 1 {
        return Err(missing_checkpoint(dir));
    }
    // Nobody was told of that event, and the opening payload is written again.
    events.set_len(0).map_err(OpenError::io(&path))
}

fn at(file: &str, kind: ProblemKind) -> Problem {
    Problem {
        file: file.to_owned(),
        seq: None,
        offset: None,
        kind,
    }
}

fn missing_checkpoint(dir: &SessionDir) -> OpenError {
    let file = format!("{}/{CHECKPOINT}", dir.session());
    tampered(dir.session(), at(&file, ProblemKind::CheckpointMissing))
}

fn tampered(session: &SessionId, problem: Problem) -> OpenError {
    OpenError::Tampered {
        session: session.clone(),
        problem: Box::new(problem),
    }
}
