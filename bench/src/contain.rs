//! What containment adds to the start of a child, and to what it does once it runs: the same program with and
//! without a cell, in turn; and the same server behind the proxy, with and without.
//!
//! Two processes that talk through a pipe take three times as long on two processors as on one, and which it is
//! depends on where the child happened to begin. So the children that are compared share one processor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lodestar_core::contract::Sandbox;
use lodestar_kernel::contain::{Cell, Confined, Host, Plan};
use lodestar_kernel::protect::out_of_reach;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{Bound, Figure};

const STARTS: usize = 60;
const CALLS: u32 = 20_000;

/// What one child took.
struct Took {
    /// From nothing to its first answer.
    start: Duration,
    /// A call, once it answers.
    call: Duration,
}

pub(crate) fn measure() -> Vec<Figure> {
    let everywhere = sched_getaffinity(None).expect("a thread knows its processors");
    let mut one = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU).find(|at| everywhere.is_set(*at));
    one.set(first.expect("it runs on one of them"));
    sched_setaffinity(None, &one).expect("a thread may keep to one of its processors");
    let mut figures = alone();
    figures.extend(behind_the_proxy());
    sched_setaffinity(None, &everywhere).expect("they were its own before");
    figures
}

/// A server of a user, as it is started and called.
fn behind_the_proxy() -> [Figure; 2] {
    let [[start, bare_start], [call, bare_call]] = crate::proxy::contained();
    [
        Figure {
            name: "containment behind the proxy: a start, in ms",
            value: start - bare_start,
            bound: Bound::AtMost(5.0),
            detail: format!("first answer after {start:.1} ms against {bare_start:.1}"),
        },
        Figure {
            name: "containment behind the proxy: a call ÷ a bare",
            value: call / bare_call,
            bound: Bound::AtMost(1.1),
            detail: format!("{call:.0} µs against {bare_call:.0} at p50, in turns"),
        },
    ]
}

/// A child that does nothing but answer.
fn alone() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let project = folder.path().join("project");
    for name in [".lodestar", ".git/hooks", ".git/objects", ".claude", "keys"] {
        std::fs::create_dir_all(project.join(name)).expect("a folder");
    }
    for name in [".mcp.json", ".git/config", ".git/HEAD", "lodestar.toml"] {
        std::fs::write(project.join(name), "").expect("a file");
    }
    // Found out once in a process, not once for each child.
    let host = Host::here();
    let mut figures = Vec::new();
    let (mut bare, mut contained) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        bare.push(child(&project, None));
        contained.push(child(&project, Some(host)));
    }
    let middle = |all: &[Took], of: fn(&Took) -> Duration| {
        let mut all: Vec<Duration> = all.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2].as_secs_f64() * 1e3
    };
    let (without, with) = (
        middle(&bare, |took| took.start),
        middle(&contained, |took| took.start),
    );
    figures.push(Figure {
        name: "containment added to a start, in ms",
        value: with - without,
        bound: Bound::AtMost(5.0),
        detail: format!("{with:.2} ms to the first answer against {without:.2}"),
    });
    figures.push(Figure {
        name: "a contained start ÷ a bare one",
        value: with / without,
        bound: Bound::None,
        detail: format!("{STARTS} starts each, in turn, the middle one"),
    });
    let (without, with) = (
        middle(&bare, |took| took.call),
        middle(&contained, |took| took.call),
    );
    figures.push(Figure {
        name: "a call of a contained child ÷ a bare one",
        value: with / without,
        bound: Bound::AtMost(1.1),
        detail: format!("{:.2} µs against {:.2}", with * 1e3, without * 1e3),
    });
    figures
}

/// Starts a server that gives back each line, and asks it.
fn child(project: &Path, host: Option<Host>) -> Took {
    let begun = Instant::now();
    let mut command = Command::new("/usr/bin/cat");
    command
        .current_dir(project)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut confined: Option<Confined> = host.map(|host| {
        let keys = project.join("keys");
        let out = out_of_reach(project, Some(&keys), [], []);
        let plan = Plan::new([Sandbox::WriteLocal], "/usr/bin/cat", project, out);
        Cell::of(&plan, host).expect("a cell").confine(&mut command)
    });
    let mut child = command.spawn().expect("cat is there");
    drop(command);
    if let Some(confined) = &mut confined {
        confined.started();
    }
    let mut to = child.stdin.take().expect("piped");
    let mut from = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    let mut ask = || {
        line.clear();
        to.write_all(b"{\"id\":1}\n").expect("it reads");
        from.read_line(&mut line).expect("it answers");
    };
    ask();
    let start = begun.elapsed();
    let begun = Instant::now();
    let calls = CALLS / STARTS as u32;
    (0..calls).for_each(|_| ask());
    let call = begun.elapsed() / calls;
    drop(to);
    child.wait().expect("it ends");
    Took { start, call }
}
