//! A device's own side: its folder, what it signs, and whether it may.
//!
//! ```text
//! <device>/device.json    who it is, and at which gateway
//!          device.key     signs for it                                  (private)
//!          next.key       signs for it once a rotation is done          (private)
//!          token          is shown to the gateway                       (private)
//!          state.json     what the gateway last said: may it sign?
//!          state.lock     held while that is changed
//!          daemon.lock    held by the daemon, with its process id in it
//!          runs/          what became of its runs: see `run`
//!          device.<id>/   all of this of a device that is stopped for good and that another one followed
//! ```
//!
//! The key never leaves this module. Whoever signs in the device's name does it by a [`Signer`], which only
//! [`DeviceFolder::signer`] gives, after asking the gateway.

mod aside;
pub(crate) mod files;
pub(crate) mod lock;
mod permission;
mod signer;
mod state;

pub use files::FileError;
pub use lock::{DaemonLock, LockError, running};
pub use permission::{AskError, Looked, Permission};
pub use signer::{GOOD_FOR, SignError, Signer, Vouched, nonce};
pub use state::{State, Stopped};

use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::id::{AccountId, DeviceId};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::ActorId;
use lodestar_core::note::{encode_secret, parse_secret};
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl, ServiceUrlError};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::client::{GatewayAccess, GatewayClient, GatewayError};
use crate::token::TokenText;

const IDENTITY: &str = "device.json";
const KEY: &str = "device.key";
const NEXT_KEY: &str = "next.key";
const TOKEN: &str = "token";
const STATE: &str = "state.json";
const STATE_LOCK: &str = "state.lock";
const RUNS: &str = "runs";

/// The name in the text form of a device's key.
const KEY_NAME: &str = "lodestar-device";

/// Why a device's folder is not to be used.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Nobody enrolled this device.
    #[error("no device is enrolled here (`{}`)", .0.display())]
    NotEnrolled(PathBuf),
    /// A device is enrolled already.
    #[error("a device is enrolled here already (`{}`)", .0.display())]
    Enrolled(PathBuf),
    /// What lies there is not what it should be.
    #[error("`{}`: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; never what is in it.
        problem: String,
    },
    /// The gateway's address is none.
    #[error("the gateway's address: {0}")]
    Url(#[from] ServiceUrlError),
    /// The gateway cannot be asked.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

/// Where a gateway is, as somebody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whereabouts {
    /// Its URL.
    pub url: String,
    /// Whether it may be spoken to without encryption if it is this machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_loopback_http: bool,
    /// Root certificates in PEM, trusted beside the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl Whereabouts {
    /// The URL, read.
    pub fn url(&self) -> Result<ServiceUrl, ServiceUrlError> {
        let in_the_clear = match self.allow_loopback_http {
            true => InTheClear::OnLoopback,
            false => InTheClear::Never,
        };
        ServiceUrl::parse(&self.url, in_the_clear)
    }

    /// A client that shows this token.
    pub fn client(&self, token: Option<TokenText>) -> Result<GatewayClient, DeviceError> {
        Ok(GatewayClient::new(GatewayAccess {
            url: self.url()?,
            token,
            ca_file: self.ca_file.clone(),
        })?)
    }
}

/// Who a device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// Its gateway.
    pub gateway: Whereabouts,
    /// The account that it belongs to.
    pub account: AccountId,
    /// Which device of it.
    pub device: DeviceId,
    /// What its owner calls it.
    pub name: ActorId,
    /// The key that signs for it.
    pub key: PublicKey,
    /// The key that signs the logs of its runs.
    pub log_key: PublicKey,
}

/// The key that a device is to have once a rotation is done. It signs that, and nothing else.
#[derive(Debug)]
pub struct NextKey(SecretKey);

impl NextKey {
    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.0.public()
    }
}

/// The folder. It need not be there yet.
#[derive(Debug, Clone)]
pub struct DeviceFolder {
    path: PathBuf,
}

impl DeviceFolder {
    /// The one at this place.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a device is enrolled here.
    pub fn is_enrolled(&self) -> bool {
        self.path.join(IDENTITY).symlink_metadata().is_ok()
    }

    /// Who the device is.
    pub fn identity(&self) -> Result<DeviceIdentity, DeviceError> {
        if !self.is_enrolled() {
            return Err(DeviceError::NotEnrolled(self.path.clone()));
        }
        let path = self.path.join(IDENTITY);
        let text = files::read(&path)?;
        serde_json::from_str(&text).map_err(|problem| malformed(&path, &problem))
    }

    /// The public half of the key that signs for it.
    pub fn public_key(&self) -> Result<PublicKey, DeviceError> {
        Ok(self.key()?.public())
    }

    /// The key that signs for it. INVARIANT: it goes into a [`Signer`], and nowhere else.
    fn key(&self) -> Result<SecretKey, DeviceError> {
        self.read_key(KEY)
    }

    fn read_key(&self, name: &str) -> Result<SecretKey, DeviceError> {
        let path = self.path.join(name);
        let text = files::read_private(&path)?;
        match parse_secret(text.trim_end_matches('\n')) {
            Ok((_, key)) => Ok(key),
            Err(problem) => Err(malformed(&path, &problem)),
        }
    }

    /// What is shown to the gateway.
    pub fn token(&self) -> Result<TokenText, DeviceError> {
        let path = self.path.join(TOKEN);
        read_token(&path)
    }

    /// A client in the device's name.
    pub fn client(&self) -> Result<GatewayClient, DeviceError> {
        self.identity()?.gateway.client(Some(self.token()?))
    }

