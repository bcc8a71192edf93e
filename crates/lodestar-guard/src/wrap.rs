//! The entry for people who own their loop.

use std::fmt;
use std::future::Future;

use lodestar_core::name::SessionId;
use thiserror::Error;

use crate::error::GuardError;
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
    /// The session could not be closed.
    #[error(transparent)]
    Close(GuardError),
}

/// Opens a session, runs the loop in it, and closes it, however the loop ends.
pub async fn wrap<T, E, F>(
    agent: impl FnOnce(Session) -> F,
    setup: Setup,
) -> Result<Wrapped<T>, WrapError<E>>
where
    F: Future<Output = Result<T, E>>,
    E: fmt::Display + fmt::Debug,
{
    let session = setup.open().await?;
    let result = agent(session.clone()).await;
    let reason = match &result {
        Ok(_) => "the loop ended".to_owned(),
        Err(problem) => format!("the loop failed: {problem}"),
    };
    let closed = session.close(&reason).await;
    let value = result.map_err(WrapError::Loop)?;
    let counts = closed.map_err(WrapError::Close)?;
    Ok(Wrapped {
        value,
        session: session.id().clone(),
        counts,
    })
}
