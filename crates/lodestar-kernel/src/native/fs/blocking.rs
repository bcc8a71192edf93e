//! Blocking work for a call: on a thread of its own, and let go when the call is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::oneshot;

use crate::contain::{Host, Hosting, OutOfReach};
use crate::tool::{Call, Effect, ToolError};

/// Why blocking work has to end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Early {
    /// Told to stop, or nobody waits for it any more.
    Stopped,
    /// Its time is over.
    Deadline,
}

impl Early {
    pub(crate) fn error(self, effect: Effect) -> ToolError {
        match self {
            Self::Stopped => ToolError::stopped(effect),
            Self::Deadline => ToolError::deadline(effect),
        }
    }
}

/// The end of the leash that the work holds: it looks here whether it may go on.
#[derive(Debug, Clone)]
pub(crate) struct Reins {
    shared: Arc<Shared>,
    deadline: Instant,
    out_of_reach: Arc<OutOfReach>,
    hosting: Hosting,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    /// The process group that the work started, as long as its leader has not been reaped: until
    /// then the number cannot mean another group.
    group: Mutex<Option<Pid>>,
}

impl Shared {
    fn group(&self) -> MutexGuard<'_, Option<Pid>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reins {
    /// Reins that only time pulls.
    pub(crate) fn until(deadline: Instant) -> Self {
        Self {
            shared: Arc::default(),
            deadline,
            out_of_reach: Arc::default(),
            hosting: Host::here,
        }
    }

    /// What children of the work cannot reach.
    pub(crate) fn out_of_reach(&self) -> &OutOfReach {
        &self.out_of_reach
    }

    /// The machine that they run on.
    pub(crate) fn host(&self) -> Host {
        (self.hosting)()
    }

    /// The same work with less time.
    pub(crate) fn by(&self, deadline: Instant) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            deadline: self.deadline.min(deadline),
            out_of_reach: Arc::clone(&self.out_of_reach),
            hosting: self.hosting,
        }
    }

    pub(crate) fn early(&self) -> Option<Early> {
        if self.shared.stopped.load(Ordering::Acquire) {
            Some(Early::Stopped)
        } else if Instant::now() >= self.deadline {
            Some(Early::Deadline)
        } else {
            None
        }
    }

    /// An error once the work has to end, for work that has had no effect yet.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        self.early()
            .map_or(Ok(()), |early| Err(early.error(Effect::None)))
    }

    /// Names the process group to kill when the call is dropped, or that there is none any more.
    pub(crate) fn hold_group(&self, group: Option<Pid>) {
        *self.shared.group() = group;
    }
}

/// The call's end of the leash. Dropping it stops the work, and kills its process group at once.
#[derive(Debug)]
pub(crate) struct Leash(Reins);

impl Leash {
    pub(crate) fn new(deadline: Instant) -> Self {
        Self(Reins::until(deadline))
    }

    pub(crate) fn reins(&self) -> Reins {
        self.0.clone()
    }

    fn stop(&self) {
        self.0.shared.stopped.store(true, Ordering::Release);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.stop();
        if let Some(group) = *self.0.shared.group() {
            // The group may have ended by itself; then there is nothing to kill.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs blocking work for a call. The work itself sees that it has to end, and says what came of
/// it: whether a file was replaced is known to it alone.
pub(crate) async fn blocking<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(&Reins) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let leash = Leash::new(call.deadline());
    let mut reins = leash.reins();
    reins.out_of_reach = Arc::clone(call.out_of_reach());
    reins.hosting = call.hosting();
    let (sender, mut receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("lodestar-tool".to_owned())
        .spawn(move || {
            let _ = sender.send(work(&reins));
        })
        .map_err(|error| {
            ToolError::failed(Effect::None, format!("cannot start a thread: {error}"))
        })?;
    let answer = tokio::select! {
        answer = &mut receiver => answer,
        () = call.stopped() => {
            leash.stop();
            receiver.await
        }
    };
    answer.unwrap_or_else(|_| {
        Err(ToolError::failed(
            Effect::Unknown,
            "the tool's thread ended without an answer",
        ))
    })
}
