//! A scenario as it is written: the keys, and nothing else. What it means is checked elsewhere.

use std::collections::BTreeMap;

use lodestar_core::chain::Truth;
use lodestar_core::contract::ArgumentRole;
use lodestar_core::defence::Defence;
use lodestar_core::ladder::Rung;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};
use toml::Spanned;

use crate::class::AttackClass;
use crate::world::ServerScript;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) name: Spanned<String>,
    pub(super) scenario: Spanned<String>,
    pub(super) asserts: Spanned<String>,
    pub(super) does_not_claim: Spanned<String>,
    #[serde(deserialize_with = "class")]
    pub(super) class: AttackClass,
    pub(super) defence: Defence,
    pub(super) deadline_s: Option<Spanned<u64>>,
    #[serde(default)]
    pub(super) project: ProjectTable,
    #[serde(default)]
    pub(super) files: BTreeMap<Spanned<String>, String>,
    #[serde(default)]
    pub(super) grade: BTreeMap<Spanned<String>, GradeTable>,
    #[serde(default)]
    pub(super) server: Vec<Spanned<ServerScript>>,
    #[serde(default)]
    pub(super) step: Vec<Spanned<StepTable>>,
    #[serde(default)]
    pub(super) need: Vec<Spanned<EndTable>>,
    #[serde(default)]
    pub(super) expect: Vec<Spanned<EndTable>>,
}

/// What the operator set up.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProjectTable {
    pub(super) task: Option<Spanned<String>>,
    pub(super) ceiling: Option<Spanned<u8>>,
    pub(super) policy: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) sentinels: Vec<String>,
    #[serde(default)]
    pub(super) people: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) known_values: Vec<Spanned<String>>,
}

/// How far a tool may reach.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GradeTable {
    pub(super) level: Rung,
    #[serde(default)]
    pub(super) roles: BTreeMap<String, ArgumentRole>,
}

/// One step; exactly one of the first seven.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepTable {
    pub(super) call: Option<String>,
    pub(super) read: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) obey: Option<usize>,
    pub(super) grant: Option<String>,
    pub(super) deny: Option<String>,
    pub(super) restart: Option<Restart>,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    pub(super) needs: Option<Came>,
    pub(super) needs_text: Option<String>,
    pub(super) expect: Option<Came>,
    pub(super) never_says: Option<String>,
}

/// How a proxy ends before the next one is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Restart {
    /// The agent leaves.
    Leave,
    /// It is killed.
    Kill,
}

/// What comes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Came {
    /// It ran.
    Ran,
    /// It was refused, for whatever reason.
    Refused,
    /// The server answered with an error of the protocol.
    Error,
    /// The policy says no.
    PolicyDenied,
    /// It waits for a person.
    ApprovalRequired,
    /// A person said no.
    ApprovalDenied,
    /// Nobody answered in time.
    ApprovalTimeout,
    /// The world has moved.
    PreconditionFailed,
    /// It failed, or nobody saw its end.
    ExecutionFailed,
    /// The tool is not the one that was pinned.
    DefinitionDrift,
    /// There is no such tool.
    ToolNotAdvertised,
    /// The session was stopped.
    Halted,
    /// The servers are not there yet.
    ProxyNotReady,
}

/// Something that is looked at in the end; exactly one of `ran`, `believes`, `events` and `log`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndTable {
    pub(super) ran: Option<String>,
    #[serde(default)]
    pub(super) with: Map<String, Value>,
    pub(super) believes: Option<String>,
    pub(super) truth: Option<Truth>,
    pub(super) events: Option<String>,
    pub(super) times: Option<usize>,
    pub(super) log: Option<LogState>,
}

/// How a log stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LogState {
    /// It verifies, and everything in it follows again.
    Intact,
}

fn class<'de, D: Deserializer<'de>>(from: D) -> Result<AttackClass, D::Error> {
    let text = String::deserialize(from)?;
    AttackClass::parse(&text).map_err(de::Error::custom)
}
