//! `sentinel.alerted@1`: what a sentinel saw, recorded before the verdict on the action it saw it in.

use std::borrow::Cow;

use lodestar_core::id::ActionId;
use lodestar_core::ladder::Severity;
use serde::{Deserialize, Serialize};

use super::Mode;
use crate::judgement::{Judgement, Signal};

/// One alert, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert<'a> {
    /// The action it is about.
    pub action: ActionId,
    /// The sentinel's name.
    pub sentinel: Cow<'a, str>,
    /// How grave.
    pub severity: Severity,
    /// Whether it has a say in the verdict; left out where it has.
    #[serde(default, skip_serializing_if = "has_a_say")]
    pub mode: Mode,
    /// What it saw, in words, inert.
    pub saw: Cow<'a, str>,
}

fn has_a_say(mode: &Mode) -> bool {
    *mode == Mode::Arbitrate
}

impl<'a> Alert<'a> {
    /// What the sentinels saw in an action, in the order in which it is recorded.
    pub fn of(judgement: &'a Judgement) -> impl Iterator<Item = Self> + 'a {
        let alert = |mode: Mode| {
            move |signal: &'a Signal| Self {
                action: judgement.action,
                sentinel: Cow::Borrowed(signal.arbiter.as_str()),
                severity: signal.severity,
                mode,
                saw: Cow::Borrowed(signal.reason.as_str()),
            }
        };
        let arbitrating = judgement.signals.iter().map(alert(Mode::Arbitrate));
        arbitrating.chain(judgement.observed.iter().map(alert(Mode::Observe)))
    }
}
