//! The statement by which an operator says of one act, before it is asked for, whether they want it.
//!
//! It is evidence and not a grant: whoever holds an action decides what it is worth, and whether it
//! was used before stands in a [`ConsumeLedger`], not in the statement.

mod ledger;

pub use ledger::{ConsumeLedger, Consumption, LedgerError, MemoryLedger, Spent};

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Nonce, Statement, StatementKind};
use crate::digest::Digest;
use crate::fingerprint::{ActionKind, FingerprintField, FingerprintFields, NormalPath, PathError};
use crate::ladder::Rung;
use crate::name::{ActorId, ServerIdentity, SessionId, ToolName, words};
use crate::scope::Scope;

words! {
    /// How a confirmation came about.
    #[derive(PartialOrd, Ord)]
    pub enum ConfirmationOrigin: "confirmation origin" {
        /// In a dialog that the host owns, just before the call.
        RuntimeUiConfirm = "runtime-ui-confirm",
        /// By reviewing the contract of the act.
        OperatorContractReview = "operator-contract-review",
    }
}

/// How long a confirmation is good for where nobody says: as long as a person remembers what they saw.
pub const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// The longest life of a confirmation: the world moves on.
pub const LONGEST_TTL: Duration = Duration::from_secs(15 * 60);

/// The longest life of a reviewed contract whose act stays on this machine.
pub const LONGEST_REVIEW_TTL: Duration = Duration::from_secs(24 * 60 * 60);

impl ConfirmationOrigin {
    /// How long a confirmation of this origin may be good for, at most, for an act on this rung.
    pub fn longest_ttl(self, rung: Rung) -> Duration {
        match self {
            Self::OperatorContractReview if rung < Rung::L4 => LONGEST_REVIEW_TTL,
            Self::OperatorContractReview | Self::RuntimeUiConfirm => LONGEST_TTL,
        }
    }
}

words! {
    /// What the operator says of the act.
    pub enum ConfirmationDecision: "confirmation decision" {
        /// They want it.
        Confirm = "confirm",
        /// They do not.
        Decline = "decline",
    }
}

/// Names one confirmation: 128 random bits, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfirmationId(Nonce);

impl ConfirmationId {
    /// Wraps bytes from a random source.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Nonce::from_bytes(bytes))
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for ConfirmationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ConfirmationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

words! {
    /// What a confirmation is bound to, to say in what it differs from an act.
    pub enum ConfirmationField: "confirmation field" {
        /// Whether the effects can be undone.
        Kind = "kind",
        /// The tool.
        Tool = "tool",
        /// The server.
        Server = "server",
        /// The tool's definition.
        Definition = "definition",
        /// The contract.
        Contract = "contract",
        /// The paths.
        Path = "path",
        /// The scope.
        Scope = "scope",
        /// The arguments.
        Payload = "payload",
        /// The session.
        Session = "session",
    }
}

impl From<FingerprintField> for ConfirmationField {
    fn from(field: FingerprintField) -> Self {
        match field {
            FingerprintField::Kind => Self::Kind,
            FingerprintField::Tool => Self::Tool,
            FingerprintField::Server => Self::Server,
            FingerprintField::ToolDefinition => Self::Definition,
            FingerprintField::Arguments => Self::Payload,
            FingerprintField::Paths => Self::Path,
            FingerprintField::Scope => Self::Scope,
            FingerprintField::Contract => Self::Contract,
        }
    }
}

/// The act that is spoken of: everything that a fingerprint is taken of, so that each field that
/// differs can be named. Paths are as they were written, and compared in normal form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedAct {
    /// The arguments, whole.
    pub arguments: Map<String, Value>,
    /// The contract, by digest.
    pub contract: Digest,
    /// Whether the effects can be undone.
    pub kind: ActionKind,
    /// The paths among the arguments.
    pub paths: Vec<String>,
    /// Where the effects can land.
    pub scope: Scope,
    /// Whose tool.
    pub server: ServerIdentity,
    /// The tool.
    pub tool: ToolName,
    /// The tool's definition, by digest.
    pub tool_definition: Digest,
}

impl ConfirmedAct {
    /// As a fingerprint is taken of it.
    pub fn fields(&self) -> Result<FingerprintFields, PathError> {
        let paths = self.paths.iter().map(|path| NormalPath::new(path));
        Ok(FingerprintFields {
            kind: self.kind,
            tool: self.tool.clone(),
            server: self.server.clone(),
            tool_definition: self.tool_definition,
            arguments: self.arguments.clone(),
            paths: paths.collect::<Result<_, _>>()?,
            scope: self.scope.clone(),
            contract: self.contract,
        })
    }
}

impl From<&FingerprintFields> for ConfirmedAct {
    fn from(fields: &FingerprintFields) -> Self {
        let paths = fields.paths.iter().map(|path| path.as_str().to_owned());
        Self {
            arguments: fields.arguments.clone(),
            contract: fields.contract,
            kind: fields.kind,
            paths: paths.collect(),
            scope: fields.scope.clone(),
            server: fields.server.clone(),
            tool: fields.tool.clone(),
            tool_definition: fields.tool_definition,
        }
    }
}

/// An operator's word on one act, given before the call. Made and expiring when the statement is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The act.
    pub act: ConfirmedAct,
    /// What they say of it.
    pub decision: ConfirmationDecision,
    /// Which confirmation it is: it is spent by this name.
    pub id: ConfirmationId,
    /// Who says so; the key has to be one that may speak for them.
    pub operator: ActorId,
    /// How it came about.
    pub origin: ConfirmationOrigin,
    /// The session whose act it is.
    pub session: SessionId,
}

impl Statement for Confirmation {
    const KIND: StatementKind = StatementKind::Confirmation;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_of_what_stays_here_lasts_a_day_and_nothing_else_more_than_a_quarter_of_an_hour() {
        let (ui, review) = (
            ConfirmationOrigin::RuntimeUiConfirm,
            ConfirmationOrigin::OperatorContractReview,
        );
        for rung in [Rung::L0, Rung::L1, Rung::L2, Rung::L3, Rung::L4, Rung::L5] {
            assert_eq!(ui.longest_ttl(rung), LONGEST_TTL);
            let longest = match rung < Rung::L4 {
                true => LONGEST_REVIEW_TTL,
                false => LONGEST_TTL,
            };
            assert_eq!(review.longest_ttl(rung), longest, "{rung}");
        }
        assert!(DEFAULT_TTL < LONGEST_TTL);
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = ConfirmationId::from_bytes([0xab; 16]);
        let json = serde_json::to_string(&id).expect("written");
        assert_eq!(json, format!("\"{}\"", "ab".repeat(16)));
        assert_eq!(id.to_string(), "ab".repeat(16));
        for wrong in ["", "AB", &"AB".repeat(16), &"ab".repeat(17)] {
            let json = format!("\"{wrong}\"");
            assert!(serde_json::from_str::<ConfirmationId>(&json).is_err());
        }
    }

    #[test]
    fn every_field_of_a_fingerprint_has_its_name_here() {
        let named: Vec<_> = FingerprintField::ALL
            .iter()
            .map(|&field| ConfirmationField::from(field).as_str())
            .collect();
        let all = ConfirmationField::ALL.iter().map(|field| field.as_str());
        let missing: Vec<_> = all.filter(|field| !named.contains(field)).collect();
        assert_eq!(missing, ["session"]);
    }
}
