//! Lodestar measured against fair limits. Every figure is a ratio of two things done in the same
//! run on the same machine, the better of several tries each; absolute times are for orientation.
//!
//! ```console
//! $ cargo run --release -p lodestar-bench -- all
//! ```

mod append;
mod barrier;
mod call;
mod contain;
mod firewall;
mod gate;
mod gateway;
mod holds;
mod hook;
mod proxy;
mod report;
mod session;
mod verify;

use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
Measures Lodestar against fair limits, as ratios taken in one run.

usage: lodestar-bench [all | verify | append | barrier | firewall | gate | call | holds | proxy |
                      report | gateway | hook | contain]
                      [--events N] [--beliefs N] [--calls N] [--json]

  verify    `lodestar log verify` of a large session ÷ `openssl dgst -sha256` of the same file
  append    appending without barriers ÷ hashing and writing the same bytes in one loop
  barrier   64 tasks that wait for each event ÷ one sync per event (rates)
  firewall  adopting a tool's result ÷ bare inserts of its rows; the last beliefs ÷ the first;
            retrieval ÷ the bare SQL behind it, and over a large store ÷ over a small one
  gate      a recorded decision ÷ one bare answer of Cedar over all policies; an L0 call up to its
            clearance ÷ a bare answer and an append; the last calls of a session ÷ the first
  call      a whole governed call that echoes a kibibyte: what the caller waits, calls a second with 64
            in flight, processor time behind a call, what each call leaves in log and memory
  holds     what a thousand calls that wait for people cost, and how soon an answer is heard

  proxy     what the proxy adds to a call ÷ what a bare pass-through on rmcp adds; its rate, its start,
            its memory and its log

  report    `lodestar report` of a governed session of 100,000 events, as HTML, with verification and
            replay; what twice as many events cost; its memory

  gateway   heartbeats a second with signatures verified, of the service alone and by HTTP; ÷ the signature
            checks and ÷ the bare rows alone; with ten thousand devices ÷ with a hundred; a run of 10,000
            events verified, replayed and graded

  hook      what a hook of a client adds to the bare start of the same binary, with its daemon there
  contain   what containment adds to the start of a child, and to a call

  --events N   size of the large session (default 1000000)
  --beliefs N  size of the large belief store (default 1000000)
  --calls N    length of the long governed session (default 100000)
  --json       one JSON object a line, for machines

The release binary `lodestar` has to lie beside this one: `cargo xtask bench` builds both.
";

/// One figure: what was measured, what it may be at most or must be at least.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) bound: Bound,
    pub(crate) detail: String,
}

#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// For orientation.
    None,
}

impl Figure {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.value <= limit,
            Bound::AtLeast(limit) => self.value >= limit,
            Bound::None => true,
        }
    }

    fn print(&self, json: bool) {
        let bound = match self.bound {
            Bound::AtMost(limit) => Some(("≤", "at_most", limit)),
            Bound::AtLeast(limit) => Some(("≥", "at_least", limit)),
            Bound::None => None,
        };
        if json {
            let mut line = serde_json::json!({
                "name": self.name, "value": self.value,
                "holds": self.holds(), "detail": self.detail,
            });
            if let Some((_, word, limit)) = bound {
                line[word] = limit.into();
            }
            println!("{line}");
        } else {
            let mark = match bound {
                None => "·",
                Some(_) if self.holds() => "✓",
                Some(_) => "✗",
            };
            let limit = bound.map_or(String::new(), |(sign, _, limit)| {
                format!("({sign} {limit})")
            });
            println!(
                "{mark} {:<42} {:>7.2}  {limit:<7}   {}",
                self.name, self.value, self.detail
            );
        }
    }
}

/// The best of several tries: what the machine can do when nobody disturbs it.
pub(crate) fn best_of(tries: u32, mut run: impl FnMut()) -> Duration {
    (0..tries)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() -> ExitCode {
    let mut which = "all".to_owned();
    let mut events = 1_000_000;
    let mut beliefs = 1_000_000;
    let mut calls = 100_000;
    let mut json = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = true,
            "--events" => match args.next().and_then(|n| n.parse().ok()) {
                Some(n) if n >= 10 => events = n,
                _ => return usage("`--events` takes a number of at least 10"),
            },
            "--beliefs" => match args.next().and_then(|n| n.parse().ok()) {
                Some(n) if n >= firewall::FEWEST => beliefs = n,
                _ => return usage(&format!("`--beliefs` takes at least {}", firewall::FEWEST)),
            },
            "--calls" => match args.next().and_then(|n| n.parse().ok()) {
                Some(n) if n >= gate::FEWEST => calls = n,
                _ => return usage(&format!("`--calls` takes at least {}", gate::FEWEST)),
            },
            // The two peers that `proxy` starts.
            "echo-server" => return served(proxy::serve_echo().map_err(|e| e.to_string())),
            "forwarder" => {
                let (command, rest) = (args.next().unwrap_or_default(), args.collect::<Vec<_>>());
                return served(proxy::serve_forwarder(&command, &rest));
            }
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "all" | "verify" | "append" | "barrier" | "firewall" | "gate" | "call" | "holds"
            | "proxy" | "report" | "gateway" | "hook" | "contain" => {
                which = arg;
            }
            other => return usage(&format!("`{other}` is not known here")),
        }
    }
    let wanted = |name: &str| which == "all" || which == name;
    let mut all_hold = true;
    let mut report = |figures: Vec<Figure>| {
        figures.iter().for_each(|figure| figure.print(json));
        all_hold &= figures.iter().all(Figure::holds);
    };
    if wanted("append") {
        report(append::measure(events));
    }
    if wanted("barrier") {
        report(barrier::measure());
    }
    if wanted("verify") {
        match verify::measure(events) {
            Ok(figures) => report(figures),
            Err(why) => return usage(&why),
        }
    }
    if wanted("firewall") {
        report(firewall::adopt());
        report(firewall::growth(beliefs));
        report(firewall::retrieval(beliefs));
    }
    if wanted("gate") {
        report(gate::decision());
        report(gate::clearance());
        report(gate::calls(calls));
    }
    if wanted("call") {
        report(call::measure(calls));
    }
    if wanted("holds") {
        report(holds::measure());
    }
    if wanted("proxy") {
        report(proxy::measure(calls));
    }
    if wanted("report") {
        match report::measure() {
            Ok(figures) => report(figures),
            Err(why) => return usage(&why),
        }
    }
    if wanted("gateway") {
        match gateway::measure() {
            Ok(figures) => report(figures),
            Err(why) => return usage(&why),
        }
    }
    if wanted("hook") {
        match hook::measure() {
            Ok(figures) => report(figures),
            Err(why) => return usage(&why),
        }
    }
    if wanted("contain") {
        report(contain::measure());
    }
    match all_hold {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn served(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lodestar-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn usage(problem: &str) -> ExitCode {
    eprintln!("lodestar-bench: {problem}\n\n{HELP}");
    ExitCode::from(2)
}
