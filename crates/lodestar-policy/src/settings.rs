//! What the gate is set up with, as configuration and log write it.

use std::collections::BTreeMap;
use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_core::ladder::Severity;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::annotation;
use crate::arbiter::ArbiterRules;
use crate::policy::{Policy, PolicyError, SignatureState};

impl ArbiterRules {
    /// Whether none looks.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// As a table of names and severities.
impl Serialize for ArbiterRules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.iter()
                .map(|(arbiter, severity)| (arbiter.as_str(), severity)),
        )
    }
}

/// From a list of names, or a table of names and severities.
impl<'de> Deserialize<'de> for ArbiterRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            List(Vec<String>),
            Table(BTreeMap<String, Severity>),
        }
        let rules = match Written::deserialize(deserializer)? {
            Written::List(names) => Self::new(names.iter().map(|name| (name.as_str(), None))),
            Written::Table(table) => {
                let named = table.iter();
                Self::new(named.map(|(name, severity)| (name.as_str(), Some(*severity))))
            }
        };
        rules.map_err(de::Error::custom)
    }
}

/// Reads a time such as `90s`, `15m` or `2h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = annotation::seconds(text).map(Duration::from_secs);
    seconds.ok_or_else(|| {
        let shown = lodestar_core::name::Excerpt::of(text);
        format!("`{shown}` is not a duration; write a whole number and one of `s`, `m`, `h`: `15m`")
    })
}

impl Policy {
    /// A policy out of a log, which says on whose word it was in force. Whether the log is to be
    /// believed is for whoever reads it to verify.
    pub fn recorded(text: &str, signature: SignatureState) -> Result<Self, PolicyError> {
        Self::read(text.as_bytes(), sha256(text.as_bytes()), signature)
    }
}
