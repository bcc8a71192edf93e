//! What the last calls of a long session cost, against the first ones of a session.

use std::time::{Duration, Instant};

use lodestar_guard::Session;
use lodestar_kernel::step::Steps;
use tokio::runtime::Runtime;

use super::world;
use crate::{Bound, Figure};

/// Calls that are compared.
const COMPARED: u64 = 1000;

/// Calls that make statements and caches of a new session warm.
const WARM_UP: u64 = 200;

/// Calls between two turns.
const TURN: u64 = 50;

const ROUNDS: u64 = 5;

/// Fewest calls of the long session.
pub(crate) const FEWEST: u64 = 2 * ROUNDS * COMPARED;

/// The long session's last thousands are taken in turns with the first thousand of new sessions, so
/// that both have the same neighbours; of several rounds, the best of each side counts.
pub(crate) fn measure(calls: u64) -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let runtime = world::runtime();
    let open = |name: &str| world::open(&runtime, &folder.path().join(name), Steps::default());
    let long = open("long");
    let mut number = 0;
    call(&runtime, &long, WARM_UP, &mut number);
    let began = call(&runtime, &long, COMPARED, &mut number);
    call(
        &runtime,
        &long,
        calls - number - ROUNDS * COMPARED,
        &mut number,
    );

    let (mut last, mut first) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        let new = open(&format!("new-{round}"));
        let mut fresh = 0;
        call(&runtime, &new, WARM_UP, &mut fresh);
        let (mut of_long, mut of_new) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..COMPARED / TURN {
            of_long += call(&runtime, &long, TURN, &mut number);
            of_new += call(&runtime, &new, TURN, &mut fresh);
        }
        (last, first) = (last.min(of_long), first.min(of_new));
        close(&runtime, &new);
    }
    assert_eq!(number, calls);
    close(&runtime, &long);
    let each = |time: Duration| time / u32::try_from(COMPARED).expect("a small number");
    let (last, first, began) = (each(last), each(first), each(began));
    vec![Figure {
        name: "session growth: last thousand ÷ first",
        value: super::ratio(last, first),
        bound: Bound::AtMost(1.1),
        detail: format!(
            "{calls} calls: {last:.1?} a call against {first:.1?}; its own first were {began:.1?}"
        ),
    }]
}

fn call(runtime: &Runtime, session: &Session, times: u64, number: &mut u64) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..times {
        *number += 1;
        let arguments = world::arguments(*number);
        let started = Instant::now();
        let reply = runtime.block_on(session.call("tool0", arguments));
        total += started.elapsed();
        assert!(reply.expect("the disk has room").ran());
    }
    total
}

fn close(runtime: &Runtime, session: &Session) {
    let closed = runtime.block_on(session.close("measured"));
    closed.expect("the disk has room");
}
