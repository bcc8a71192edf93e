//! Two processes that want the same thing at the same moment: one session, one grant, one confirmation.
//! One of them has it, every time.
//!
//! A racer is this test program again, told by its input what to do and by its environment where.

mod confirmation;
mod grant;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// So many of 1,000 by default; all of them with `LODESTAR_MATRIX=full`.
fn rounds(sample: u32) -> u32 {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    if full { 1_000 } else { sample }
}

const FOLDER: &str = "LODESTAR_TEST_FOLDER";
const NAME: &str = "LODESTAR_TEST_RACER";

struct Racer {
    child: Child,
    told: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Racer {
    /// Starts a test that is only there to be started.
    fn start(test: &str, name: &str, folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(NAME, name)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = child.stdin.take().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let mut racer = Self { child, told, says };
        while racer.answer() != "ready" {}
        racer
    }

    fn tell(&mut self, what: &str) {
        self.told.write_all(format!("{what}\n").as_bytes()).unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.says.read_line(&mut line).unwrap(), 0, "it went away");
        line.trim().to_owned()
    }

    fn end(mut self) {
        drop(self.told);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Tells both, the one or the other first; what they answer.
fn both(round: u32, racers: &mut [Racer; 2], what: &str) -> [String; 2] {
    let first = (round % 2) as usize;
    racers[first].tell(what);
    racers[1 - first].tell(what);
    let [one, other] = racers;
    [one.answer(), other.answer()]
}

/// The side of the racer: what it is told, until nobody tells it anything more.
fn told() -> impl Iterator<Item = String> {
    // What the test runner has written stands on the line before.
    println!("\nready");
    std::io::stdin().lines().map(|line| line.unwrap())
}
