//! A cleared action whose end is not yet in the log.
//!
//! If the caller goes away in between (a dropped future, a panic), the log says so: what was cleared
//! always has an end, or the process that cleared it has died.

use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, ClearanceId};
use lodestar_core::name::ActorId;
use lodestar_log::LogWriter;

use crate::record::Unknown;

/// How far a cleared action had come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reached {
    /// The tool was not called.
    Cleared,
    /// The tool was called.
    Called,
    /// The tool returned.
    Returned,
}

impl Reached {
    fn because(self) -> &'static str {
        match self {
            Self::Cleared => "the caller went away before the tool was called: it did not run",
            Self::Called => "the caller went away while the tool ran",
            Self::Returned => "the caller went away before the result was recorded",
        }
    }
}

/// Records that nobody knows how an action ended, unless somebody says how.
#[derive(Debug)]
pub(super) struct Unended {
    log: LogWriter,
    actor: ActorId,
    action: ActionId,
    clearance: ClearanceId,
    cleared: u64,
    pub(super) reached: Reached,
    is_open: bool,
}

impl Unended {
    pub(super) fn new(
        log: &LogWriter,
        actor: &ActorId,
        action: ActionId,
        clearance: ClearanceId,
        cleared: u64,
    ) -> Self {
        Self {
            log: log.clone(),
            actor: actor.clone(),
            action,
            clearance,
            cleared,
            reached: Reached::Cleared,
            is_open: true,
        }
    }

    /// The event that recorded the clearance.
    pub(super) fn cleared(&self) -> u64 {
        self.cleared
    }

    /// The end is in the log.
    pub(super) fn ended(&mut self) {
        self.is_open = false;
    }
}

impl Drop for Unended {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let unknown = Unknown {
            action: self.action,
            clearance: self.clearance,
            because: self.reached.because().to_owned(),
        };
        // If the log is stopped too, the next session finds the open end and says so.
        let kind = EventType::ACTION_UNKNOWN;
        let _ = self
            .log
            .append(kind, &self.actor, &[self.cleared], &unknown);
    }
}
