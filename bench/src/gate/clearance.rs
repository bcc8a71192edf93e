//! The way of an L0 call from the agent's word to its clearance, against the least that somebody
//! who governs calls at all would do: one bare answer of Cedar, and one line in a log.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestar_guard::Session;
use lodestar_kernel::step::{Step, Steps};
use tokio::runtime::Runtime;

use super::world::{self, Bare};
use super::{ratio, repeated};
use crate::{Bound, Figure, session};

const TRIES: u32 = 100;

/// Calls of one try.
const TURN: u32 = 50;

/// When the last call made each of these steps.
type Made = Arc<Mutex<[Option<Instant>; STEPS.len()]>>;

/// The steps up to the clearance that are told apart.
const STEPS: [Step; 4] = [Step::Decided, Step::Proposed, Step::Judged, Step::Durable];

pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let runtime = world::runtime();
    let made = Made::default();
    let governed = world::open(&runtime, &folder.path().join("governed"), watch(&made));
    let bare = Bare::new(&world::policies(2), 0);
    assert_eq!(bare.len(), 10);
    let log = session::create(&folder.path().join("bare"), "bare");
    let actor = session::actor();
    let mut number = 0;
    // One call and then one of each bare thing: after a call, caches are as cold for both.
    let mut turn = || {
        let mut times = Times::default();
        for _ in 0..TURN {
            number += 1;
            call(&runtime, &governed, &made, number, &mut times);
            times.answer += repeated(1, || drop(black_box(bare.answer())));
            times.append += repeated(1, || drop(session::append(&log, &actor, number)));
        }
        times
    };
    let first = turn();
    let best = (1..TRIES).fold(first, |best, _| best.min(turn()));
    let Times {
        steps: [decided, proposed, judged, cleared],
        whole,
        answer,
        append,
    } = best.each();
    let closed = runtime.block_on(governed.close("measured"));
    closed.expect("the disk has room");
    vec![
        Figure {
            name: "propose to clear ÷ bare answer and append",
            value: ratio(cleared - decided, answer + append),
            bound: Bound::AtMost(3.0),
            detail: format!(
                "L0, 10 policies: {:.1?} (proposed after {:.1?}, judged after {:.1?}) against \
                 {answer:.1?} and {append:.1?}",
                cleared - decided,
                proposed - decided,
                judged - decided,
            ),
        },
        Figure {
            name: "call to clear ÷ bare answer and append",
            value: ratio(cleared, answer + append),
            bound: Bound::None,
            detail: format!(
                "with the decision that explains it: {cleared:.1?}, decided after {decided:.1?}"
            ),
        },
        Figure {
            name: "whole call ÷ bare answer and append",
            value: ratio(whole, answer + append),
            bound: Bound::None,
            detail: format!("with its result taken into a SQLite store: {whole:.1?}"),
        },
    ]
}

/// How long some calls took from their beginning, to each step and whole; and the bare things
/// between them.
#[derive(Clone, Copy, Default)]
struct Times {
    steps: [Duration; STEPS.len()],
    whole: Duration,
    answer: Duration,
    append: Duration,
}

impl Times {
    fn min(self, other: Self) -> Self {
        Self {
            steps: std::array::from_fn(|at| self.steps[at].min(other.steps[at])),
            whole: self.whole.min(other.whole),
            answer: self.answer.min(other.answer),
            append: self.append.min(other.append),
        }
    }

    /// Of one call.
    fn each(self) -> Self {
        Self {
            steps: self.steps.map(|time| time / TURN),
            whole: self.whole / TURN,
            answer: self.answer / TURN,
            append: self.append / TURN,
        }
    }
}

fn watch(made: &Made) -> Steps {
    let made = Arc::clone(made);
    Steps::tell(move |step| {
        if let Some(at) = STEPS.iter().position(|one| *one == step) {
            let now = Instant::now();
            made.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(now);
        }
    })
}

fn call(runtime: &Runtime, session: &Session, made: &Made, number: u64, times: &mut Times) {
    let arguments = world::arguments(number);
    let started = Instant::now();
    let reply = runtime.block_on(session.call("tool0", arguments));
    times.whole += started.elapsed();
    assert!(reply.expect("the disk has room").ran());
    let made = std::mem::take(&mut *made.lock().unwrap_or_else(PoisonError::into_inner));
    for (time, made) in times.steps.iter_mut().zip(made) {
        *time += made.expect("what ran made every step") - started;
    }
}
