//! Time and randomness, the two things a log takes from outside.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use lodestar_core::time::Timestamp;

use crate::line::SALT_BYTES;

/// Where the writer takes the time from. It may run backwards; the log's times do not.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::new(|| {
            let micros = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX));
            Timestamp::from_unix_micros(micros).unwrap_or(Timestamp::MAX)
        })
    }

    /// Any other.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The same, but it never shows less than this, nor than it has shown before: what is recorded with
    /// its times is in order, whatever becomes of the system's clock.
    #[must_use]
    pub fn never_before(self, start: Timestamp) -> Self {
        let latest = AtomicI64::new(start.unix_micros());
        Self::new(move || {
            let now = self.now().unix_micros();
            let latest = latest.fetch_max(now, Ordering::AcqRel).max(now);
            Timestamp::from_unix_micros(latest).unwrap_or(Timestamp::MAX)
        })
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// One salt, straight from the operating system.
pub(crate) fn salt() -> io::Result<[u8; SALT_BYTES]> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    Ok(salt)
}

/// Salts by the page: one system call for 256 of them.
#[derive(Debug)]
pub(crate) struct SaltPool {
    bytes: Box<[u8; 4096]>,
    used: usize,
}

impl SaltPool {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Box::new([0; 4096]),
            used: 4096,
        }
    }

    pub(crate) fn next(&mut self) -> io::Result<[u8; SALT_BYTES]> {
        if self.used == self.bytes.len() {
            getrandom::fill(&mut self.bytes[..]).map_err(io::Error::other)?;
            self.used = 0;
        }
        let mut salt = [0; SALT_BYTES];
        salt.copy_from_slice(&self.bytes[self.used..self.used + SALT_BYTES]);
        self.used += SALT_BYTES;
        Ok(salt)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_unix_micros(micros).expect("a moment")
    }

    #[test]
    fn a_clock_that_is_set_back_stands_still_until_it_is_later_again() {
        let shown = Arc::new(Mutex::new(vec![at(7), at(40), at(60), at(20), at(50)]));
        let system = Clock::new(move || shown.lock().expect("whole").pop().expect("one more"));
        let clock = system.never_before(at(30));
        let told: Vec<_> = (0..5).map(|_| clock.now()).collect();
        assert_eq!(told, [at(50), at(50), at(60), at(60), at(60)]);
    }
}
