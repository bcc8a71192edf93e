//! The one door to a signature: whoever wants to sign in a device's name asks the gateway first.
//!
//! [`DeviceFolder::ask`] hears whether the device has to stop, and [`Permission::look`] whether the gateway has
//! the key that is here. Only then is there a [`Signer`], and only for as long as a kill switch or a pause may take
//! to be in force. The daemon goes through the same door.

use std::time::Instant;

use thiserror::Error;

use super::{DeviceError, DeviceFolder, DeviceIdentity, Signer, Stopped, running};
use crate::client::{GatewayClient, GatewayError};
use crate::wire;

/// Why nothing is signed.
#[derive(Debug, Error)]
pub enum AskError {
    /// The device's folder cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The gateway was not reached, or refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The device has to stop.
    #[error("{0}; nothing was signed")]
    Stopped(Stopped),
    /// The gateway is away, and had the device stop when it was last heard.
    #[error("{stopped}, when it was last heard; nothing was signed, and now {problem}")]
    StoppedBefore {
        /// Why.
        stopped: Stopped,
        /// Why nobody knows whether it still has to.
        problem: GatewayError,
    },
    /// The gateway has neither the device's key nor the one of a rotation that was proposed.
    #[error(
        "the gateway has another key of this device than the one here; nothing was signed, since every bad signature counts against the device"
    )]
    OtherKey,
}

/// The gateway's word that the device does not have to stop, as of when it was asked.
#[derive(Debug)]
pub struct Permission<'a> {
    folder: &'a DeviceFolder,
    identity: DeviceIdentity,
    asked_at: Instant,
}

/// How the gateway sees a device that may sign.
#[derive(Debug)]
pub struct Looked {
    /// Signs for it.
    pub signer: Signer,
    /// The device, as the gateway has it.
    pub device: wire::Device,
    /// Whether the key of a rotation was taken up by this look.
    pub is_key_new: bool,
}

impl DeviceFolder {
    /// Asks the gateway whether the device may sign. Where the gateway is away, nobody signs; what was heard last
    /// then says why, if it was a reason.
    pub async fn ask(&self, client: &GatewayClient) -> Result<Permission<'_>, AskError> {
        let identity = self.identity()?;
        let asked_at = Instant::now();
        let stopped = match client.directives(identity.device).await {
            Ok(directives) => Stopped::by(&directives),
            Err(problem) => match (Stopped::of(&problem), self.state()?.stopped) {
                (Some(stopped), _) => Some(stopped),
                (None, Some(stopped)) => return Err(AskError::StoppedBefore { stopped, problem }),
                (None, None) => return Err(problem.into()),
            },
        };
        self.heard(stopped)?;
        match stopped {
            Some(stopped) => Err(AskError::Stopped(stopped)),
            None => Ok(Permission {
                folder: self,
                identity,
                asked_at,
            }),
        }
    }

    /// Asks whether the device may sign, and whether the gateway has its key.
    pub async fn signer(&self, client: &GatewayClient) -> Result<Signer, AskError> {
        Ok(self.ask(client).await?.look(client).await?.signer)
    }

    /// Notes what the gateway said. Beside a daemon it only tightens: the daemon hears more often, and an answer
    /// that took long must not lift what it heard since.
    fn heard(&self, stopped: Option<Stopped>) -> Result<(), DeviceError> {
        if self.state()?.stopped == stopped {
            return Ok(());
        }
        self.change_state(|state| {
            if stopped.is_some() || running(self)?.is_none() {
                state.stopped = stopped;
            }
            Ok(())
        })
    }
}

impl Permission<'_> {
    /// Looks whether the gateway has the key that is here, and takes up a rotation that is done.
    pub async fn look(self, client: &GatewayClient) -> Result<Looked, AskError> {
        let Self {
            folder,
            mut identity,
            asked_at,
        } = self;
        let device = client.device(identity.device).await?;
        let proposed = folder.next()?;
        let is_key_new = proposed.is_some_and(|next| device.key == Some(next.public()));
        if is_key_new {
            identity = folder.adopt_next()?;
        }
        let key = folder.key()?;
        if device.key != Some(key.public()) {
            return Err(AskError::OtherKey);
        }
        Ok(Looked {
            signer: Signer::permitted(identity, key, asked_at),
            device,
            is_key_new,
        })
    }
}
