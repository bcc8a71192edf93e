//! What the last beliefs of a large store cost, against the first.

use std::path::Path;
use std::time::Duration;

use lodestar_firewall::event::FirewallEvent;
use lodestar_firewall::store::MemoryStore;

use super::world::{self, Weather, World};
use super::{Rounds, SMALL, timed};
use crate::{Bound, Figure};

const ROUNDS: u64 = 5;

/// Results that make statements and caches of a new store warm.
const WARM_UP: u64 = 100;

/// Results between two turns.
const TURN: u64 = 50;

/// Results that one transaction keeps while the large store is filled.
const FILL: u64 = 500;

pub(crate) fn measure(beliefs: u64) -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let weather = Weather::new();
    let mut pages = 0..;
    let path = folder.path().join("large");
    // The last round ends with the store as large as asked for.
    let filled = fill(&path, beliefs - ROUNDS * SMALL, &weather, &mut pages);
    let mut large = World::over(Box::new(world::sqlite(&path)), &weather);
    large.tape.skip(filled);
    intake(
        &mut large,
        &weather,
        &mut pages,
        WARM_UP,
        &mut Duration::default(),
    );

    let mut rounds = Rounds::default();
    for round in 0..ROUNDS {
        let path = folder.path().join(format!("small-{round}"));
        let mut small = World::over(Box::new(world::sqlite(&path)), &weather);
        intake(
            &mut small,
            &weather,
            &mut pages,
            WARM_UP,
            &mut Duration::default(),
        );
        let mut times = (Duration::ZERO, Duration::ZERO);
        let mut taken = 0;
        while taken < SMALL {
            taken += intake(&mut large, &weather, &mut pages, TURN, &mut times.0);
            intake(&mut small, &weather, &mut pages, TURN, &mut times.1);
        }
        rounds.0.push(times);
    }
    let (last, first) = rounds.each(SMALL);
    vec![Figure {
        name: "firewall growth: last beliefs ÷ first",
        value: rounds.ratio(),
        bound: Bound::AtMost(1.2),
        detail: format!("{SMALL} each, of {beliefs}: {last:.1?} a belief against {first:.1?}"),
    }]
}

/// Takes in results, and gives the number of beliefs that came of them.
fn intake(
    world: &mut World,
    weather: &Weather,
    numbers: &mut impl Iterator<Item = u64>,
    results: u64,
    time: &mut Duration,
) -> u64 {
    let numbers = numbers
        .by_ref()
        .take(usize::try_from(results).expect("few"));
    let pages: Vec<_> = numbers.map(|n| world::page(weather, n)).collect();
    timed(time, || {
        let outcomes = pages.iter().map(|page| world.take_in(page));
        outcomes.map(|one| one.beliefs().len() as u64).sum()
    })
}

/// Fills a new store with what the same kind of results gives, many to a transaction; gives the
/// number of events.
fn fill(
    path: &Path,
    beliefs: u64,
    weather: &Weather,
    pages: &mut impl Iterator<Item = u64>,
) -> u64 {
    let keys = world::keys();
    let mut store = world::sqlite(path);
    let (mut events, mut filled) = (0, 0);
    while filled < beliefs {
        // Nothing of one page says anything about another, so a store with some of them will do.
        let mut beside = World::over(Box::new(MemoryStore::new()), weather);
        beside.tape.skip(events);
        let batch: Vec<_> = pages
            .by_ref()
            .take(FILL as usize)
            .map(|n| beside.take_in(&world::page(weather, n)))
            .map(|outcome| (FirewallEvent::Adopted(outcome.adopted), outcome.at))
            .collect();
        world::keep(&mut store, &keys, &batch);
        events += FILL;
        for (event, _) in &batch {
            if let FirewallEvent::Adopted(adopted) = event {
                filled += adopted.beliefs.len() as u64;
            }
        }
    }
    events
}
