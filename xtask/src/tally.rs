//! How many tests passed, read from the summaries that their runners print.
//!
//! nextest prints one `Summary [ 1.2s] 10 tests run: 9 passed (1 slow), 1 failed, 2 skipped`;
//! the built-in runner one `test result: ok. 9 passed; 1 failed; 2 ignored; …` per test program.
//! The harness ends in `85 passed, 0 failed, 0 skipped   12.3 s`.
//! nextest shows the output of a failed test, which holds a `test result` of its own, so each
//! runner is only asked for its own form.

use std::fmt;
use std::ops::AddAssign;

/// Which program runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo nextest run`
    Nextest,
    /// `cargo test`
    Cargo,
    /// `lodestar harness run`
    Harness,
}

/// What came of a number of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Tally {
    /// Something went wrong that no test says of itself.
    pub(crate) fn failed() -> Self {
        Self {
            failed: 1,
            ..Self::default()
        }
    }

    /// The counts of a summary line; `None` for every other line.
    pub(crate) fn of_line(runner: Runner, line: &str) -> Option<Self> {
        let line = without_colour(line);
        let counts = match runner {
            Runner::Nextest => {
                let rest = line.trim_start().strip_prefix("Summary [")?;
                rest.split_once("run:")?.1.to_owned()
            }
            Runner::Cargo => {
                let rest = line.strip_prefix("test result: ")?;
                rest.split_once(". ")?.1.to_owned()
            }
            Runner::Harness => {
                let (counts, _time) = line.split_once(" skipped")?;
                let starts = counts.split_once(" passed, ")?.0.parse::<u64>();
                starts.ok().map(|_| format!("{counts} skipped"))?
            }
        };
        let mut tally = Self::default();
        for part in without_parentheses(&counts).split([',', ';']) {
            let Some((count, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match what.trim() {
                "passed" => tally.passed += count,
                "failed" | "timed out" | "exec failed" => tally.failed += count,
                "skipped" | "ignored" => tally.skipped += count,
                _ => {}
            }
        }
        Some(tally)
    }
}

fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                rest.by_ref().find(char::is_ascii_alphabetic);
            }
            c => plain.push(c),
        }
    }
    plain
}

/// Details such as `(1 slow, 2 flaky)` are counted in what they stand behind.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0u32;
    text.chars()
        .filter(|c| match c {
            '(' => {
                depth += 1;
                false
            }
            ')' => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Option<Tally> {
        Some(Tally {
            passed,
            failed,
            skipped,
        })
    }

    #[test]
    fn summaries_of_nextest_are_read() {
        let of = |line| Tally::of_line(Runner::Nextest, line);
        assert_eq!(
            of("     Summary [   0.012s] 5 tests run: 5 passed, 0 skipped"),
            tally(5, 0, 0)
        );
        assert_eq!(
            of(
                "     Summary [   1.250s] 10/12 tests run: 6 passed (1 slow, 2 flaky), 1 failed, 2 timed out, 1 exec failed, 2 skipped"
            ),
            tally(6, 4, 2)
        );
        assert_eq!(
            of(
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.012s] \u{1b}[1m1\u{1b}[0m test run: \u{1b}[1m1\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m3\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m"
            ),
            tally(1, 0, 3)
        );
    }

    #[test]
    fn summaries_of_the_built_in_runner_are_read() {
        let of = |line| Tally::of_line(Runner::Cargo, line);
        assert_eq!(
            of(
                "test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s"
            ),
            tally(7, 0, 1)
        );
        assert_eq!(
            of(
                "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s"
            ),
            tally(1, 2, 0)
        );
    }

    #[test]
    fn other_lines_count_for_nothing() {
        for line in [
            "",
            "Summary",
            "        PASS [   0.003s] lodestar-core name::tests::x",
            "test name::tests::x ... ok",
            "running 7 tests",
        ] {
            assert_eq!(Tally::of_line(Runner::Nextest, line), None, "{line}");
            assert_eq!(Tally::of_line(Runner::Cargo, line), None, "{line}");
        }
    }

    #[test]
    fn a_runner_is_not_taken_in_by_the_summary_of_the_other() {
        let cargo =
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Tally::of_line(Runner::Nextest, cargo), None);
        let nextest = "     Summary [   0.012s] 5 tests run: 5 passed, 0 skipped";
        assert_eq!(Tally::of_line(Runner::Cargo, nextest), None);
    }

    #[test]
    fn tallies_add_up_to_one_line() {
        let mut sum = Tally::default();
        sum += tally(2, 0, 1).unwrap();
        sum += tally(3, 1, 0).unwrap();
        assert_eq!(sum.to_string(), "5 passed, 1 failed, 1 skipped");
    }
}
