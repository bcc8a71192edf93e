//! One line on stderr for people who wait, and nothing for anyone else.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::inert;

/// Shorter work is done before a line could be read.
const PATIENCE: Duration = Duration::from_millis(400);
const BETWEEN: Duration = Duration::from_millis(100);
const BAR: usize = 24;

/// How far some work is. The line goes away with this value.
pub(crate) struct Progress {
    line: Option<RefCell<Line>>,
}

struct Line {
    next: Instant,
    shown: bool,
}

impl Progress {
    pub(crate) fn start(wanted: bool) -> Self {
        let line = (wanted && io::stderr().is_terminal()).then(|| {
            RefCell::new(Line {
                next: Instant::now() + PATIENCE,
                shown: false,
            })
        });
        Self { line }
    }

    pub(crate) fn at(&self, what: &str, done: u64, total: u64) {
        let Some(line) = &self.line else { return };
        let mut line = line.borrow_mut();
        let now = Instant::now();
        if now < line.next {
            return;
        }
        line.next = now + BETWEEN;
        line.shown = true;
        let bar = bar(done, total);
        let text = format!("\r\x1b[2K{bar} {}", inert::line(what, 50));
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line
            && line.borrow().shown
        {
            let _ = io::stderr().write_all(b"\r\x1b[2K");
        }
    }
}

fn bar(done: u64, total: u64) -> String {
    let share = done as f64 / total.max(1) as f64;
    let full = ((share * BAR as f64) as usize).min(BAR);
    let percent = ((share * 100.0) as u64).min(100);
    format!(
        "{}{} {percent:>3} %",
        "█".repeat(full),
        "░".repeat(BAR - full)
    )
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn the_bar_is_always_as_long_and_never_overflows() {
        for (done, total) in [(0, 0), (0, 10), (5, 10), (10, 10), (20, 10), (u64::MAX, 1)] {
            let bar = bar(done, total);
            assert_eq!(
                bar.chars().filter(|c| "█░".contains(*c)).count(),
                super::BAR
            );
        }
        assert!(bar(10, 10).ends_with("100 %"));
    }
}
