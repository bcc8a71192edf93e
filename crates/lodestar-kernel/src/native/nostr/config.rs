//! What the operator says: which relays, which kinds of event, which key.

use std::path::PathBuf;

use lodestar_core::name::{Excerpt, LabelError};
use serde::Deserialize;
use thiserror::Error;

use super::event::KeyError;
use crate::native::net::credential::CredentialError;
use crate::native::net::endpoint::{Location, Scheme, UrlRefused};
use crate::native::net::{NetworkConfig, NetworkError};

/// Longest content in bytes: common relays refuse larger events.
pub const DEFAULT_MAX_CONTENT_BYTES: usize = 64 << 10;

/// The most that it can be raised to.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;

/// Most relays of one configuration: all are connected to at once.
pub const MAX_RELAYS: usize = 32;

/// The configuration of `nostr.publish`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NostrConfig {
    /// The relays, as `wss://host/path`; one in the clear is written out as `ws://`.
    pub relays: Vec<String>,
    /// The kinds of event that can be published.
    pub kinds: Vec<u16>,
    /// The environment variable with the private key, in hex or as `nsec1…`.
    pub credential_env: Option<String>,
    /// The file with the private key, mode 0600.
    pub credential_file: Option<PathBuf>,
    /// How it reaches the relays.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Longest content in bytes.
    #[serde(default = "max_content_bytes")]
    pub max_content_bytes: usize,
}

fn max_content_bytes() -> usize {
    DEFAULT_MAX_CONTENT_BYTES
}

/// Why a configuration makes no tool.
#[derive(Debug, Error)]
pub enum NostrError {
    /// A relay is no WebSocket URL.
    #[error("relay `{relay}`: {source}")]
    Url {
        /// The relay, inert.
        relay: Excerpt,
        /// Why it is refused.
        source: UrlRefused,
    },
    /// A relay of another scheme.
    #[error("relay `{relay}` is not of WebSocket; write `wss://…`")]
    Scheme {
        /// The relay, inert.
        relay: Excerpt,
    },
    /// The same relay twice.
    #[error("relay `{relay}` is there twice; keep one")]
    Twice {
        /// The relay, inert.
        relay: Excerpt,
    },
    /// None, or very many.
    #[error("there are {count} relays; name 1 to {MAX_RELAYS}")]
    Relays {
        /// How many.
        count: usize,
    },
    /// No kind.
    #[error("`kinds` is empty; name those that can be published, such as 1 for a short note")]
    NoKinds,
    /// A cap that allows nothing or everything.
    #[error("`max_content_bytes` is {given}; write 1 to {MAX_CONTENT_BYTES}")]
    Cap {
        /// What was given.
        given: usize,
    },
    /// No source of a key.
    #[error("there is no key; name `credential_file` or `credential_env`")]
    NoKey,
    /// The key is not to be had.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// It is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The definition cannot be made.
    #[error(transparent)]
    Label(#[from] LabelError),
}

/// Reads the relays, each once.
pub(super) fn relays(texts: &[String]) -> Result<Vec<Location>, NostrError> {
    if !(1..=MAX_RELAYS).contains(&texts.len()) {
        return Err(NostrError::Relays { count: texts.len() });
    }
    let mut relays: Vec<Location> = Vec::new();
    for text in texts {
        let relay = Excerpt::of(text);
        let location = Location::parse(text).map_err(|source| NostrError::Url {
            relay: relay.clone(),
            source,
        })?;
        if !matches!(location.endpoint().scheme(), Scheme::Wss | Scheme::Ws) {
            return Err(NostrError::Scheme { relay });
        }
        if relays.contains(&location) {
            return Err(NostrError::Twice { relay });
        }
        relays.push(location);
    }
    Ok(relays)
}
