//! The one catalogue of event types, for log, replay, report, viewer and gateway.
//!
//! A type is a name and a version. Its payload may gain fields but never change their meaning: a
//! change of meaning is a new `@N` beside the old one. Only the component named as [`Writer`]
//! writes a type; what an agent emits itself is [`EventType::AGENT_NOTE`], trusted for nothing.
//! The entries themselves are in `event/catalogue.rs`.

mod catalogue;

pub use catalogue::CATALOGUE;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::name::{Excerpt, deserialize_str, words};

words! {
    /// The component that writes a type of event, and the only one.
    pub enum Writer: "writer" {
        /// A governed session, live.
        Guard = "guard",
        /// The MCP proxy.
        Mcp = "mcp",
        /// A person who runs Lodestar, through its command line.
        Operator = "operator",
        /// The part that measures and executes.
        Kernel = "kernel",
        /// The gate and its approvals.
        Policy = "policy",
        /// The part that weighs evidence and keeps beliefs.
        Firewall = "firewall",
        /// Probes, sentinels, calibration.
        Harness = "harness",
        /// The log itself, about itself.
        Log = "log",
        /// The service that knows devices and runs.
        Gateway = "gateway",
        /// The agent under governance.
        Agent = "agent",
    }
}

/// One entry of the catalogue.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventSpec {
    /// Name and version as written in the log, such as `action.proposed@1`.
    pub id: &'static str,
    /// Name without version, such as `action.proposed`.
    pub name: &'static str,
    /// Version of the payload's meaning, from 1.
    pub version: u32,
    /// The only component that writes it.
    pub writer: Writer,
    /// What the payload carries, in words.
    pub carries: &'static str,
}

/// A type of event that the catalogue knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(u16);

impl EventType {
    /// All types, in the catalogue's order.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..CATALOGUE.len() as u16).map(Self)
    }

    /// Finds the type that is written so, byte for byte; `None` if the catalogue has no such type.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        CATALOGUE
            .binary_search_by(|spec| spec.id.as_bytes().cmp(bytes))
            .ok()
            .map(|index| Self(index as u16))
    }

    /// The catalogue's entry.
    pub fn spec(self) -> &'static EventSpec {
        &CATALOGUE[usize::from(self.0)]
    }

    /// Name and version as written in the log, such as `action.proposed@1`.
    pub fn as_str(self) -> &'static str {
        self.spec().id
    }

    /// Name without version.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Version of the payload's meaning.
    pub fn version(self) -> u32 {
        self.spec().version
    }

    /// The only component that writes it.
    pub fn writer(self) -> Writer {
        self.spec().writer
    }
}

/// The catalogue has no such type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown event type `{shown}`; a type is written `name@version`, such as `action.proposed@1`"
)]
pub struct UnknownEventType {
    /// The refused input, inert.
    pub shown: Excerpt,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventType({})", self.as_str())
    }
}

impl FromStr for EventType {
    type Err = UnknownEventType;

    fn from_str(text: &str) -> Result<Self, UnknownEventType> {
        Self::parse(text.as_bytes()).ok_or_else(|| UnknownEventType {
            shown: Excerpt::of(text),
        })
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_str(deserializer)
    }
}

/// The catalogue as a page of the reference, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Events\n\n\
         One catalogue for log, replay, report, viewer and gateway. This page is generated from it.\n\n\
         Payload fields may be added, never changed in meaning; a change of meaning is a new `@N`. \
         Only the component named writes a type. What an agent emits itself is `agent.note@1`, and \
         nothing is trusted because of it.\n",
    );
    let mut group = "";
    for spec in CATALOGUE {
        let (domain, _) = spec
            .name
            .split_once('.')
            .expect("INVARIANT: names are `domain.fact`");
        if domain != group {
            group = domain;
            page.push_str(&format!(
                "\n## {domain}\n\n| type | written by | carries |\n|---|---|---|\n"
            ));
        }
        page.push_str(&format!(
            "| `{}` | {} | {} |\n",
            spec.id, spec.writer, spec.carries
        ));
    }
    page
}

#[cfg(test)]
mod tests;
