//! The parts of a configuration.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::key::PublicKey;
use lodestar_core::name::{NameError, ProjectId, ScopeName, SessionId};
use lodestar_core::scope::{Scope, ScopeError, ScopeLevel};
use lodestar_policy::{Approvers, Requirement};
use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

use super::HttpApprovals;

/// The session's name: given, or made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionName {
    /// A new one each time.
    #[default]
    Auto,
    /// This one.
    Given(SessionId),
}

impl<'de> Deserialize<'de> for SessionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "auto" {
            return Ok(Self::Auto);
        }
        SessionId::new(text)
            .map(Self::Given)
            .map_err(de::Error::custom)
    }
}

/// Up to which rung calls run unasked: 0 to 3. L4 waits for a human whatever a configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling(u8);

impl Ceiling {
    /// Where nothing is said: scratch work runs, whatever changes the project is asked for.
    pub const DEFAULT: Self = Self(2);

    /// The rung.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Ceiling {
    type Error = String;

    fn try_from(rung: u8) -> Result<Self, String> {
        if rung <= 3 {
            Ok(Self(rung))
        } else {
            Err(format!(
                "a ceiling is 0 to 3, not {rung}: what reaches beyond the machine always waits for a human"
            ))
        }
    }
}

impl<'de> Deserialize<'de> for Ceiling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rung = u8::deserialize(deserializer)?;
        Self::try_from(rung).map_err(de::Error::custom)
    }
}

/// A policy of one's own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// The Cedar file.
    pub file: PathBuf,
    /// Keys whose signature puts it into force.
    #[serde(default)]
    pub keys: Vec<PublicKey>,
    /// Whether it counts without one; the report says so then.
    #[serde(default)]
    pub allow_unsigned: bool,
}

impl PolicyFile {
    /// Where its signature lies: beside it.
    pub fn signature(&self) -> PathBuf {
        lodestar_policy::signature_path(&self.file)
    }
}

/// Why a scope is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadScope {
    /// The name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The level has no such name.
    #[error(transparent)]
    Scope(#[from] ScopeError),
}

/// A scope, by its narrowest level.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigScope {
    level: ScopeLevel,
    identifier: String,
}

impl ConfigScope {
    /// A project's scope.
    pub(super) fn project(project: &ProjectId) -> Self {
        Self {
            level: ScopeLevel::Project,
            identifier: project.as_str().to_owned(),
        }
    }

    /// As core knows it.
    pub fn scope(&self) -> Result<Scope, BadScope> {
        let name = ScopeName::new(self.identifier.clone())?;
        Ok(Scope::global().with(self.level, name)?)
    }
}

/// Whose approval counts, and what one needs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// Where no policy says.
    #[serde(default)]
    pub default: DefaultApproval,
    /// The approvers.
    #[serde(default, deserialize_with = "super::dated::dated")]
    pub authorized_keys: Approvers,
    /// A server through which people elsewhere are asked, beside the drop directory.
    #[serde(default)]
    pub http: Option<HttpApprovals>,
    /// Not a choice: it is there so that asking for it gets an answer.
    #[serde(default)]
    pub allow_unsigned: Never,
}

/// A setting that is always off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Never;

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            return Err(de::Error::custom(
                "an unsigned approval is never accepted; take `allow_unsigned` out",
            ));
        }
        Ok(Self)
    }
}

/// What an approval needs where no policy says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultApproval {
    roles: BTreeSet<String>,
    quorum: NonZeroU32,
    #[serde(deserialize_with = "duration")]
    expires: Duration,
}

/// A quarter of an hour: long enough to look, short enough that the world is still the same.
const EXPIRES: Duration = Duration::from_secs(15 * 60);

impl Default for DefaultApproval {
    fn default() -> Self {
        Self {
            roles: BTreeSet::new(),
            quorum: NonZeroU32::MIN,
            expires: EXPIRES,
        }
    }
}

impl DefaultApproval {
    /// As the gate knows it.
    pub fn requirement(&self) -> Requirement {
        Requirement {
            roles: self.roles.clone(),
            quorum: self.quorum.get(),
            expires_seconds: self.expires.as_secs(),
        }
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    lodestar_policy::parse_duration(&text).map_err(de::Error::custom)
}

/// The operator's known values: a file with one value a line.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownValues {
    /// The file.
    pub file: PathBuf,
}

/// Where beliefs are kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persistence {
    /// In what.
    #[serde(default)]
    pub backend: Backend,
    /// The environment variable with the address of a PostgreSQL server.
    #[serde(default)]
    pub connection_string_env: Option<String>,
}

/// In what beliefs are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// In memory, for this session alone.
    Memory,
    /// In `.lodestar/state.db`.
    #[default]
    Sqlite,
    /// In a shared server.
    Postgres,
}

/// Bounds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How long one call may take.
    pub call_deadline_ms: u64,
    /// How long a server may take until it has said what it offers.
    pub start_deadline_ms: u64,
    /// Most that one message of an agent or a server may take.
    pub message_bytes: usize,
    /// Most calls of one agent at the same time; more wait.
    pub concurrent_calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_deadline_ms: 300_000,
            // A package that is fetched first takes its time.
            start_deadline_ms: 60_000,
            // A large file as base64, and no more.
            message_bytes: 16 << 20,
            concurrent_calls: 128,
        }
    }
}
