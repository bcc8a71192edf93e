//! What is left of a gate out of which a harness takes defences, to see that they are missed.
//!
//! A gate of a session in earnest has all of them, and none of this costs it more than a look at an empty set.

use lodestar_core::defence::Defence;
use lodestar_core::ladder::{CedarAnswer, Rung, Say, Verdict};

use super::Gate;
use crate::facts::Facts;
use crate::judgement::{Judgement, Signal};

impl Gate {
    /// For a harness that takes defences out. Without
    /// - [`Defence::Gate`], everything may run;
    /// - [`Defence::LadderFloor`], L4 and L5 are rungs like L3;
    /// - [`Defence::ForbidsStand`], a forbid at L4 asks a human;
    /// - [`Defence::DefaultDeny`], what no policy speaks of runs;
    /// - [`Defence::EvaluationErrors`], what cannot be evaluated is left out;
    /// - [`Defence::Sentinels`], no arbiter of the gate's own looks;
    /// - [`Defence::CalibrationFlags`], nobody hears which classes were flagged;
    /// - [`Defence::ArbitersOnlyTighten`], the last that anybody saw counts, and nothing before it.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        self
    }

    pub(super) fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// The verdict of a gate that lacks something.
    pub(super) fn judge_without(&self, facts: &Facts<'_>, heard: &[Signal]) -> Judgement {
        let mut contract = facts.contract.clone();
        if self.lacks(Defence::LadderFloor) {
            contract.required_level = contract.required_level.min(Rung::L3);
        }
        let lowered = Facts {
            contract: &contract,
            ..*facts
        };
        let mut judgement = self.weigh(&lowered, heard);
        if self.lacks(Defence::Gate) {
            judgement.verdict = Verdict::Allow;
        }
        judgement
    }

    /// The policies' answer, as it counts.
    pub(super) fn counted(&self, rung: Rung, answer: CedarAnswer) -> CedarAnswer {
        const SILENT: CedarAnswer = CedarAnswer {
            run: Say::Silent,
            ask: Say::Silent,
        };
        if self.lacks(Defence::ForbidsStand) && rung == Rung::L4 && answer.is_forbidden() {
            return SILENT;
        }
        if self.lacks(Defence::DefaultDeny) && answer == SILENT {
            return CedarAnswer::PERMITTED;
        }
        answer
    }
}
