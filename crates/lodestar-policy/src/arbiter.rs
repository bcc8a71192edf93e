//! Arbiters: what looks at an action after the policies and the ladder, and can only tighten.
//!
//! They are off unless the operator names them: as sentinels, in the configuration. Each is a pure
//! function of the facts, so that what one saw live can be derived again from the log.

mod alert;

pub use alert::Alert;

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::ladder::{Rung, Severity};
use lodestar_core::name::{CalibrationClass, Excerpt, UnknownWord};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::facts::{Facts, ToolShape};
use crate::judgement::Signal;
use crate::request::untrusted;
use crate::trail::{Sequence, StepKind};

/// Below this, a belief is too weak to act on without a look.
const LOW_CONFIDENCE: f64 = 0.5;

/// An arbiter that comes with Lodestar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arbiter {
    /// A write comes after something external, and that after a read, all within a few steps.
    AnomalousToolSequence,
    /// An action of L3 or above rests on a belief of a class whose confidence was measured, and is off.
    CalibrationFlag,
    /// An action of L3 or above rests on a belief that is weak or gated: not supported, not handed out
    /// normally, not clean, or not fresh.
    LowConfidenceAction,
    /// An action rests on a belief that itself rests on something that was only read.
    SuspiciousMemoryOrigin,
    /// A destination or identity of an action of L3 or above is neither given nor measured.
    UntrustedArgument,
}

impl Arbiter {
    /// All there are, in the order of their names.
    pub const ALL: [Self; 5] = [
        Self::AnomalousToolSequence,
        Self::CalibrationFlag,
        Self::LowConfidenceAction,
        Self::SuspiciousMemoryOrigin,
        Self::UntrustedArgument,
    ];

    /// The names of all.
    const NAMES: [&str; 5] = {
        let mut names = [""; 5];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].as_str();
            at += 1;
        }
        names
    };

    /// Its name in configuration and log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AnomalousToolSequence => "anomalous-tool-sequence",
            Self::CalibrationFlag => "calibration-flag",
            Self::LowConfidenceAction => "low-confidence-action",
            Self::SuspiciousMemoryOrigin => "suspicious-memory-origin",
            Self::UntrustedArgument => "untrusted-argument",
        }
    }

    /// How grave what it sees is, unless the operator says graver.
    pub const fn severity(self) -> Severity {
        match self {
            Self::AnomalousToolSequence => Severity::Critical,
            Self::CalibrationFlag
            | Self::LowConfidenceAction
            | Self::SuspiciousMemoryOrigin
            | Self::UntrustedArgument => Severity::Warning,
        }
    }

    /// What it sees, in words.
    fn look(
        self,
        facts: &Facts<'_>,
        tool: Option<&ToolShape>,
        flagged: &BTreeSet<CalibrationClass>,
    ) -> Option<String> {
        match self {
            Self::AnomalousToolSequence => tool_sequence(facts),
            Self::CalibrationFlag => calibration_flag(facts, flagged),
            Self::LowConfidenceAction => low_confidence(facts),
            Self::SuspiciousMemoryOrigin => memory_origin(facts),
            Self::UntrustedArgument => untrusted_argument(facts, tool),
        }
    }
}

/// What an arbiter does with what it sees.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is recorded, and changes no verdict: for a first week.
    Observe,
    /// It is recorded, and tightens.
    #[default]
    Arbitrate,
}

/// How one arbiter is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// How grave what it sees is.
    pub severity: Severity,
    /// What it does with it.
    pub mode: Mode,
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

/// Which arbiters look, and what follows from what they see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArbiterRules(BTreeMap<Arbiter, Setting>);

/// What the arbiters of a gate saw in one action.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) signals: Vec<Signal>,
    pub(crate) observed: Vec<Signal>,
}

impl ArbiterRules {
    /// No arbiter looks.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads names and severities, as configured; without a severity, the arbiter's own.
    pub fn new<'a>(
        named: impl IntoIterator<Item = (&'a str, Option<Severity>)>,
    ) -> Result<Self, ArbiterError> {
        let mut rules = Self::none();
        for (name, severity) in named {
            rules.set(name, severity, Mode::default())?;
        }
        Ok(rules)
    }

    /// Lets one more arbiter look. Named twice, the stricter counts.
    pub fn set(
        &mut self,
        name: &str,
        severity: Option<Severity>,
        mode: Mode,
    ) -> Result<(), ArbiterError> {
        let known = Arbiter::ALL.into_iter().find(|a| a.as_str() == name);
        let arbiter = known.ok_or_else(|| UnknownWord {
            what: "arbiter",
            expected: &Arbiter::NAMES,
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
        let setting = self.0.entry(arbiter).or_insert(Setting {
            severity: wanted,
            mode,
        });
        setting.severity = wanted.max(setting.severity);
        setting.mode = mode.max(setting.mode);
        Ok(())
    }

    /// Those that look, and how they are set.
    pub fn iter(&self) -> impl Iterator<Item = (Arbiter, Setting)> + '_ {
        self.0.iter().map(|(arbiter, setting)| (*arbiter, *setting))
    }

    /// Whether this one looks.
    pub fn has(&self, arbiter: Arbiter) -> bool {
        self.0.contains_key(&arbiter)
    }

    /// Whether one of them can change a verdict.
    pub fn arbitrate(&self) -> bool {
        let mut settings = self.0.values();
        settings.any(|setting| setting.mode == Mode::Arbitrate)
    }

    /// What those that are on see, in the order of their names.
    pub(crate) fn look(
        &self,
        facts: &Facts<'_>,
        tool: Option<&ToolShape>,
        flagged: &BTreeSet<CalibrationClass>,
    ) -> Seen {
        let mut seen = Seen::default();
        for (arbiter, setting) in self.iter() {
            let Some(reason) = arbiter.look(facts, tool, flagged) else {
                continue;
            };
            let among = match setting.mode {
                Mode::Arbitrate => &mut seen.signals,
                Mode::Observe => &mut seen.observed,
            };
            among.push(Signal {
                arbiter: arbiter.as_str().to_owned(),
                severity: setting.severity,
                reason,
            });
        }
        seen
    }
}

fn is_consequential(facts: &Facts<'_>) -> bool {
    facts.contract.required_level >= Rung::L3
}

fn tool_sequence(facts: &Facts<'_>) -> Option<String> {
    let kind = StepKind::of(facts.contract);
    let Sequence { read, external } = facts.trail.completed_by(kind)?;
    let ago = |steps: u64| match steps {
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    Some(format!(
        "it writes, {} after something reached outside and {} after something was read",
        ago(external),
        ago(read)
    ))
}

fn calibration_flag(facts: &Facts<'_>, flagged: &BTreeSet<CalibrationClass>) -> Option<String> {
    if !is_consequential(facts) || flagged.is_empty() {
        return None;
    }
    let of_flagged = facts.dependencies.iter().find_map(|dependency| {
        let class = dependency.class.as_ref()?;
        flagged.contains(class).then_some((dependency, class))
    });
    let (dependency, class) = of_flagged?;
    Some(format!(
        "the decision rests on belief `{}` of class `{}`, whose confidence is not borne out by what came of it",
        dependency.belief,
        class.shown()
    ))
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
