//! What is at hand while a session is derived, and how long somebody waits for it.

use std::time::{Duration, Instant};

use crate::follow::ReplayError;

/// How long somebody waits: what others wrote may have been written to take long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(Option<Instant>);

impl Patience {
    /// As long as it takes.
    pub const ENDLESS: Self = Self(None);

    /// This long from now on.
    pub fn of(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    pub(super) fn check(self) -> Result<(), ReplayError> {
        match self.0 {
            Some(end) if Instant::now() > end => Err(ReplayError::OutOfPatience),
            _ => Ok(()),
        }
    }
}

/// What is at hand of a session's project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// All its sessions.
    Project,
    /// No other session, and somebody waits.
    Nothing(Patience),
}

impl Beside {
    pub(super) fn patience(self) -> Patience {
        match self {
            Self::Project => Patience::ENDLESS,
            Self::Nothing(patience) => patience,
        }
    }
}
