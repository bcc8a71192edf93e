//! The steps of a session, kept in the order of their lines in the log.
//!
//! What is judged after which steps has to be what the log says: a clearance and its step, and a proposal and
//! what it is judged after, are one. Where no sentinel looks at sequences, nothing is kept and nobody waits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lodestar_policy::{StepKind, Trail};

#[derive(Debug)]
pub(super) struct SharedTrail(Option<Mutex<Trail>>);

impl SharedTrail {
    pub(super) fn new(so_far: Option<Trail>) -> Self {
        Self(so_far.map(Mutex::new))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Trail>> {
        let trail = self.0.as_ref()?;
        Some(trail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a proposal; with it comes what stands before it.
    pub(super) fn before<T, E>(
        &self,
        record: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, Trail), E> {
        let trail = self.lock();
        let receipt = record()?;
        Ok((receipt, trail.as_deref().copied().unwrap_or_default()))
    }

    /// Records a clearance: one step more.
    pub(super) fn step<T, E>(
        &self,
        kind: StepKind,
        record: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut trail = self.lock();
        let receipt = record()?;
        if let Some(trail) = trail.as_deref_mut() {
            trail.step(kind);
        }
        Ok(receipt)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;

    /// A line of a log that takes its time to be written.
    enum Line {
        Proposed(usize),
        Cleared(StepKind),
    }

    fn write(log: &Mutex<Vec<Line>>, line: Line) -> Result<(), Infallible> {
        std::thread::sleep(Duration::from_micros(300));
        log.lock().unwrap().push(line);
        Ok(())
    }

    #[test]
    fn what_a_proposal_is_judged_after_is_what_stands_before_it() {
        let kinds = [StepKind::Read, StepKind::External, StepKind::Write];
        let (trail, log) = (SharedTrail::new(Some(Trail::default())), Mutex::default());
        let seen: Mutex<Vec<(usize, Trail)>> = Mutex::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (trail, log, seen) = (&trail, &log, &seen);
                scope.spawn(move || {
                    for at in 0..25 {
                        let id = thread * 25 + at;
                        let Ok(((), found)) = trail.before(|| write(log, Line::Proposed(id)));
                        seen.lock().unwrap().push((id, found));
                        let kind = kinds[(thread + at) % 3];
                        let Ok(()) = trail.step(kind, || write(log, Line::Cleared(kind)));
                    }
                });
            }
        });
        let mut follows = Trail::default();
        let seen = seen.into_inner().unwrap();
        for line in log.into_inner().unwrap() {
            match line {
                Line::Cleared(kind) => follows.step(kind),
                Line::Proposed(id) => {
                    let found = seen.iter().find(|(one, _)| *one == id).unwrap().1;
                    assert_eq!(found, follows);
                }
            }
        }
    }

    #[test]
    fn where_nobody_looks_nothing_is_kept_and_what_failed_is_no_step() {
        let unwatched = SharedTrail::new(None);
        let Ok(()) = unwatched.step(StepKind::Read, || Ok::<_, Infallible>(()));
        let Ok(((), found)) = unwatched.before(|| Ok::<_, Infallible>(()));
        assert_eq!(found, Trail::default());
        let trail = SharedTrail::new(Some(Trail::default()));
        assert_eq!(
            trail.step(StepKind::Read, || Err::<(), _>("full")),
            Err("full")
        );
        let Ok(((), found)) = trail.before(|| Ok::<_, Infallible>(()));
        assert_eq!(found, Trail::default());
    }
}
