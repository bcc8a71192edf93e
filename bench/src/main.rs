//! Lodestar measured against fair limits. Every figure is a ratio of two things done in the same
//! run on the same machine, the better of several tries each; absolute times are for orientation.
//!
//! ```console
//! $ cargo run --release -p lodestar-bench -- all
//! ```

mod append;
mod barrier;
mod session;
mod verify;

use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
Measures Lodestar against fair limits, as ratios taken in one run.

usage: lodestar-bench [all | verify | append | barrier] [--events N] [--json]

  verify    `lodestar log verify` of a large session ÷ `openssl dgst -sha256` of the same file
  append    appending without barriers ÷ hashing and writing the same bytes in one loop
  barrier   64 tasks that wait for each event ÷ one sync per event (rates)

  --events N   size of the large session (default 1000000)
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
}

impl Figure {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.value <= limit,
            Bound::AtLeast(limit) => self.value >= limit,
        }
    }

    fn print(&self, json: bool) {
        let (sign, word, limit) = match self.bound {
            Bound::AtMost(limit) => ("≤", "at_most", limit),
            Bound::AtLeast(limit) => ("≥", "at_least", limit),
        };
        if json {
            let line = serde_json::json!({
                "name": self.name, "value": self.value, word: limit,
                "holds": self.holds(), "detail": self.detail,
            });
            println!("{line}");
        } else {
            let mark = if self.holds() { "✓" } else { "✗" };
            println!(
                "{mark} {:<42} {:>7.2}  ({sign} {limit})   {}",
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
    let mut json = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = true,
            "--events" => match args.next().and_then(|n| n.parse().ok()) {
                Some(n) if n >= 10 => events = n,
                _ => return usage("`--events` takes a number of at least 10"),
            },
            "--help" | "-h" => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            "all" | "verify" | "append" | "barrier" => which = arg,
            other => return usage(&format!("`{other}` is not known here")),
        }
    }
    let wanted = |name: &str| which == "all" || which == name;
    let mut figures = Vec::new();
    if wanted("append") {
        figures.extend(append::measure(events));
    }
    if wanted("barrier") {
        figures.extend(barrier::measure());
    }
    if wanted("verify") {
        match verify::measure(events) {
            Ok(more) => figures.extend(more),
            Err(why) => return usage(&why),
        }
    }
    figures.iter().for_each(|figure| figure.print(json));
    match figures.iter().all(Figure::holds) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn usage(problem: &str) -> ExitCode {
    eprintln!("lodestar-bench: {problem}\n\n{HELP}");
    ExitCode::from(2)
}
