//! A governed session: every call goes through the gate, every result through the firewall, and all
//! of it into the log.

mod backlog;
mod beforehand;
mod begin;
mod call;
mod hold;
mod index;
mod memory;
mod open;
mod outside;
mod proxied;
mod reply;
mod say;

pub(crate) use begin::{shared_state, state_file};
pub use call::CallOptions;
pub use hold::{Holds, Resolver, Resolving};
pub(crate) use memory::{Taken, take_in};
pub(crate) use open::Given;
pub use open::{OpenError, Setup};
pub use reply::{Outcome, Reply};
pub use say::DecideError;
pub(crate) use say::outside;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_core::id::RequestId;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::Kernel;
use lodestar_kernel::opening::{CalibrationInForce, RunTicket};
use lodestar_kernel::registry::Registry;
use lodestar_kernel::stop::Stop;
use lodestar_log::LogWriter;
use lodestar_policy::{Approvers, Closing, Gate};
use serde::Serialize;
use serde_json::json;
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::attend::Attendant;
use crate::error::GuardError;
use crate::recover::Abandoned;
use beforehand::Beforehand;
use hold::{Left, Office};
use index::Index;
use memory::Memory;

/// A handle on a governed session. Clones are the same session; calls may run side by side.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    kernel: Arc<Kernel>,
    gate: Gate,
    log: LogWriter,
    actor: ActorId,
    scope: Scope,
    sensitivity: Sensitivity,
    memory: Memory,
    provenance: Index,
    holds: Holds,
    office: Mutex<Office>,
    abandoned: Vec<Abandoned>,
    calibration: Option<CalibrationInForce>,
    listeners: Mutex<Vec<JoinHandle<()>>>,
    /// Asks each listener to hear what is there already.
    ears: Mutex<Vec<mpsc::Sender<oneshot::Sender<()>>>>,
    /// Thrown when nobody listens any more.
    deaf: Stop,
    channel_problem: Mutex<Option<String>>,
    approvers: Approvers,
    confirmations: Beforehand,
    approval_timeout: Duration,
    deadline: Duration,
    counts: Counted,
    decided: Mutex<say::Decided>,
    halt_noted: OnceLock<()>,
    /// The run that it is.
    ticket: Option<RunTicket>,
    /// Who is told of its end as a run.
    attendant: Option<Arc<dyn Attendant>>,
    /// Calls hold it shared; whoever closes the session waits for all of them.
    running: RwLock<Open>,
}

/// Nobody listens for a session that is gone.
impl Drop for Inner {
    fn drop(&mut self) {
        let listeners = self.listeners.get_mut();
        for listener in listeners.unwrap_or_else(PoisonError::into_inner).drain(..) {
            listener.abort();
        }
    }
}

/// Whether a session takes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Yes,
    No,
}

/// What became of the calls of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Calls.
    pub calls: u64,
    /// Those that ran.
    pub ran: u64,
    /// Those that were held.
    pub held: u64,
    /// Those that did not run.
    pub refused: u64,
}

#[derive(Debug, Default)]
struct Counted {
    calls: AtomicU64,
    ran: AtomicU64,
    held: AtomicU64,
    refused: AtomicU64,
}

impl Counted {
    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            calls: of(&self.calls),
            ran: of(&self.ran),
            held: of(&self.held),
            refused: of(&self.refused),
        }
    }
}

/// Who halted a session.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum HaltedBy {
    /// Whoever holds it.
    Session,
    /// A file beside its log: `lodestar halt`.
    Outside,
}

impl Session {
    /// Which session it is.
    pub fn id(&self) -> &SessionId {
        self.inner.log.dir().session()
    }

    /// The tools.
    pub fn tools(&self) -> &Registry {
        self.inner.kernel.registry()
    }

    /// Sessions whose open requests were closed when this one was opened, because they could not be
    /// taken up again.
    pub fn abandoned(&self) -> &[Abandoned] {
        &self.inner.abandoned
    }

    /// The calibration that its sentinels go by; none where none of them looks at it.
    pub fn calibration(&self) -> Option<&CalibrationInForce> {
        self.inner.calibration.as_ref()
    }

    /// The run of a gateway that it is; none where it is none.
    pub fn ticket(&self) -> Option<RunTicket> {
        self.inner.ticket
    }

    /// What became of its calls so far.
    pub fn counts(&self) -> Counts {
        self.inner.counts.get()
    }

    /// Stops it: what runs is told to stop, and nothing further clears. There is no way back.
    pub fn halt(&self, reason: &str) -> Result<(), GuardError> {
        let halt = self.inner.kernel.halt();
        halt.halt(|| self.record_halt(HaltedBy::Session, reason))
    }

    /// Records a halt that came from outside, once.
    fn note_halt(&self) -> Result<(), GuardError> {
        let halt = self.inner.kernel.halt();
        if !halt.is_halted() {
            return Ok(());
        }
        halt.halt(|| self.record_halt(HaltedBy::Outside, &halt.reason()))
    }

    fn record_halt(&self, by: HaltedBy, reason: &str) -> Result<(), GuardError> {
        if self.inner.halt_noted.set(()).is_err() {
            return Ok(());
        }
        let payload = json!({"by": by, "reason": reason});
        let log = &self.inner.log;
        log.append(EventType::SESSION_HALTED, &self.inner.actor, &[], &payload)?;
        Ok(())
    }

    /// Ends it: what runs is told to stop and waited for, and when this returns, all of it is on disk.
    /// Handles that are left refuse every call.
    pub async fn close(&self, reason: &str) -> Result<Counts, GuardError> {
        self.inner.kernel.stop_running();
        let mut running = self.inner.running.write().await;
        if std::mem::replace(&mut *running, Open::No) == Open::No {
            return Ok(self.counts());
        }
        self.stop_listening().await;
        let session = self.clone();
        let reason = reason.to_owned();
        let closing = tokio::task::spawn_blocking(move || session.close_now(&reason));
        let (counts, ended) = closing.await.map_err(|_| GuardError::Panicked)??;
        for (request, closing) in ended {
            self.withdraw(request, closing).await;
        }
        drop(running);
        if let (Some(attendant), Some(ticket)) = (&self.inner.attendant, self.inner.ticket) {
            attendant.closed(ticket).await;
        }
        Ok(counts)
    }

    fn close_now(&self, reason: &str) -> Result<(Counts, Vec<(RequestId, Closing)>), GuardError> {
        let counts = self.counts();
        // A session whose results were not all taken in stays open, and the next one finds them.
        self.inner.memory.settle()?;
        let Left { ended, open } = self.leave_requests()?;
        let payload = json!({"reason": reason, "counts": counts, "open_requests": open});
        let checkpoint = self.inner.log.close(&self.inner.actor, &payload)?;
        self.inner.memory.ended(checkpoint.size)?;
        Ok((counts, ended))
    }
}
