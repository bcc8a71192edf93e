//! The way of an L0 call from the agent's word to its clearance, against the least that somebody
//! who governs calls at all would do: one bare answer of Cedar, and one line in a log.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestar_guard::Session;
use lodestar_kernel::step::{Step, Steps};
use tokio::runtime::Runtime;

use super::world::{self, Bare};
use super::{Least, ratio, repeated};
use crate::{Bound, Figure, session};

const TRIES: u32 = 100;

/// Calls of one try.
const TURN: u32 = 50;

/// When the last call was cleared.
type Cleared = Arc<Mutex<Option<Instant>>>;

pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let runtime = world::runtime();
    let cleared = Cleared::default();
    let governed = world::open(&runtime, &folder.path().join("governed"), watch(&cleared));
    let bare = Bare::new(&world::policies(2), 0);
    assert_eq!(bare.len(), 10);
    let log = session::create(&folder.path().join("bare"), "bare");
    let actor = session::actor();
    let mut whole = Duration::MAX;
    let mut number = 0;
    let mut step = 0;
    let Least([way, answer, append]) = Least::of(
        TRIES,
        TURN,
        [
            &mut || {
                let (to_clear, all) = turn(&runtime, &governed, &cleared, &mut number);
                whole = whole.min(all);
                to_clear
            },
            &mut || repeated(TURN, || drop(black_box(bare.answer()))),
            &mut || {
                repeated(TURN, || {
                    step += 1;
                    session::append(&log, &actor, step);
                })
            },
        ],
    );
    let whole = whole / TURN;
    runtime
        .block_on(governed.close("measured"))
        .expect("the disk has room");
    vec![
        Figure {
            name: "propose to clear ÷ bare answer and append",
            value: ratio(way, answer + append),
            bound: Bound::AtMost(3.0),
            detail: format!("L0, 10 policies: {way:.1?} against {answer:.1?} and {append:.1?}"),
        },
        Figure {
            name: "whole call ÷ bare answer and append",
            value: ratio(whole, answer + append),
            bound: Bound::None,
            detail: format!("with its result taken into a SQLite store: {whole:.1?}"),
        },
    ]
}

fn watch(cleared: &Cleared) -> Steps {
    let cleared = Arc::clone(cleared);
    Steps::tell(move |step| {
        if step == Step::Durable {
            let now = Instant::now();
            *cleared.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
    })
}

/// Some calls: how long until each was cleared, and how long they took whole.
fn turn(
    runtime: &Runtime,
    session: &Session,
    cleared: &Cleared,
    number: &mut u64,
) -> (Duration, Duration) {
    let mut to_clear = Duration::ZERO;
    let mut whole = Duration::ZERO;
    for _ in 0..TURN {
        *number += 1;
        let arguments = world::arguments(*number);
        let started = Instant::now();
        let reply = runtime.block_on(session.call("tool0", arguments));
        whole += started.elapsed();
        assert!(reply.expect("the disk has room").ran());
        let at = cleared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        to_clear += at.expect("what ran was cleared") - started;
    }
    (to_clear, whole)
}
