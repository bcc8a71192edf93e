//! Adopting what a tool returned, end to end, against bare inserts of the rows that came of it.

use std::time::Duration;

use super::bare::{self, Batch, Inserts};
use super::world::{self, Weather, World};
use super::{Rounds, timed};
use crate::{Bound, Figure};

const ROUNDS: usize = 9;

/// Results of a round. Both stores carry their journal over several times in each.
const RESULTS: u64 = 1000;

/// Results between two turns.
const TURN: u64 = 50;

pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let weather = Weather::new();
    let keys = world::keys();
    let store = world::sqlite(&folder.path().join("firewall"));
    let mut world = World::over(Box::new(store), &weather);
    let path = folder.path().join("bare");
    drop(world::sqlite(&path));
    let connection = bare::open(&path);
    let mut inserts = Inserts::prepare(&connection);

    let mut turn = |from: u64, times: &mut (Duration, Duration)| {
        let pages: Vec<_> = (from..from + TURN)
            .map(|n| world::page(&weather, n))
            .collect();
        let outcomes: Vec<_> = timed(&mut times.0, || {
            pages.iter().map(|page| world.take_in(page)).collect()
        });
        let batches: Vec<_> = outcomes.iter().map(|one| Batch::of(one, &keys)).collect();
        timed(&mut times.1, || {
            let done = batches.iter().try_for_each(|batch| inserts.run(batch));
            done.expect("the disk has room");
        });
        outcomes
            .iter()
            .map(|one| one.beliefs().len() as u64)
            .sum::<u64>()
    };

    let mut from = 0;
    let mut rows = 0;
    let mut rounds = Rounds::default();
    for round in 0..=ROUNDS {
        let mut times = (Duration::ZERO, Duration::ZERO);
        rows = 0;
        for _ in 0..RESULTS / TURN {
            rows += turn(from, &mut times);
            from += TURN;
        }
        // The first warms up.
        if round > 0 {
            rounds.0.push(times);
        }
    }
    let (firewall, bare) = rounds.each(RESULTS);
    vec![Figure {
        name: "firewall adopt ÷ bare inserts",
        value: rounds.ratio(),
        bound: Bound::AtMost(3.0),
        detail: format!(
            "results of 1 KiB, {:.1} rows each: {firewall:.1?} against {bare:.1?}",
            rows as f64 / RESULTS as f64
        ),
    }]
}
