//! When the server is asked again: at once after an answer, later after an error, and never in a
//! circle, whatever the server does.

use std::time::Duration;

use tokio::time::Instant;

/// How long it takes after the first error, and at most.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);

/// How often a server that does not wait is asked: one that keeps to the protocol never notices.
const LEAST: Duration = Duration::from_secs(1);

/// Answers that are taken at once, and how long it takes until there is room for one more. Each of
/// them stands in the log, whatever it says: people do not answer faster, a flood would.
const AT_ONCE: u32 = 100;
const ONE_MORE: Duration = Duration::from_secs(1);

/// How long to wait after how many errors in a row.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Errors(u32);

impl Errors {
    /// One more: how long to wait.
    pub(super) fn one_more(&mut self) -> Duration {
        let wait = FIRST.saturating_mul(1 << self.0.min(16)).min(LONGEST);
        self.0 = self.0.saturating_add(1);
        wait
    }

    /// It worked.
    pub(super) fn over(&mut self) {
        self.0 = 0;
    }
}

/// When the server is asked for answers.
#[derive(Debug)]
pub(super) struct Pace {
    not_before: Option<Instant>,
    errors: Errors,
    room: u32,
    counted: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            not_before: None,
            errors: Errors::default(),
            room: AT_ONCE,
            counted: None,
        }
    }
}

impl Pace {
    /// When it may be asked; at once, if nothing is said.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.not_before
    }

    /// It was asked at this time, and there was nothing.
    pub(super) fn nothing(&mut self, asked: Instant) {
        self.errors.over();
        self.not_before = Some(asked + LEAST);
    }

    /// It brought an answer.
    pub(super) fn answer(&mut self, now: Instant) {
        self.errors.over();
        let counted = *self.counted.get_or_insert(now);
        let more = u32::try_from((now - counted).as_secs()).unwrap_or(AT_ONCE);
        if more > 0 {
            self.room = self.room.saturating_add(more).min(AT_ONCE);
            self.counted = Some(counted + ONE_MORE * more);
        }
        self.room = self.room.saturating_sub(1);
        self.not_before = (self.room == 0).then(|| now + ONE_MORE);
    }

    /// It failed.
    pub(super) fn error(&mut self, now: Instant) {
        self.not_before = Some(now + self.errors.one_more());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_make_it_slower_up_to_a_point_and_anything_else_makes_it_quick_again() {
        let mut errors = Errors::default();
        let waits: Vec<_> = (0..8).map(|_| errors.one_more().as_millis()).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        errors.over();
        assert_eq!(errors.one_more(), FIRST);
        let mut long = Errors(u32::MAX);
        assert_eq!(long.one_more(), LONGEST);
    }

    #[test]
    fn a_flood_of_answers_is_taken_slowly_and_a_pause_makes_room() {
        let mut pace = Pace::default();
        let start = Instant::now();
        for _ in 0..AT_ONCE - 1 {
            pace.answer(start);
            assert_eq!(pace.not_before(), None);
        }
        for _ in 0..2 {
            pace.answer(start);
            assert_eq!(pace.not_before(), Some(start + ONE_MORE));
        }
        let later = start + ONE_MORE * 10;
        pace.answer(later);
        assert_eq!(pace.not_before(), None);
        assert_eq!(pace.room, 9);
    }
}
