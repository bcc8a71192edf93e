//! What a device says about itself: that it holds its key, and that it is there.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::{Nonce, Statement, StatementKind};
use crate::id::{AccountId, DeviceId, RunnerId};
use crate::name::{Excerpt, deserialize_str};

/// A device answers the server's challenge with the key that it was registered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChallengeResponse {
    /// The account that registered it.
    pub account: AccountId,
    /// What the server sent.
    pub challenge: Nonce,
    /// The device.
    pub device: DeviceId,
}

impl Statement for ChallengeResponse {
    const KIND: StatementKind = StatementKind::ChallengeResponse;
}

/// A device is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The account that owns it.
    pub account: AccountId,
    /// What beats.
    pub daemon_version: DaemonVersion,
    /// The device.
    pub device: DeviceId,
    /// How it stands with the gateway, by the device's own account; authorises nothing.
    pub gateway_status: GatewayStatus,
    /// The runners that are alive on it.
    pub runners: BTreeSet<RunnerId>,
}

impl Statement for Heartbeat {
    const KIND: StatementKind = StatementKind::Heartbeat;
}

/// Why a line of text is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// More characters than are taken.
    #[error("the {what} `{shown}` has {length} characters; at most {most} are taken")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// How many it has.
        length: usize,
        /// How many it may have.
        most: usize,
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// A character that moves a cursor or ends a line.
    #[error("the {what} `{shown}` has a control character")]
    Control {
        /// What it is.
        what: &'static str,
        /// The refused input, inert.
        shown: Excerpt,
    },
}

fn check(text: &str, what: &'static str, most: usize) -> Result<(), LineError> {
    let shown = || Excerpt::of(text);
    let length = text.chars().count();
    if length > most {
        return Err(LineError::TooLong {
            what,
            length,
            most,
            shown: shown(),
        });
    }
    match text.chars().any(char::is_control) {
        true => Err(LineError::Control {
            what,
            shown: shown(),
        }),
        false => Ok(()),
    }
}

macro_rules! line_types {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $most:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// The most characters it may have.
            pub const MAX_CHARS: usize = $most;

            /// Takes the text as it is, if it is short enough and one line.
            pub fn new(text: impl Into<String>) -> Result<Self, LineError> {
                let text = text.into();
                check(&text, $what, $most)?;
                Ok(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = LineError;

            fn from_str(text: &str) -> Result<Self, LineError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize_str(deserializer)
            }
        }
    )+};
}

line_types! {
    /// How a device says it stands with its gateway: any short line, for people to read.
    GatewayStatus: "gateway status", 32;
    /// Which daemon beats, for people to read.
    DaemonVersion: "daemon version", 64;
}

impl GatewayStatus {
    /// `connected`
    pub fn connected() -> Self {
        Self("connected".to_owned())
    }

    /// `degraded`
    pub fn degraded() -> Self {
        Self("degraded".to_owned())
    }

    /// `error: ` and as much of the reason as has room, with `?` for what would not be one line.
    pub fn error(reason: &str) -> Self {
        let inert = reason.chars().map(|c| if c.is_control() { '?' } else { c });
        Self(
            "error: "
                .chars()
                .chain(inert)
                .take(Self::MAX_CHARS)
                .collect(),
        )
    }
}

impl Default for GatewayStatus {
    fn default() -> Self {
        Self("disconnected".to_owned())
    }
}
