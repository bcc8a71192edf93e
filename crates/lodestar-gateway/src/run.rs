//! A run where it is made: registered before the session opens, followed while it goes on, shipped and attested
//! when it is over.
//!
//! What becomes of a run stands in the device's folder, one file each, so that what was interrupted can be done
//! later. Nothing here writes to the session's log; what the gateway said of the run lies beside it, signed with
//! the log's key.

mod finish;
mod follow;
mod record;

pub use finish::{FinishError, Finished, finish, opening_of};
pub use follow::Follower;
pub use record::{Place, Plan, RunBook, RunRecord, Stage};

use lodestar_kernel::opening::RunTicket;
use thiserror::Error;

use crate::client::{GatewayClient, GatewayError};
use crate::device::{DeviceError, DeviceFolder, State, Stopped};
use crate::wire;

/// Why a run cannot begin.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device does not sign now, so nothing would come of the run.
    #[error("{0}")]
    Stopped(Stopped),
    /// The gateway was not reached, or refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

/// Registers a run, and keeps what has to be known of it.
pub async fn register(
    folder: &DeviceFolder,
    client: &GatewayClient,
    plan: Plan,
) -> Result<RunRecord, RegisterError> {
    let asked = wire::RegisterRun {
        agent: plan.agent,
        runner: plan.runner,
        terms: plan.terms,
        workflow_hash: plan.workflow_hash,
        lens_hash: plan.lens_hash,
    };
    if let Err(stopped) = allowed(folder, client).await? {
        return Err(RegisterError::Stopped(stopped));
    }
    let registered = client.register_run(&asked).await?;
    let record = RunRecord {
        ticket: RunTicket {
            id: registered.run,
            nonce: registered.nonce,
        },
        registered_at: registered.registered_at,
        gateway: client.url().to_string(),
        plan,
        session: None,
        stage: Stage::Registered,
        level: None,
        problem: None,
    };
    RunBook::of(folder).keep(&record)?;
    Ok(record)
}

/// Whether the device may sign: the gateway's word, and what the daemon last heard where the gateway is away.
pub async fn allowed(
    folder: &DeviceFolder,
    client: &GatewayClient,
) -> Result<Result<(), Stopped>, AskError> {
    let identity = folder.identity()?;
    let stopped = match client.directives(identity.device).await {
        Ok(directives) => Stopped::by(&directives),
        Err(problem) => match (Stopped::of(&problem), folder.may_sign()?) {
            (Some(stopped), _) => Some(stopped),
            (None, Err(stopped)) => Some(stopped),
            (None, Ok(())) => return Err(problem.into()),
        },
    };
    let state = folder.state()?;
    if state.stopped != stopped {
        folder.keep_state(&State { stopped, ..state })?;
    }
    Ok(match stopped {
        Some(stopped) => Err(stopped),
        None => Ok(()),
    })
}

/// Why nobody knows whether a device may sign.
#[derive(Debug, Error)]
pub enum AskError {
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The gateway was not reached, or refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

impl From<AskError> for RegisterError {
    fn from(problem: AskError) -> Self {
        match problem {
            AskError::Device(problem) => Self::Device(problem),
            AskError::Gateway(problem) => Self::Gateway(problem),
        }
    }
}
