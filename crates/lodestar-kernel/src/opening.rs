//! `session.opened@1` of a governed session: all that its verdicts depend on.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::contract::ArgumentRole;
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::id::RunId;
use lodestar_core::name::{CalibrationClass, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::Nonce;
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
    /// The calibration that it was opened under; there where a sentinel looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationInForce>,
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
    /// The run that the session is, where a gateway knows of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunTicket>,
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

    /// The calibration classes that are off.
    pub fn flagged(&self) -> impl Iterator<Item = &CalibrationClass> {
        self.calibration.iter().flat_map(|one| &one.flagged)
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

/// What a gateway gave out when a run was registered. That it stands in the first event shows that nothing of
/// the log was written before: the nonce was not known to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunTicket {
    /// The run.
    pub id: RunId,
    /// The gateway's own nonce of it.
    pub nonce: Nonce,
}

/// What was measured of beliefs before a session, as far as its verdicts depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationInForce {
    /// The classes that are off.
    pub flagged: BTreeSet<CalibrationClass>,
    /// Where that is recorded; none where nobody measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<ComputedAt>,
    /// Later measurements whose record does not hold, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Where a calibration is recorded, in the same project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputedAt {
    /// In which session.
    pub session: SessionId,
    /// At which event.
    pub seq: u64,
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
