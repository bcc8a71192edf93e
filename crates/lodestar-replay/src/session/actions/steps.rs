//! The steps of a session, of which some may be redacted.

use std::collections::VecDeque;

use lodestar_policy::{SEQUENCE_STEPS, StepKind, Trail};

/// More redacted steps than this within one sequence, and nobody can tell what was before.
const MOST_UNKNOWN: usize = 3;

/// The steps so far.
#[derive(Default)]
pub(super) struct Steps {
    /// As if what is redacted was nothing.
    trail: Trail,
    /// The last of them, as many as a sequence can span with what comes next; none for redacted ones.
    last: VecDeque<Option<StepKind>>,
}

/// The steps before an action.
pub(super) enum Before {
    Known(Trail),
    OneOf(Vec<Trail>),
    Unknown,
}

impl Before {
    /// What may have been; none where that is anything.
    pub(super) fn possible(&self) -> Option<&[Trail]> {
        match self {
            Self::Known(trail) => Some(std::slice::from_ref(trail)),
            Self::OneOf(trails) => Some(trails),
            Self::Unknown => None,
        }
    }
}

impl Steps {
    /// One step more; none for one of which nobody can tell what it was.
    pub(super) fn step(&mut self, kind: Option<StepKind>) {
        self.trail.step(kind.unwrap_or(StepKind::Neither));
        self.last.push_back(kind);
        while self.last.len() as u64 >= SEQUENCE_STEPS {
            self.last.pop_front();
        }
    }

    /// What lies before the next. A sequence spans no more steps than are kept, so what a redacted one was
    /// matters no longer when that many came after it.
    pub(super) fn so_far(&self) -> Before {
        match self.last.iter().filter(|kind| kind.is_none()).count() {
            0 => Before::Known(self.trail),
            1..=MOST_UNKNOWN => Before::OneOf(self.trails()),
            _ => Before::Unknown,
        }
    }

    fn trails(&self) -> Vec<Trail> {
        let mut trails = vec![Trail::default()];
        for kind in &self.last {
            // What neither reads nor goes out is all the same to a sequence.
            let kinds: &[StepKind] = match kind {
                Some(kind) => &[*kind],
                None => &[StepKind::Neither, StepKind::Read, StepKind::External],
            };
            let longer = trails.iter().flat_map(|trail| {
                kinds.iter().map(|kind| {
                    let mut longer = *trail;
                    longer.step(*kind);
                    longer
                })
            });
            let mut found: Vec<Trail> = Vec::new();
            for one in longer {
                if !found.contains(&one) {
                    found.push(one);
                }
            }
            trails = found;
        }
        trails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(kinds: &[Option<StepKind>]) -> Steps {
        let mut steps = Steps::default();
        kinds.iter().for_each(|kind| steps.step(*kind));
        steps
    }

    #[test]
    fn a_redacted_step_is_anything_until_no_sequence_reaches_it() {
        let (read, out) = (Some(StepKind::Read), Some(StepKind::External));
        let known = steps(&[read, out]);
        assert!(matches!(known.so_far(), Before::Known(_)));
        let mut one = steps(&[read, None]);
        let before = one.so_far();
        let possible = before.possible().unwrap();
        assert!(possible.contains(known.so_far().possible().unwrap().first().unwrap()));
        assert_eq!(possible.len(), 3);
        for _ in 2..SEQUENCE_STEPS {
            one.step(Some(StepKind::Write));
            assert!(matches!(one.so_far(), Before::OneOf(_)));
        }
        one.step(Some(StepKind::Write));
        assert!(matches!(one.so_far(), Before::Known(_)));
        assert!(
            steps(&[None, None, None, None])
                .so_far()
                .possible()
                .is_none()
        );
    }
}
