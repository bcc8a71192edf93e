//! The real clock, and the system's randomness.

use std::time::{SystemTime, UNIX_EPOCH};

use lodestar_core::name::SessionId;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::Surroundings;

/// Random bytes fetched at a time: ids of a dozen claims.
const POOL: usize = 512;

/// The system's clock and randomness.
#[derive(Debug)]
pub struct SystemSurroundings {
    pool: [u8; POOL],
    used: usize,
}

impl Default for SystemSurroundings {
    fn default() -> Self {
        Self {
            pool: [0; POOL],
            used: POOL,
        }
    }
}

impl SystemSurroundings {
    /// A name that no other session has: the moment, and chance.
    pub fn new_session(&mut self, prefix: &str) -> SessionId {
        let seconds = self.now().unix_seconds();
        let chance = self.random();
        let tail: String = chance[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        SessionId::new(format!("{prefix}-{seconds}-{tail}"))
            .expect("INVARIANT: letters, digits and hyphens")
    }
}

impl Surroundings for SystemSurroundings {
    fn now(&mut self) -> Timestamp {
        // A clock before 1970 or after 9999 counts as the nearest moment there is.
        let micros = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| {
                i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
            });
        Timestamp::from_unix_micros(micros).unwrap_or(Timestamp::MAX)
    }

    fn random(&mut self) -> [u8; 10] {
        let mut bytes = [0; 10];
        if self.used + bytes.len() > POOL {
            getrandom::fill(&mut self.pool).expect("the system has randomness");
            self.used = 0;
        }
        bytes.copy_from_slice(&self.pool[self.used..][..10]);
        self.used += bytes.len();
        bytes
    }
}
