//! The statements about tools' definitions: that a lock file is whole, that a person looked at a definition.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;

/// What is stated about tools' definitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolReview {
    /// These pins, and no others, are an installation's for one project.
    Lock {
        /// SHA-256 of the pins in canonical form.
        pins: Digest,
        /// The project.
        project: String,
    },
    /// A person looked at what a server offers, and accepts it as it is.
    Reviewed {
        /// SHA-256 of the definition in canonical form.
        definition: Digest,
        /// The project.
        project: String,
        /// The server's identity.
        server: String,
        /// The tool's name at the server; none where it is about what the server tells agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
}

impl Statement for ToolReview {
    const KIND: StatementKind = StatementKind::ToolReview;
}
