//! Arbiters: what looks at an action after the policies and the ladder, and can only tighten.
//!
//! They are off unless the operator names them. Each is a pure function of the facts.

use std::collections::BTreeMap;

use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::ladder::{Rung, Severity};
use lodestar_core::name::{Excerpt, UnknownWord};
use thiserror::Error;

use crate::facts::{Facts, ToolShape};
use crate::judgement::Signal;
use crate::request::untrusted;

/// Below this, a belief is too weak to act on without a look.
const LOW_CONFIDENCE: f64 = 0.5;

/// An arbiter that comes with Lodestar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arbiter {
    /// An action of L3 or above rests on a belief that is weak or gated: not supported, not handed out
    /// normally, not clean, or not fresh.
    LowConfidenceAction,
    /// An action rests on a belief that itself rests on something that was only read.
    SuspiciousMemoryOrigin,
    /// A destination or identity of an action of L3 or above is neither given nor measured.
    UntrustedArgument,
}

impl Arbiter {
    /// All there are.
    pub const ALL: [Self; 3] = [
        Self::LowConfidenceAction,
        Self::SuspiciousMemoryOrigin,
        Self::UntrustedArgument,
    ];

    /// Its name in configuration and log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LowConfidenceAction => "low-confidence-action",
            Self::SuspiciousMemoryOrigin => "suspicious-memory-origin",
            Self::UntrustedArgument => "untrusted-argument",
        }
    }

    /// How grave what it sees is, unless the operator says graver.
    pub const fn severity(self) -> Severity {
        Severity::Warning
    }

    /// What it sees, in words.
    fn look(self, facts: &Facts<'_>, tool: Option<&ToolShape>) -> Option<String> {
        match self {
            Self::LowConfidenceAction => low_confidence(facts),
            Self::SuspiciousMemoryOrigin => memory_origin(facts),
            Self::UntrustedArgument => untrusted_argument(facts, tool),
        }
    }
}

/// Why arbiters cannot be set up as configured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArbiterError {
    /// There is none of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// Configuration may not make one milder.
    #[error(
        "arbiter `{arbiter}` is set to `{wanted}`, but is `{least}` at least; a severity can only be made stricter"
    )]
    Milder {
        /// The arbiter.
        arbiter: &'static str,
        /// What was configured.
        wanted: Severity,
        /// Its own severity.
        least: Severity,
    },
}

/// Which arbiters look, and how grave what they see is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArbiterRules(BTreeMap<Arbiter, Severity>);

impl ArbiterRules {
    /// No arbiter looks.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads names and severities, as configured; without a severity, the arbiter's own.
    pub fn new<'a>(
        named: impl IntoIterator<Item = (&'a str, Option<Severity>)>,
    ) -> Result<Self, ArbiterError> {
        let mut rules = BTreeMap::new();
        for (name, severity) in named {
            let known = Arbiter::ALL.into_iter().find(|a| a.as_str() == name);
            let arbiter = known.ok_or_else(|| UnknownWord {
                what: "arbiter",
                expected: const {
                    &[
                        Arbiter::LowConfidenceAction.as_str(),
                        Arbiter::SuspiciousMemoryOrigin.as_str(),
                        Arbiter::UntrustedArgument.as_str(),
                    ]
                },
                shown: Excerpt::of(name),
            })?;
            let least = arbiter.severity();
            let wanted = severity.unwrap_or(least);
            if wanted < least {
                return Err(ArbiterError::Milder {
                    arbiter: arbiter.as_str(),
                    wanted,
                    least,
                });
            }
            // Named twice, the stricter counts.
            let entry = rules.entry(arbiter).or_insert(wanted);
            *entry = wanted.max(*entry);
        }
        Ok(Self(rules))
    }

    /// Those that look, and how grave what they see is.
    pub fn iter(&self) -> impl Iterator<Item = (Arbiter, Severity)> + '_ {
        self.0
            .iter()
            .map(|(arbiter, severity)| (*arbiter, *severity))
    }

    /// What those that are on see, in the order of their names.
    pub(crate) fn look(&self, facts: &Facts<'_>, tool: Option<&ToolShape>) -> Vec<Signal> {
        let seen = self.0.iter().filter_map(|(arbiter, &severity)| {
            Some(Signal {
                arbiter: arbiter.as_str().to_owned(),
                severity,
                reason: arbiter.look(facts, tool)?,
            })
        });
        seen.collect()
    }
}

fn is_consequential(facts: &Facts<'_>) -> bool {
    facts.contract.required_level >= Rung::L3
}

fn low_confidence(facts: &Facts<'_>) -> Option<String> {
    if !is_consequential(facts) {
        return None;
    }
    let weak = facts.dependencies.iter().find(|dependency| {
        dependency.confidence.get() < LOW_CONFIDENCE
            || dependency.truth != Truth::Supported
            || dependency.retrieval != Retrieval::Normal
            || dependency.security != Security::Clean
            || dependency.freshness != Freshness::Fresh
    })?;
    Some(format!(
        "the decision rests on belief `{}`, which is {}, {}, {}, {} with confidence {}",
        weak.belief, weak.truth, weak.retrieval, weak.security, weak.freshness, weak.confidence
    ))
}

fn memory_origin(facts: &Facts<'_>) -> Option<String> {
    let read = facts.dependencies.iter().find(|d| d.rests_on_reading)?;
    Some(format!(
        "the decision rests on belief `{}`, which rests on something that was only read",
        read.belief
    ))
}

fn untrusted_argument(facts: &Facts<'_>, tool: Option<&ToolShape>) -> Option<String> {
    if !is_consequential(facts) {
        return None;
    }
    let name = untrusted(facts, tool).into_iter().next()?;
    Some(format!(
        "argument `{}` says where something goes or whose it is, and is neither given nor measured",
        Excerpt::of(&name)
    ))
}
