//! The statement by which a device hands in the log of a run.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;
use crate::id::{AccountId, DeviceId, RunId};

/// These bytes are the log of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunBundle {
    /// The account whose run it is.
    pub account: AccountId,
    /// SHA-256 of the bundle's bytes.
    pub bundle: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// The device that made it.
    pub device: DeviceId,
    /// The root over the log's events.
    pub root: Digest,
    /// The run.
    pub run: RunId,
    /// How many events the log has.
    pub size: u64,
}

impl Statement for RunBundle {
    const KIND: StatementKind = StatementKind::RunBundle;
}
