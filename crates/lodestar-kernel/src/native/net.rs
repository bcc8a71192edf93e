//! The one way out: every network tool of the box connects here.
//!
//! A name is resolved once, every address among the answers is looked at, and the connection goes to
//! exactly those addresses; nothing resolves the name a second time. So a name that answers with a
//! public address now and with loopback a moment later leads nowhere. Nothing is taken from the
//! environment: no proxy, no certificate path.
//!
//! | part | role |
//! |---|---|
//! | [`address`] | which addresses are refused, and what the operator opens |
//! | [`endpoint`] | URLs, read strictly |
//! | [`resolve`] | names to addresses |
//! | [`credential`] | secrets: where they come from, and that they do not come back out |
//! | [`connector`] | resolve, check, connect, TLS |

pub mod address;
pub(crate) mod arguments;
pub mod connector;
pub mod credential;
pub mod endpoint;
pub mod resolve;
pub(crate) mod wire;

use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::name::Excerpt;
use serde::Deserialize;
use thiserror::Error;

use address::AllowedAddress;

/// How long a connection, TLS included, may take: what a person waits before pressing reload.
pub const DEFAULT_CONNECT_TIMEOUT_MS: u64 = 10_000;

/// How long a whole call may take, redirects included.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// The longest time cap that can be configured: a held connection is a held resource.
pub const MAX_TIMEOUT_MS: u64 = 600_000;

/// How a tool reaches the network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Addresses that are open although their range is refused; for intranets and tests.
    pub allow_addresses: Vec<AllowedAddress>,
    /// Root certificates in PEM, trusted beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// Time for one connection in milliseconds, TLS included.
    pub connect_timeout_ms: u64,
    /// Time for the whole call in milliseconds. The call's own deadline holds too.
    pub timeout_ms: u64,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            allow_addresses: Vec::new(),
            ca_file: None,
            connect_timeout_ms: DEFAULT_CONNECT_TIMEOUT_MS,
            timeout_ms: DEFAULT_TIMEOUT_MS,
        }
    }
}

/// Why a network configuration is refused.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// A time cap is zero or very long.
    #[error("`{name}` is {given}; write 1 to {MAX_TIMEOUT_MS} milliseconds")]
    Timeout {
        /// Which one.
        name: &'static str,
        /// What was given.
        given: u64,
    },
    /// The file with root certificates cannot be used.
    #[error("`ca_file` `{path}`: {reason}; name a PEM file with at least one certificate")]
    Roots {
        /// The file, inert.
        path: Excerpt,
        /// What is wrong with it.
        reason: String,
    },
    /// TLS could not be set up.
    #[error("tls could not be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl NetworkConfig {
    fn timeout(name: &'static str, given: u64) -> Result<Duration, NetworkError> {
        match given {
            1..=MAX_TIMEOUT_MS => Ok(Duration::from_millis(given)),
            _ => Err(NetworkError::Timeout { name, given }),
        }
    }
}
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
