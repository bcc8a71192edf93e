//! The one writer of a session: appends events, groups them, and makes them durable.
//!
//! [`LogWriter::append`] numbers, chains and hashes an event and returns at once with a
//! [`Receipt`]; the bytes go out in batches. Waiting on the receipt is a barrier: every event up
//! to it is on disk, and one sync serves all who wait ([`commit`] has the thread that does it).
//! Sequence numbers, hashes and times are never taken from callers.

mod commit;
mod open;
mod receipt;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::event::{EventType, Writer};
use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::note::Checkpoint;
use serde::Serialize;

pub(crate) use self::commit::Shared;
pub(crate) use self::open::lock_session;
pub use self::receipt::{Barrier, Reached, Receipt};
use crate::blob;
use crate::clock::Clock;
use crate::error::{AppendError, OpenError, Stopped};
use crate::layout::SessionDir;
use crate::ledger::{ClosingRecord, LockedLedger, OWN_ACTOR};
use crate::line::MAX_PARENTS;

/// When an append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// At once; who needs the event on disk waits on its receipt.
    #[default]
    Grouped,
    /// When the event is on disk.
    Strict,
}

/// How a session is written.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The installation's log key; it signs checkpoints and the ledger.
    pub key: Arc<SecretKey>,
    /// When an append returns.
    pub durability: Durability,
    /// Where times come from.
    pub clock: Clock,
    /// How long an event may stay without a checkpoint.
    pub checkpoint_after: Duration,
    /// What a harness has taken out; nothing in earnest.
    pub taken_out: BTreeSet<Defence>,
}

/// Checkpoints bound the unproven tail in time as well as in events.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(5);

impl WriterOptions {
    /// Grouped, by the system's clock.
    pub fn new(key: Arc<SecretKey>) -> Self {
        Self {
            key,
            durability: Durability::default(),
            clock: Clock::system(),
            checkpoint_after: CHECKPOINT_AFTER,
            taken_out: BTreeSet::new(),
        }
    }

    /// For a harness that takes defences out: without [`Defence::WriterLock`], a session is written by
    /// whoever wants to; without [`Defence::TornTailRecovery`], a torn line stays where it is.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        self
    }

    pub(crate) fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }
}

/// The writer of one session. Clones write to the same session; when the last one goes, what was
/// appended is on disk, and the session stays open until somebody reopens and closes it.
#[derive(Debug, Clone)]
pub struct LogWriter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    durability: Durability,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The exclusive lock on the session's directory; released when the session is closed, or the last clone is
    /// gone.
    lock: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.stop();
        if let Ok(mut thread) = self.thread.lock()
            && let Some(thread) = thread.take()
        {
            // A panic there has been reported by the panic hook; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

impl LogWriter {
    /// Appends one event. `parents` are earlier events that caused it, in increasing order.
    pub fn append<P: Serialize + ?Sized>(
        &self,
        kind: EventType,
        actor: &ActorId,
        parents: &[u64],
        payload: &P,
    ) -> Result<Receipt, AppendError> {
        let own = matches!(kind.writer(), Writer::Log)
            || kind == EventType::SESSION_OPENED
            || kind == EventType::SESSION_CLOSED;
        if own {
            return Err(AppendError::OwnType { kind });
        }
        let receipt = self.append_any(kind, actor.as_str(), parents, payload, After::Continue)?;
        if self.inner.durability == Durability::Strict {
            receipt.wait(Barrier::Disk)?;
        }
        Ok(receipt)
    }

    fn append_any<P: Serialize + ?Sized>(
        &self,
        kind: EventType,
        actor: &str,
        parents: &[u64],
        payload: &P,
        after: After,
    ) -> Result<Receipt, AppendError> {
        if parents.len() > MAX_PARENTS || !parents.is_sorted_by(|a, b| a < b) {
            return Err(AppendError::BadParents);
        }
        let shared = &self.inner.shared;
        let payload = blob::prepare(&shared.blobs, payload)?;
        shared.append(kind, actor, parents, &payload, after)
    }

    /// Closes the session: `session.closed@1` with this payload, a last checkpoint, and the
    /// closing record in the ledger. When it returns, all of it is on disk.
    pub fn close<P: Serialize + ?Sized>(
        &self,
        actor: &ActorId,
        payload: &P,
    ) -> Result<Checkpoint, OpenError> {
        let receipt = self.append_any(
            EventType::SESSION_CLOSED,
            actor.as_str(),
            &[],
            payload,
            After::Close,
        )?;
        self.record_closing(&receipt)
    }

    /// Waits until the receipt's event is proven, then enters the checkpoint as the closing one.
    fn record_closing(&self, last: &Receipt) -> Result<Checkpoint, OpenError> {
        last.wait(Barrier::Checkpoint).map_err(AppendError::from)?;
        let shared = &self.inner.shared;
        let (checkpoint, note) = shared.latest_checkpoint();
        let log = shared.dir.project_log();
        let mut ledger = LockedLedger::open(&log, &shared.key, &shared.clock)?;
        ledger.append(
            EventType::LEDGER_SESSION_CLOSED,
            &ClosingRecord {
                session: shared.dir.session().clone(),
                checkpoint: note,
            },
        )?;
        // Nothing is written any more, so that whoever looks finds a session that is over. A lock that cannot be
        // released goes with the last clone.
        let _ = self.inner.lock.unlock();
        Ok(checkpoint)
    }

    /// Gives everything that was appended so far to the operating system: it outlives this process,
    /// though perhaps not the machine.
    pub fn hand_over(&self) -> Result<(), Stopped> {
        self.inner.shared.hand_over()
    }

    /// Resolves when everything that was appended so far is as safe as asked.
    pub fn settled(&self, barrier: Barrier) -> Reached {
        Reached::so_far(&self.inner.shared, barrier)
    }

    /// The session's directory.
    pub fn dir(&self) -> &SessionDir {
        &self.inner.shared.dir
    }

    /// The log's own clock, which never runs backwards. Whoever puts times into payloads takes them from
    /// here: then they are in order with those of the events.
    pub fn clock(&self) -> &Clock {
        &self.inner.shared.clock
    }

    /// How many events have been appended, and the root over them.
    pub fn head(&self) -> (u64, Digest) {
        self.inner.shared.head()
    }
}

/// What an event means for those behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// More may follow.
    Continue,
    /// It is the last.
    Close,
}

impl LogWriter {
    /// An event of the log itself, on disk and under a checkpoint when this returns.
    pub(crate) fn append_own<P: Serialize>(
        &self,
        kind: EventType,
        payload: &P,
    ) -> Result<Receipt, AppendError> {
        let receipt = self.append_any(kind, OWN_ACTOR, &[], payload, After::Continue)?;
        receipt.wait(Barrier::Checkpoint)?;
        Ok(receipt)
    }
}
