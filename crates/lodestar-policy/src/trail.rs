//! The steps of a session, as far as a sequence of them can be seen: a summary of fixed size.
//!
//! A step is an action that was cleared: it ran, or was about to. Steps are counted in the order in which
//! their clearances stand in the log, and an action is judged after those that stand before its proposal.
//! So the log alone says what was seen, whoever ran side by side.

use lodestar_core::contract::{BlastRadius, Contract};
use lodestar_core::ladder::Rung;

/// Steps that a sequence may span, its first and its last included: long enough for a read, a message and a
/// write with some work between them, short enough that an afternoon of ordinary work is not one sequence.
pub const SEQUENCE_STEPS: u64 = 16;

/// What an action does, by its contract. Each is exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// It only looks: L0, wherever at.
    Read,
    /// Its effect reaches beyond the project: L4, or a lower rung with a blast radius that is external.
    External,
    /// It changes something here: L2 or L3, and no further than the project.
    Write,
    /// None of these: it suggests, or does not run at all.
    Neither,
}

impl StepKind {
    /// What an action under this contract does.
    pub fn of(contract: &Contract) -> Self {
        match (contract.required_level, contract.blast_radius) {
            (Rung::L0, _) => Self::Read,
            (Rung::L5, _) => Self::Neither,
            (Rung::L4, _) | (_, BlastRadius::External) => Self::External,
            (Rung::L1, _) => Self::Neither,
            (Rung::L2 | Rung::L3, _) => Self::Write,
        }
    }
}

/// The steps so far. Of all reads that something external followed, only the latest matters: whatever it is
/// too long ago for, every other is too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trail {
    steps: u64,
    read: Option<u64>,
    /// The latest read that something external came after, and the latest external step.
    went_out: Option<(u64, u64)>,
}

/// A read, something external, and the write that is proposed, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// How many steps before the write the read was.
    pub(crate) read: u64,
    /// How many steps before it the external one was.
    pub(crate) external: u64,
}

impl Trail {
    /// One step more.
    pub fn step(&mut self, kind: StepKind) {
        let this = self.steps;
        match kind {
            StepKind::Read => self.read = Some(this),
            StepKind::External => {
                let pair = self.read.map(|read| (read, this));
                self.went_out = pair.or(self.went_out);
            }
            StepKind::Write | StepKind::Neither => {}
        }
        self.steps += 1;
    }

    /// What an action of this kind would complete, as the next step.
    pub(crate) fn completed_by(&self, kind: StepKind) -> Option<Sequence> {
        if kind != StepKind::Write {
            return None;
        }
        let (read, external) = self.went_out?;
        let sequence = Sequence {
            read: self.steps - read,
            external: self.steps - external,
        };
        (sequence.read < SEQUENCE_STEPS).then_some(sequence)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_kind() -> impl Strategy<Value = StepKind> {
        prop::sample::select(&[
            StepKind::Read,
            StepKind::External,
            StepKind::Write,
            StepKind::Neither,
        ])
    }

    /// The rule itself, over the whole list.
    fn in_full(steps: &[StepKind]) -> bool {
        let from = steps.len().saturating_sub(SEQUENCE_STEPS as usize - 1);
        let window = &steps[from..];
        let read = window.iter().position(|kind| *kind == StepKind::Read);
        read.is_some_and(|read| window[read..].contains(&StepKind::External))
    }

    proptest! {
        #[test]
        fn the_summary_says_what_the_whole_list_says(
            steps in prop::collection::vec(any_kind(), 0..60)
        ) {
            let mut trail = Trail::default();
            for kind in &steps {
                trail.step(*kind);
            }
            let seen = trail.completed_by(StepKind::Write);
            prop_assert_eq!(seen.is_some(), in_full(&steps));
            if let Some(Sequence { read, external }) = seen {
                let back = |ago: u64| steps[steps.len() - ago as usize];
                prop_assert_eq!(back(read), StepKind::Read);
                prop_assert_eq!(back(external), StepKind::External);
                prop_assert!(external < read);
            }
            for other in [StepKind::Read, StepKind::External, StepKind::Neither] {
                prop_assert_eq!(trail.completed_by(other), None);
            }
        }
    }
}
