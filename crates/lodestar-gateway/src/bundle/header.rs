//! The first line of a bundle.

use std::path::PathBuf;

use lodestar_core::digest::Digest;
use lodestar_core::name::{ProjectId, SessionId, is_valid_name};
use serde::{Deserialize, Serialize};

/// What a bundle says it is.
pub const FORMAT: &str = "lodestar.run-bundle/1";

/// The longest first line: as many files as are taken, each with the longest name.
pub(super) const MAX_HEADER: u64 = 4 << 20;

pub(super) const EVENTS: &str = "events.ndjson";
pub(super) const CHECKPOINT: &str = "checkpoint";
const BLOBS: &str = "blobs/";
const RECOVERED: &str = "recovered/";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) files: Vec<File>,
    pub(super) format: String,
    pub(super) project: ProjectId,
    pub(super) session: SessionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) bytes: u64,
    pub(super) name: String,
    pub(super) sha256: Digest,
}

/// One of the few things that a file of a session can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Events,
    Checkpoint,
    /// What was too large for a line.
    Blob(Digest),
    /// What a recovery cut off.
    Recovered(String),
}

impl Name {
    /// Reads a name; there is one spelling of each, and none leads elsewhere.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(digest) = text.strip_prefix(BLOBS) {
            return Digest::from_hex(digest.as_bytes()).ok().map(Self::Blob);
        }
        if let Some(part) = text.strip_prefix(RECOVERED) {
            return Self::recovered(part);
        }
        match text {
            EVENTS => Some(Self::Events),
            CHECKPOINT => Some(Self::Checkpoint),
            _ => None,
        }
    }

    /// The part of this name that a recovery cut off.
    pub(super) fn recovered(part: &str) -> Option<Self> {
        is_valid_name(part.as_bytes()).then(|| Self::Recovered(part.to_owned()))
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Events => EVENTS.to_owned(),
            Self::Checkpoint => CHECKPOINT.to_owned(),
            Self::Blob(digest) => format!("{BLOBS}{digest}"),
            Self::Recovered(part) => format!("{RECOVERED}{part}"),
        }
    }

    /// Where it lies in a session's folder.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_spelling_and_leads_nowhere_else() {
        let digest = "0".repeat(64);
        for good in [
            EVENTS.to_owned(),
            CHECKPOINT.to_owned(),
            format!("blobs/{digest}"),
            "recovered/events-120".to_owned(),
            "recovered/events-120.2".to_owned(),
        ] {
            assert_eq!(Name::parse(&good).unwrap().text(), good);
        }
        for bad in [
            "",
            "ledger.ndjson",
            "/events.ndjson",
            "./events.ndjson",
            "events.ndjson/",
            "blobs/",
            "blobs/abc",
            "blobs/../checkpoint",
            "recovered/",
            "recovered/..",
            "recovered/../events.ndjson",
            "recovered/a/b",
            "recovered/a\0b",
            "recovered/.hidden",
            "Events.ndjson",
        ] {
            assert_eq!(Name::parse(bad), None, "{bad}");
        }
        assert_eq!(Name::parse(&format!("blobs/{}", "A".repeat(64))), None);
    }
}
