//! The entry for people who own their loop.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::FutureExt as _;
use lodestar_core::name::SessionId;
use lodestar_kernel::opening::CalibrationInForce;
use thiserror::Error;

use crate::error::GuardError;
use crate::recover::Abandoned;
use crate::session::{Counts, OpenError, Session, Setup};

/// What a loop gave back, and what became of its session.
#[derive(Debug)]
pub struct Wrapped<T> {
    /// What the loop returned.
    pub value: T,
    /// The session, for `lodestar log`, `replay` and `report`.
    pub session: SessionId,
    /// What became of its calls.
    pub counts: Counts,
    /// Earlier sessions whose open requests were closed, because they could not be taken up again.
    pub abandoned: Vec<Abandoned>,
    /// The calibration that the session went by; none where no sentinel looks at it.
    pub calibration: Option<CalibrationInForce>,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum WrapError<E: fmt::Display + fmt::Debug> {
    /// The session was not opened: nothing ran.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The loop failed; its session is closed and says so.
    #[error("{0}")]
    Loop(E),
    /// The loop failed, and its session could not be closed either.
    #[error("{problem}; and the session could not be closed: {unclosed}")]
    LoopAndClose {
        /// Why the loop failed.
        problem: E,
        /// Why the session is not closed.
        unclosed: GuardError,
    },
    /// The session could not be closed.
    #[error(transparent)]
    Close(GuardError),
}

/// Opens a session, runs the loop in it, and closes it, however the loop ends: also where it panics,
/// which goes on once the session is closed.
pub async fn wrap<T, E, F>(
    agent: impl FnOnce(Session) -> F,
    setup: Setup,
) -> Result<Wrapped<T>, WrapError<E>>
where
    F: Future<Output = Result<T, E>>,
    E: fmt::Display + fmt::Debug,
{
    let session = setup.open().await?;
    // Nothing of the loop is looked at after it panicked; the session's own state holds no broken
    // halves, since its calls are futures that can be dropped anywhere.
    let running = AssertUnwindSafe(async { agent(session.clone()).await });
    let ended = running.catch_unwind().await;
    let reason = match &ended {
        Ok(Ok(_)) => "the loop ended".to_owned(),
        Ok(Err(problem)) => format!("the loop failed: {problem}"),
        Err(_) => "the loop panicked".to_owned(),
    };
    let closed = session.close(&reason).await;
    let result = ended.unwrap_or_else(|panic| resume_unwind(panic));
    match (result, closed) {
        (Ok(value), Ok(counts)) => Ok(Wrapped {
            value,
            session: session.id().clone(),
            counts,
            abandoned: session.abandoned().to_vec(),
            calibration: session.calibration().cloned(),
        }),
        (Ok(_), Err(unclosed)) => Err(WrapError::Close(unclosed)),
        (Err(problem), Ok(_)) => Err(WrapError::Loop(problem)),
        (Err(problem), Err(unclosed)) => Err(WrapError::LoopAndClose { problem, unclosed }),
    }
}
