//! What the gate is set up with, as configuration and log write it.

use std::fmt;
use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_core::ladder::Severity;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::annotation;
use crate::arbiter::{ArbiterRules, Mode, Setting};
use crate::policy::{Policy, PolicyError, SignatureState};

impl ArbiterRules {
    /// Whether none looks.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// As a table of names and severities; one that only observes has a table of its own.
impl Serialize for ArbiterRules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Written {
            Arbitrates(Severity),
            Observes { severity: Severity, mode: Mode },
        }
        serializer.collect_map(self.iter().map(|(arbiter, Setting { severity, mode })| {
            let written = match mode {
                Mode::Arbitrate => Written::Arbitrates(severity),
                Mode::Observe => Written::Observes { severity, mode },
            };
            (arbiter.as_str(), written)
        }))
    }
}

/// From a list of names and of tables with a name; or from a table by name.
impl<'de> Deserialize<'de> for ArbiterRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Listed)
    }
}

struct Listed;

impl<'de> Visitor<'de> for Listed {
    type Value = ArbiterRules;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sentinels")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ArbiterRules, A::Error> {
        let mut rules = ArbiterRules::none();
        while list.next_element_seed(One(&mut rules))?.is_some() {}
        Ok(rules)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<ArbiterRules, A::Error> {
        let mut rules = ArbiterRules::none();
        while let Some(name) = table.next_key::<String>()? {
            table.next_value_seed(Under(&name, &mut rules))?;
        }
        Ok(rules)
    }
}

/// A sentinel of the list. It is set while it is read, so that what is wrong with it is found where it stands.
struct One<'a>(&'a mut ArbiterRules);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sentinel's name, or a table with `name`, `severity` and `mode`")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<(), E> {
        set(self.0, name, None, Mode::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Sentinel {
            name: String,
            severity: Option<Severity>,
            #[serde(default)]
            mode: Mode,
        }
        let one = Sentinel::deserialize(MapAccessDeserializer::new(table))?;
        set(self.0, &one.name, one.severity, one.mode)
    }
}

/// How the sentinel of this name is set.
struct Under<'a>(&'a str, &'a mut ArbiterRules);

impl<'de> DeserializeSeed<'de> for Under<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Under<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a severity, or a table with `severity` and `mode`")
    }

    fn visit_str<E: de::Error>(self, severity: &str) -> Result<(), E> {
        let severity = severity.parse().map_err(E::custom)?;
        set(self.1, self.0, Some(severity), Mode::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Set {
            severity: Option<Severity>,
            #[serde(default)]
            mode: Mode,
        }
        let one = Set::deserialize(MapAccessDeserializer::new(table))?;
        set(self.1, self.0, one.severity, one.mode)
    }
}

fn set<E: de::Error>(
    rules: &mut ArbiterRules,
    name: &str,
    severity: Option<Severity>,
    mode: Mode,
) -> Result<(), E> {
    rules.set(name, severity, mode).map_err(E::custom)
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
