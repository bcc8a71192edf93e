//! From the policies' answer to a verdict, step by step.

use std::collections::BTreeSet;

use lodestar_core::ladder::{CedarAnswer, Rung, Say, Verdict, floor};
use lodestar_core::name::PolicyId;

use super::Answer;
use crate::judgement::{Tightened, Tightener};

/// A verdict on its way, with each step that made it stricter.
pub(super) struct Ladder {
    pub(super) verdict: Verdict,
    pub(super) tightened: Vec<Tightened>,
}

impl Ladder {
    /// What the policies alone say. Where the ladder itself is milder (silence on L4 asks a human),
    /// it starts from there: that is no step.
    pub(super) fn start(rung: Rung, answer: CedarAnswer) -> Self {
        let plain = floor(Rung::L0, answer);
        Self {
            verdict: plain.min(floor(rung, answer)),
            tightened: Vec::new(),
        }
    }

    pub(super) fn climb(&mut self, by: Tightener, at_least: Verdict) {
        let (from, to) = (self.verdict, self.verdict.tighten(at_least));
        if to != from {
            self.verdict = to;
            self.tightened.push(Tightened { by, from, to });
        }
    }
}

/// The policies that decided: those of the question, or questions, that the answer came from.
pub(super) fn deciding(rung: Rung, run: Answer, ask: Answer) -> Vec<PolicyId> {
    let forbidden = |answer: &Answer| answer.say == Say::Forbid;
    let mut ids = BTreeSet::new();
    if rung == Rung::L4 && (forbidden(&run) || forbidden(&ask)) {
        for answer in [run, ask].into_iter().filter(forbidden) {
            ids.extend(answer.reasons);
        }
    } else if rung == Rung::L4 && ask.say == Say::Permit {
        ids = ask.reasons;
    } else if run.say == Say::Permit {
        ids = run.reasons;
    } else {
        // A forbid to run makes a permit to ask count; silence to ask makes any forbid count.
        ids.extend(run.reasons);
        ids.extend(ask.reasons);
    }
    ids.into_iter().collect()
}
