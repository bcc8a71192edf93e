//! The gate: what a decision, a way to a clearance and a long session cost, against bare Cedar, the
//! bare log, and a session that has just begun.
//!
//! The two sides of a ratio are taken in turns, a small piece of one and then of the other, so that
//! both have the same neighbours.

mod calls;
mod clearance;
mod decision;
mod world;

pub(crate) use calls::{FEWEST, measure as calls};
pub(crate) use clearance::measure as clearance;
pub(crate) use decision::measure as decision;

use std::time::{Duration, Instant};

/// The least times of several tries: what things cost when nobody disturbs them.
struct Least<const N: usize>([Duration; N]);

impl<const N: usize> Least<N> {
    /// One try of each thing after the other, that many times; `things` are done in one try.
    fn of(tries: u32, things: u32, mut work: [&mut dyn FnMut() -> Duration; N]) -> Self {
        let mut least = [Duration::MAX; N];
        for _ in 0..tries {
            for (least, work) in least.iter_mut().zip(&mut work) {
                *least = (*least).min(work());
            }
        }
        Self(least.map(|time| time / things))
    }
}

/// How long something takes when it is done that many times.
fn repeated(times: u32, mut work: impl FnMut()) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        work();
    }
    started.elapsed()
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}
