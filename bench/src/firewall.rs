//! The memory firewall over SQLite, against the bare statements that it runs there.
//!
//! All ratios are of times taken in turns, a small piece of one and then of the other, so that both
//! have the same neighbours; of several rounds, the median counts.

mod adopt;
mod bare;
mod growth;
mod retrieval;
mod world;

use std::time::{Duration, Instant};

pub(crate) use adopt::measure as adopt;
pub(crate) use growth::measure as growth;
pub(crate) use retrieval::measure as retrieval;

/// Beliefs of the small stores that large ones are compared with.
const SMALL: u64 = 10_000;

/// Fewest beliefs of the large stores.
pub(crate) const FEWEST: u64 = 10 * SMALL;

/// Two times of each round: of what is measured, and of what it is measured against.
#[derive(Default)]
struct Rounds(Vec<(Duration, Duration)>);

impl Rounds {
    fn ratio(&self) -> f64 {
        median(
            self.0
                .iter()
                .map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()),
        )
    }

    /// Both times of the middle round, over a number of things done.
    fn each(&self, things: u64) -> (Duration, Duration) {
        let middle = |of: fn(&(Duration, Duration)) -> Duration| {
            let seconds = median(self.0.iter().map(|round| of(round).as_secs_f64()));
            Duration::from_secs_f64(seconds / things as f64)
        };
        (middle(|round| round.0), middle(|round| round.1))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn timed<T>(total: &mut Duration, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    *total += started.elapsed();
    done
}
