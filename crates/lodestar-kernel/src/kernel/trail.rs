//! The steps of a session, kept in the order of their lines in the log.
//!
//! What is judged after which steps has to be what the log says: a clearance and its step, and a proposal and
//! what it is judged after, are one. Where no sentinel looks at sequences, nothing is kept and nobody waits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lodestar_log::{AppendError, Receipt};
use lodestar_policy::{StepKind, Trail};

#[derive(Debug)]
pub(super) struct SharedTrail(Option<Mutex<Trail>>);

impl SharedTrail {
    pub(super) fn new(so_far: Option<Trail>) -> Self {
        Self(so_far.map(Mutex::new))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Trail>> {
        let trail = self.0.as_ref()?;
        Some(trail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a proposal; with it comes what stands before it.
    pub(super) fn before(
        &self,
        record: impl FnOnce() -> Result<Receipt, AppendError>,
    ) -> Result<(Receipt, Trail), AppendError> {
        let trail = self.lock();
        let receipt = record()?;
        Ok((receipt, trail.as_deref().copied().unwrap_or_default()))
    }

    /// Records a clearance: one step more.
    pub(super) fn step(
        &self,
        kind: StepKind,
        record: impl FnOnce() -> Result<Receipt, AppendError>,
    ) -> Result<Receipt, AppendError> {
        let mut trail = self.lock();
        let receipt = record()?;
        if let Some(trail) = trail.as_deref_mut() {
            trail.step(kind);
        }
        Ok(receipt)
    }
}
