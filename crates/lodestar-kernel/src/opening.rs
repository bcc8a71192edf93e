//! `session.opened@1` of a governed session: all that its verdicts depend on.

use std::collections::BTreeMap;

use lodestar_core::contract::ArgumentRole;
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::name::ToolName;
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_policy::confirmation::{Confirmations, Under};
use lodestar_policy::{Agent, Approvers, ArbiterRules, Requirement, SignatureState};
use serde::{Deserialize, Serialize};

use crate::registry::ToolRecord;

/// The opening event of a governed session. From this and the proposals alone, every verdict can be
/// derived again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// What the session is for: `guard`, `proxy`, …
    pub purpose: String,
    /// Who acts.
    pub agent: Agent,
    /// The configuration, by digest.
    pub configuration: Digest,
    /// The policy.
    pub policy: PolicyRecord,
    /// The Cedar schema, by digest; it follows from the tools.
    pub schema: Digest,
    /// The tools, as they were reviewed and graded.
    pub tools: Vec<ToolRecord>,
    /// Whose approval counts.
    pub approvers: Approvers,
    /// Whose confirmations count, and for what.
    #[serde(default)]
    pub confirmations: Confirmations,
    /// What an approval needs where no policy says.
    pub approvals_default: Requirement,
    /// The arbiters.
    pub arbiters: ArbiterRules,
    /// The project's root, from which paths are written; none where it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<NormalPath>,
    /// Where its effects land by default.
    pub scope: Scope,
    /// How sensitive its content is by default.
    pub sensitivity: Sensitivity,
    /// The operator's known values, by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_values: Option<Digest>,
    /// Versions of what wrote this.
    pub versions: BTreeMap<String, String>,
    /// Set by a test world that has a defence taken out; nothing of the product sets it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defences_off: Vec<String>,
}

impl Opening {
    /// The roles of a tool's arguments, as they were reviewed.
    pub fn roles(&self, tool: &ToolName) -> Option<&BTreeMap<String, ArgumentRole>> {
        let tool = self.tools.iter().find(|one| one.shape.name == *tool)?;
        Some(&tool.shape.roles)
    }

    /// The defences that the session was opened without; none, but in a harness.
    pub fn missing(&self) -> Vec<Defence> {
        let named = self.defences_off.iter();
        named.filter_map(|name| name.parse().ok()).collect()
    }

    /// By what its confirmations are counted.
    pub fn under(&self) -> Under<'_> {
        Under {
            keys: &self.confirmations.keys,
            approvers: &self.approvers,
            roles: Box::new(|tool| self.roles(tool)),
        }
    }
}

/// A policy, as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// Its text.
    pub text: String,
    /// SHA-256 of it.
    pub digest: Digest,
    /// Who signed it, if anybody did.
    pub signature: SignatureState,
}
