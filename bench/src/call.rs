//! A whole governed call, from the arguments to the reply: a tool that echoes, a kibibyte of text back,
//! policy, full logging, and the firewall over SQLite.

pub(crate) mod world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lodestar_guard::Session;
use rustix::time::{ClockId, Timespec, clock_gettime};
use tokio::runtime::Runtime;
use world::Echo;

use crate::{Bound, Figure};

/// What comes back.
const CONTENT: usize = 1024;

/// Calls in flight at a time.
const WINDOW: usize = 64;

/// Calls that make statements and caches warm.
const WARM_UP: u64 = 1000;

/// Calls that are compared, and over which percentiles are taken.
const COMPARED: u64 = 1000;

/// Between two calls of an agent that waits for each; what goes on behind a call is over then.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) fn measure(calls: u64) -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let runtime = world::runtime();
    // First, while the process is small.
    let mut figures = many(&runtime, &folder.path().join("many"), calls);
    figures.extend(alone(&runtime, &folder.path().join("alone")));
    figures.extend(again(&runtime, &folder.path().join("again")));
    figures.extend(together(&runtime, &folder.path().join("together")));
    figures
}

/// One call after the other, each with some time behind it.
fn alone(runtime: &Runtime, folder: &Path) -> Vec<Figure> {
    let session = world::open(runtime, folder);
    let mut number = 0;
    in_turn(runtime, &session, WARM_UP, &mut number);
    let paced = || {
        std::thread::sleep(PAUSE);
        number += 1;
        timed(runtime, &session, &world::other(number))
    };
    let (p50, p99) = percentiles(std::iter::repeat_with(paced).take(COMPARED as usize));
    let flat_out = in_turn(runtime, &session, 10 * COMPARED, &mut 1_000_000);
    let (f50, f99) = percentiles(flat_out.into_iter());
    close(runtime, &session);
    vec![
        micros("a call: p50, with pauses", p50, None),
        micros("a call: p99, with pauses", p99, None),
        micros("a call: p50, back to back", f50, Some(110.0)),
        micros("a call: p99, back to back", f99, None),
    ]
}

/// What was read a moment ago is sent again, so that each call rests on the one before.
fn again(runtime: &Runtime, folder: &Path) -> Vec<Figure> {
    let session = world::open(runtime, folder);
    let same = world::text(0);
    let mut times: Vec<_> = (0..WARM_UP + COMPARED)
        .map(|_| timed(runtime, &session, &same))
        .collect();
    let (p50, p99) = percentiles(times.drain(WARM_UP as usize..));
    close(runtime, &session);
    vec![
        micros("a call on what was just read: p50", p50, None),
        micros("a call on what was just read: p99", p99, None),
    ]
}

/// Many calls in flight, as fast as they go.
fn together(runtime: &Runtime, folder: &Path) -> Vec<Figure> {
    let session = world::open(runtime, folder);
    in_turn(runtime, &session, WARM_UP, &mut 0);
    let best = (0..3)
        .map(|round| in_flight(runtime, &session, 1_000_000 * (round + 1), 20 * COMPARED))
        .max_by(|a, b| a.rate.total_cmp(&b.rate))
        .expect("there are three");
    close(runtime, &session);
    vec![
        Figure {
            name: "calls a second, 64 in flight",
            value: best.rate,
            bound: Bound::AtLeast(10_500.0),
            detail: format!("{WINDOW} at a time on one thread, beliefs and all"),
        },
        micros("processor time of the caller's thread", best.caller, None),
        micros(
            "processor time behind it, per call",
            best.behind,
            Some(95.0),
        ),
    ]
}

