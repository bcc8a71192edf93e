//! Random bytes for ids, fetched by the page.

use std::sync::{Mutex, PoisonError};

const POOL: usize = 1280;

#[derive(Debug)]
pub(crate) struct Random(Mutex<Pool>);

#[derive(Debug)]
struct Pool {
    bytes: [u8; POOL],
    used: usize,
}

impl Default for Random {
    fn default() -> Self {
        Self(Mutex::new(Pool {
            bytes: [0; POOL],
            used: POOL,
        }))
    }
}

impl Random {
    /// Ten bytes that nobody can foresee.
    pub(crate) fn ten(&self) -> [u8; 10] {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.used == POOL {
            getrandom::fill(&mut pool.bytes).expect("the system has randomness");
            pool.used = 0;
        }
        let mut ten = [0; 10];
        let at = pool.used;
        ten.copy_from_slice(&pool.bytes[at..at + 10]);
        pool.used += 10;
        ten
    }
}
