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
pub use follow::{Follower, SendError};
pub use record::{Held, Place, Plan, RunBook, RunRecord, Stage};

use lodestar_kernel::opening::RunTicket;
use thiserror::Error;

use crate::client::{GatewayClient, GatewayError};
use crate::device::{AskError, DeviceError, DeviceFolder};
use crate::wire;

/// Why a run cannot begin.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device does not sign now, or nobody knows whether it may.
    #[error(transparent)]
    Ask(#[from] AskError),
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
    // Nothing is signed for it, but nothing would come of a run that cannot be attested.
    folder.ask(client).await?;
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
