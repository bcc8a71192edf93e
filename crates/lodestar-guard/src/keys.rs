//! The keys that a session needs: one that signs its log, and those of people whose word counts.

use std::path::PathBuf;
use std::sync::Arc;

use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_firewall::row::keys::Keyring;
use lodestar_log::Trust;

use crate::installation::{Installation, InstallationError};

/// The keys of an installation.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Signs checkpoints, the ledger and the rows of the store.
    pub log: Arc<SecretKey>,
    /// People whose orders and assertions count.
    pub operators: Vec<PublicKey>,
    /// Other installations whose rows count in a shared store.
    pub installations: Vec<PublicKey>,
    /// Where they are kept, so that no tool may reach it.
    pub dir: Option<PathBuf>,
}

impl Keys {
    /// A log key alone.
    pub fn new(log: SecretKey) -> Self {
        Self {
            log: Arc::new(log),
            operators: Vec::new(),
            installations: Vec::new(),
            dir: None,
        }
    }

    /// Those of this user's installation. The first one who asks makes the log key.
    pub fn of_installation() -> Result<Self, InstallationError> {
        Self::of(&Installation::locate()?)
    }

    /// Those of the installation in a directory, which has to lie outside every project.
    pub fn at(dir: impl Into<PathBuf>) -> Result<Self, InstallationError> {
        Self::of(&Installation::at(dir))
    }

    fn of(installation: &Installation) -> Result<Self, InstallationError> {
        let operators = installation.operators()?;
        Ok(Self {
            log: Arc::new(installation.create_log_key()?),
            operators: operators.into_iter().map(|(_, key)| key).collect(),
            installations: installation.installations()?,
            dir: Some(installation.dir().to_owned()),
        })
    }

    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(Arc::clone(&self.log))
            .with_operators(self.operators.iter().copied())
            .trusting(self.installations.iter().copied())
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust {
            operators: self.operators.clone(),
            ..Trust::only(self.log.public())
        }
    }
}
