//! The statement by which an author publishes a pack of probes.

use serde::{Deserialize, Serialize};

use super::{Statement, StatementKind};
use crate::digest::Digest;

/// These files, and no others, are the pack. Kept beside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackPublished {
    /// Whose pack it is, by the name that their key is pinned under.
    pub author: String,
    /// Every file of it, in the order of their names.
    pub files: Vec<PackedFile>,
    /// The pack's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One file of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Its length in bytes.
    pub length: u64,
    /// Its name below the pack's folder, with `/` between parts.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
}

impl Statement for PackPublished {
    const KIND: StatementKind = StatementKind::Pack;
}
