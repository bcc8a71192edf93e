//! What the gateway last said to a device, where everything that signs for it can look.

use lodestar_core::device::DeviceLevel;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::client::GatewayError;
use crate::code::Code;
use crate::wire::Directives;

/// Why a device does not sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The platform stopped all signing.
    #[error("the platform stopped all signing")]
    KillSwitch,
    /// It is paused.
    #[error("the device is paused")]
    Paused,
    /// Its owner revoked it, for good.
    #[error("the device's owner revoked it, for good")]
    Revoked,
    /// The platform blocked it, for good.
    #[error("the platform blocked the device, for good")]
    Blocked,
}

impl Stopped {
    /// What directives say of it.
    pub fn by(directives: &Directives) -> Option<Self> {
        match (directives.kill_switch, directives.paused) {
            (true, _) => Some(Self::KillSwitch),
            (false, true) => Some(Self::Paused),
            (false, false) => None,
        }
    }

    /// What a refusal says of it.
    pub fn of(problem: &GatewayError) -> Option<Self> {
        match problem.code()? {
            Code::KillSwitch => Some(Self::KillSwitch),
            Code::DevicePaused => Some(Self::Paused),
            Code::DeviceRevoked => Some(Self::Revoked),
            Code::DeviceBlocked => Some(Self::Blocked),
            _ => None,
        }
    }

    /// Whether it stays so.
    pub fn is_for_good(self) -> bool {
        matches!(self, Self::Revoked | Self::Blocked)
    }
}

/// What the gateway last said, and what it was last asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Why nothing is signed; none where it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// How far the device has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<DeviceLevel>,
    /// When the gateway last answered, by this machine's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// When it last took a heartbeat, by this machine's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beat_at: Option<Timestamp>,
    /// Seconds between the daemon's heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_seconds: Option<u64>,
    /// Why it was not heard since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