    /// Makes the key of a device that is about to be enrolled, and gives its public half. One that is left from
    /// an attempt that failed is used again; one that was a device's never is: a device that is stopped for good
    /// is set aside with all that it had.
    pub fn prepare(&self, fresh: SecretKey) -> Result<PublicKey, DeviceError> {
        self.make_room()?;
        files::private_folder(&self.path)?;
        let path = self.path.join(KEY);
        match path.symlink_metadata().is_ok() {
            true => self.public_key(),
            false => {
                files::create_private(&path, &key_text(&fresh))?;
                Ok(fresh.public())
            }
        }
    }

    /// Keeps who the device is, now that the gateway knows it.
    pub fn enrol(&self, identity: &DeviceIdentity, token: &TokenText) -> Result<(), DeviceError> {
        files::private_folder(&self.path)?;
        let text = Zeroizing::new(format!("{}\n", token.expose()));
        files::replace_private(&self.path.join(TOKEN), &text)?;
        self.keep_identity(identity)
    }

    fn keep_identity(&self, identity: &DeviceIdentity) -> Result<(), DeviceError> {
        let path = self.path.join(IDENTITY);
        let text = serde_json::to_string_pretty(identity);
        let text = text.map_err(|problem| malformed(&path, &problem))?;
        Ok(files::replace_private(&path, &format!("{text}\n"))?)
    }

    /// What the gateway last said, if it is known.
    pub fn state(&self) -> Result<State, DeviceError> {
        let path = self.path.join(STATE);
        if path.symlink_metadata().is_err() {
            return Ok(State::default());
        }
        let text = files::read(&path)?;
        serde_json::from_str(&text).map_err(|problem| malformed(&path, &problem))
    }

    /// Changes what is kept of what the gateway said, with nobody else changing it meanwhile.
    pub(crate) fn change_state(
        &self,
        change: impl FnOnce(&mut State) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let _lock = lock::for_a_moment(&self.path.join(STATE_LOCK))?;
        let before = self.state()?;
        let mut state = before.clone();
        change(&mut state)?;
        if state == before {
            return Ok(());
        }
        let path = self.path.join(STATE);
        let text = serde_json::to_string_pretty(&state);
        let text = text.map_err(|problem| malformed(&path, &problem))?;
        Ok(files::replace_private(&path, &format!("{text}\n"))?)
    }

    /// Makes the key of a rotation that is about to be proposed, or gives the one that is.
    pub fn prepare_next(&self, fresh: SecretKey) -> Result<NextKey, DeviceError> {
        let path = self.path.join(NEXT_KEY);
        match path.symlink_metadata().is_ok() {
            true => self.read_key(NEXT_KEY).map(NextKey),
            false => {
                files::create_private(&path, &key_text(&fresh))?;
                Ok(NextKey(fresh))
            }
        }
    }

    /// Whether a rotation was proposed that is not done, as far as is known here.
    pub fn is_rotating(&self) -> bool {
        self.path.join(NEXT_KEY).symlink_metadata().is_ok()
    }

    /// The key of a rotation that was proposed, if one was.
    fn next(&self) -> Result<Option<SecretKey>, DeviceError> {
        match self.read_key(NEXT_KEY) {
            // Or somebody else took it up since.
            Err(DeviceError::File(problem)) if problem.is_missing() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Puts the proposed key in the place of the old one: the gateway knows it now. Interrupted anywhere, it can
    /// be done again.
    fn adopt_next(&self) -> Result<DeviceIdentity, DeviceError> {
        let mut identity = self.identity()?;
        if let Some(next) = self.next()? {
            identity.key = next.public();
            self.keep_identity(&identity)?;
            let (from, to) = (self.path.join(NEXT_KEY), self.path.join(KEY));
            match std::fs::rename(&from, &to) {
                // The daemon and a run's end may both come to it.
                Err(problem) if problem.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed.map_err(FileError::at(&to))?,
            }
        }
        Ok(identity)
    }

    /// Where what became of its runs is kept.
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }
}

/// Reads a token from a file that nobody else can read.
pub fn read_token(path: &Path) -> Result<TokenText, DeviceError> {
    let text = files::read_private(path)?;
    let line = text.trim_end_matches(['\n', '\r']);
    TokenText::parse(line).ok_or_else(|| DeviceError::Malformed {
        path: path.to_owned(),
        problem: "it holds no token, or more than one".to_owned(),
    })
}

/// Keeps a token in a file that nobody else can read, and that was not there.
pub fn keep_token(path: &Path, token: &TokenText) -> Result<(), DeviceError> {
    let text = Zeroizing::new(format!("{}\n", token.expose()));
    Ok(files::create_private(path, &text)?)
}

/// Writes text with a secret in it in the place of what was there: whole or not at all, and nobody else's.
pub fn keep_secret(path: &Path, text: &str) -> Result<(), DeviceError> {
    if let Some(folder) = path.parent() {
        files::private_folder(folder)?;
    }
    Ok(files::replace_private(path, text)?)
}

/// Reads text with a secret in it, which nobody else may be able to read.
pub fn read_secret(path: &Path) -> Result<Zeroizing<String>, DeviceError> {
    Ok(files::read_private(path)?)
}

fn key_text(key: &SecretKey) -> Zeroizing<String> {
    let text = encode_secret(KEY_NAME, key).expect("INVARIANT: a constant that is a name");
    Zeroizing::new(format!("{}\n", text.as_str()))
}

fn malformed(path: &Path, problem: &dyn std::fmt::Display) -> DeviceError {
    DeviceError::Malformed {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
