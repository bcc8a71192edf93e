//! What the gate looks at: everything a verdict depends on, beside the policy and the tools.
//!
//! The live session and the replay build these from the same recorded proposal, so a verdict that
//! was given can be derived again.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::chain::{Confidence, Freshness, Retrieval, Security, Truth};
use lodestar_core::contract::{ArgumentRole, Contract};
use lodestar_core::fingerprint::{Fingerprint, NormalPath};
use lodestar_core::id::{ActionId, BeliefId};
use lodestar_core::name::{ActorId, CalibrationClass, ServerIdentity, ToolName};
use lodestar_core::provenance::ArgumentProvenance;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::trail::Trail;

/// A tool, as policies see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolShape {
    /// Its name, such as `fs.read` or `mcp.files.read_file`.
    pub name: ToolName,
    /// Whose tool it is.
    pub server: ServerIdentity,
    /// Groups that the operator put it into.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
    /// The JSON Schema of its arguments, as it was reviewed.
    pub input_schema: Value,
    /// What its arguments are to it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, ArgumentRole>,
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The actor in whose name the session runs.
    pub actor: ActorId,
    /// How far the device it runs on is trusted; `none` where no gateway said anything.
    pub device_trust: String,
    /// How it came to run: `interactive`, `library`, `mcp`, …
    pub execution: String,
}

/// Where a belief stood that the action's decision rests on, when the action was proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependency {
    /// The belief.
    pub belief: BeliefId,
    /// Whether it is so.
    pub truth: Truth,
    /// Whether it is handed out.
    pub retrieval: Retrieval,
    /// Whether something is wrong with where it came from.
    pub security: Security,
    /// Whether it is still so.
    pub freshness: Freshness,
    /// How sure.
    pub confidence: Confidence,
    /// Whether it rests on something that was only read.
    pub rests_on_reading: bool,
    /// With which others its confidence is measured; logs from before this was written have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<CalibrationClass>,
}

/// One proposed action, as the gate sees it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The action.
    pub action: ActionId,
    /// Exactly which act.
    pub fingerprint: Fingerprint,
    /// Who acts.
    pub agent: &'a Agent,
    /// With which tool.
    pub tool: &'a ToolName,
    /// What it may reach: the effective contract, floors applied.
    pub contract: &'a Contract,
    /// The arguments, parsed once.
    pub arguments: &'a Map<String, Value>,
    /// The paths among them, in normal form.
    pub paths: &'a [NormalPath],
    /// Where each value came from.
    pub provenance: &'a [ArgumentProvenance],
    /// What the decision rests on.
    pub dependencies: &'a [Dependency],
    /// The steps of the session before it.
    pub trail: Trail,
}
