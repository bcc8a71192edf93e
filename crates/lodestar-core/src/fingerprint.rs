//! Fingerprint: what exactly is approved.
//!
//! SHA-256 over the canonical JSON of everything that makes two actions the same action. No field is
//! optional, since one that could be absent on both sides would match by being absent. Values are
//! hashed whole, whatever a card shows of them; a number that has no canonical form is refused.

mod path;

pub use path::{MAX_PATH_LEN, NormalPath, PathError};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical::{self, CanonicalError};
use crate::contract::{Contract, DigestedContract, Reversibility};
use crate::digest::{Digest, DigestError, sha256};
use crate::name::{ServerIdentity, ToolName, words};
use crate::scope::Scope;

words! {
    /// What kind of approval an action needs.
    pub enum ActionKind: "action kind" {
        /// Its effects cannot be undone.
        Destructive = "destructive",
        /// Anything else.
        Protected = "protected",
    }
}

impl From<Reversibility> for ActionKind {
    fn from(reversibility: Reversibility) -> Self {
        match reversibility {
            Reversibility::Irreversible => Self::Destructive,
            Reversibility::Reversible | Reversibility::Compensable => Self::Protected,
        }
    }
}

/// The identity of an action: equal fingerprints, same act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The digest.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Fingerprint {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.parse().map(Self)
    }
}

/// What a fingerprint is taken of. All fields are always there.
///
/// Compare with [`Self::differences`], or by fingerprint: both compare what is hashed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FingerprintFields {
    /// What kind of approval the action needs.
    pub kind: ActionKind,
    /// The tool.
    pub tool: ToolName,
    /// Whose tool.
    pub server: ServerIdentity,
    /// The tool's definition as it was reviewed, by digest.
    pub tool_definition: Digest,
    /// The arguments, whole; a call without arguments has an empty object.
    pub arguments: Map<String, Value>,
    /// The paths among the arguments, in their normal form and in the order of the arguments.
    pub paths: Vec<NormalPath>,
    /// Where the effects can land.
    pub scope: Scope,
    /// The contract, by digest.
    pub contract: Digest,
}

words! {
    /// A field of [`FingerprintFields`], to say where two of them differ.
    pub enum FingerprintField: "fingerprint field" {
        /// The kind.
        Kind = "kind",
        /// The tool.
        Tool = "tool",
        /// The server.
        Server = "server",
        /// The tool's definition.
        ToolDefinition = "tool_definition",
        /// The arguments.
        Arguments = "arguments",
        /// The paths.
        Paths = "paths",
        /// The scope.
        Scope = "scope",
        /// The contract.
        Contract = "contract",
    }
}

impl FingerprintFields {
    /// The fields of an action under a contract, which settles kind, scope and contract digest.
    pub fn under(
        contract: &Contract,
        server: ServerIdentity,
        tool: ToolName,
        tool_definition: Digest,
        arguments: Map<String, Value>,
        paths: Vec<NormalPath>,
    ) -> Result<Self, CanonicalError> {
        let contract = contract.clone().digested()?;
        Ok(Self::under_digested(
            &contract,
            server,
            tool,
            tool_definition,
            arguments,
            paths,
        ))
    }

    /// The same, where the contract's digest is known already.
    pub fn under_digested(
        digested: &DigestedContract,
        server: ServerIdentity,
        tool: ToolName,
        tool_definition: Digest,
        arguments: Map<String, Value>,
        paths: Vec<NormalPath>,
    ) -> Self {
        let contract = digested.contract();
        Self {
            kind: contract.reversibility.into(),
            tool,
            server,
            tool_definition,
            arguments,
            paths,
            scope: contract.scope.clone(),
            contract: digested.digest(),
        }
    }

    /// The fingerprint.
    pub fn fingerprint(&self) -> Result<Fingerprint, CanonicalError> {
        canonical::to_vec(self).map(|bytes| Fingerprint(sha256(&bytes)))
    }

    /// Every field in which the two differ.
    pub fn differences(&self, other: &Self) -> Vec<FingerprintField> {
        let differs = |field: FingerprintField| match field {
            FingerprintField::Kind => self.kind != other.kind,
            FingerprintField::Tool => self.tool != other.tool,
            FingerprintField::Server => self.server != other.server,
            FingerprintField::ToolDefinition => self.tool_definition != other.tool_definition,
            FingerprintField::Arguments => !same_canonical(&self.arguments, &other.arguments),
            FingerprintField::Paths => self.paths != other.paths,
            FingerprintField::Scope => self.scope != other.scope,
            FingerprintField::Contract => self.contract != other.contract,
        };
        FingerprintField::ALL
            .iter()
            .copied()
            .filter(|&field| differs(field))
            .collect()
    }
}

/// Compared as they are hashed: `1` and `1.0` are one number. What has no canonical form is never
/// the same as anything.
fn same_canonical(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    match (canonical::to_vec(a), canonical::to_vec(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
