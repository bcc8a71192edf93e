//! `fs.read` and `fs.write`: one file, below one root; `fs.restore`: what an act wrote over, back again.
//!
//! The root is opened once, as a directory; every path is resolved beneath that directory by the
//! kernel of the operating system ([`Root`]), so a link or a rename in between cannot lead out of
//! it. What can move is a directory itself: one that is carried out of the root while a call works
//! in it takes the call's file along.

mod blocking;
mod put;
mod read;
mod restore;
mod root;
#[cfg(test)]
pub(crate) mod tests;
mod write;

pub use read::FsRead;
pub use restore::{FsRestore, RESTORE, Restoration};
pub use root::{Links, PathRefused, Root, RootError};
pub use write::FsWrite;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::chain::ContentBlock;
use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tool::{Call, Definition, ToolError};

pub(crate) use blocking::{Early, Reins, blocking};
pub(crate) use root::{Below, explain, shown};

/// Largest file that is read or written: what an agent can still use, and far from what would make
/// the log or the memory of the proxy suffer.
pub const DEFAULT_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How `fs.read` and `fs.write` are set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsConfig {
    /// The directory that nothing leaves.
    pub root: PathBuf,
    /// Largest content in bytes. More is refused, never cut.
    #[serde(default = "default_max_bytes")]
    pub max_bytes: u64,
    /// What happens to symbolic links on the way.
    #[serde(default)]
    pub links: Links,
}

impl FsConfig {
    /// The defaults for a root.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            max_bytes: DEFAULT_MAX_BYTES,
            links: Links::default(),
        }
    }
}

fn default_max_bytes() -> u64 {
    DEFAULT_MAX_BYTES
}

/// Bytes as a content block: text where they are UTF-8, else a base64 resource. Never a
/// replacement character, which would pass off something else as what was read.
pub(crate) fn block_of(bytes: Vec<u8>, uri: impl FnOnce() -> String) -> ContentBlock {
    match String::from_utf8(bytes) {
        Ok(text) => ContentBlock::Text {
            text,
            rest: Map::new(),
        },
        Err(error) => ContentBlock::Resource {
            resource: members(json!({
                "uri": uri(),
                "mimeType": "application/octet-stream",
                "blob": STANDARD.encode(error.as_bytes()),
            })),
            rest: Map::new(),
        },
    }
}

/// Refuses an argument that the definition does not have.
pub(crate) fn only(call: &Call<'_>, definition: &Definition) -> Result<(), ToolError> {
    let mut names = call.arguments().keys();
    match names.find(|name| !definition.roles.contains_key(*name)) {
        None => Ok(()),
        Some(name) => Err(ToolError::invalid(format!(
            "there is no argument `{}`; remove it",
            Excerpt::of(name)
        ))),
    }
}

/// The members of an object literal.
pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