/// A long session: what the last calls cost, and what each leaves behind.
fn many(runtime: &Runtime, folder: &Path, calls: u64) -> Vec<Figure> {
    let at_start = resident();
    let session = world::open(runtime, folder);
    let opened = resident();
    let mut number = 0;
    in_turn(runtime, &session, COMPARED, &mut number);
    let (log, memory) = (log_bytes(folder), resident());
    let second = in_turn(runtime, &session, COMPARED, &mut number);
    while number < calls - COMPARED {
        in_turn(
            runtime,
            &session,
            COMPARED.min(calls - COMPARED - number),
            &mut number,
        );
    }
    let last = in_turn(runtime, &session, COMPARED, &mut number);
    let grown = resident().saturating_sub(memory);
    let (second, _) = percentiles(second.into_iter());
    let (last, _) = percentiles(last.into_iter());
    close(runtime, &session);
    let since = (calls - COMPARED) as f64;
    let log = (log_bytes(folder) - log) as f64 / since - CONTENT as f64;
    vec![
        Figure {
            name: "last thousand ÷ second thousand",
            value: last.as_secs_f64() / second.as_secs_f64(),
            bound: Bound::AtMost(1.1),
            detail: format!("{calls} calls: {last:.1?} a call against {second:.1?}"),
        },
        Figure {
            name: "log bytes a call, beyond its content",
            value: log,
            bound: Bound::AtMost(2560.0),
            detail: format!("{CONTENT} bytes of content"),
        },
        Figure {
            name: "resident bytes a call",
            value: grown as f64 / since,
            bound: Bound::AtMost(200.0),
            detail: format!(
                "{} KiB before the session, {} KiB opened, {} KiB more at the end",
                at_start >> 10,
                opened >> 10,
                grown >> 10
            ),
        },
    ]
}

fn micros(name: &'static str, time: Duration, at_most: Option<f64>) -> Figure {
    Figure {
        name,
        value: time.as_secs_f64() * 1e6,
        bound: at_most.map_or(Bound::None, Bound::AtMost),
        detail: "microseconds".to_owned(),
    }
}

fn percentiles(times: impl Iterator<Item = Duration>) -> (Duration, Duration) {
    let mut times: Vec<_> = times.collect();
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn timed(runtime: &Runtime, session: &Session, text: &str) -> Duration {
    let arguments = world::arguments(text);
    let started = Instant::now();
    let reply = runtime.block_on(session.call(Echo::NAME, arguments));
    let time = started.elapsed();
    assert!(reply.expect("the disk has room").ran());
    time
}

fn in_turn(runtime: &Runtime, session: &Session, calls: u64, number: &mut u64) -> Vec<Duration> {
    let one = || {
        *number += 1;
        timed(runtime, session, &world::other(*number))
    };
    std::iter::repeat_with(one).take(calls as usize).collect()
}

/// What came of calls in flight.
struct Flight {
    rate: f64,
    caller: Duration,
    behind: Duration,
}

fn in_flight(runtime: &Runtime, session: &Session, from: u64, calls: u64) -> Flight {
    let next = Arc::new(AtomicU64::new(0));
    let (thread, process) = (
        spent(ClockId::ThreadCPUTime),
        spent(ClockId::ProcessCPUTime),
    );
    let started = Instant::now();
    runtime.block_on(async {
        let mut flying = tokio::task::JoinSet::new();
        for _ in 0..WINDOW {
            let (session, next) = (session.clone(), Arc::clone(&next));
            flying.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        return;
                    }
                    let arguments = world::arguments(&world::other(from + number));
                    let reply = session.call(Echo::NAME, arguments).await;
                    assert!(reply.expect("the disk has room").ran());
                }
            });
        }
        while let Some(done) = flying.join_next().await {
            done.expect("no call panics");
        }
        // Whatever is still to be believed is believed then.
        session.context(None, 1).await.expect("a context");
    });
    let time = started.elapsed();
    let caller = spent(ClockId::ThreadCPUTime) - thread;
    let all = spent(ClockId::ProcessCPUTime) - process;
    let each = |time: Duration| time / u32::try_from(calls).expect("a small number");
    Flight {
        rate: calls as f64 / time.as_secs_f64(),
        caller: each(caller),
        behind: each(all - caller),
    }
}

fn spent(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Duration::new(
        u64::try_from(tv_sec).unwrap_or_default(),
        u32::try_from(tv_nsec).unwrap_or_default(),
    )
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

/// Bytes of all files below the log.
fn log_bytes(folder: &Path) -> u64 {
    fn below(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let bytes = entries.map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => below(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        });
        bytes.sum()
    }
    below(&world::log(folder))
}

fn close(runtime: &Runtime, session: &Session) {
    let closed = runtime.block_on(session.close("measured"));
    closed.expect("the disk has room");
}
