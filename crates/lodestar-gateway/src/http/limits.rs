//! How often somebody may ask: a bucket for each token and each address, in memory that has a bound.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestar_core::id::TokenId;

/// Buckets that are kept of one kind, at most. Those that are full again are forgotten first; whoever comes
/// when there is no room shares one.
const MOST: usize = 1 << 16;

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// Requests each second, in the long run.
    pub(crate) per_second: f64,
    /// Requests at once.
    pub(crate) burst: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self {
            left: rate.burst,
            at: now,
        }
    }

    fn refill(&mut self, rate: Rate, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * rate.per_second).min(rate.burst);
        self.at = now;
    }

    /// Takes what a request costs, or says how long to wait.
    fn take(&mut self, cost: f64, rate: Rate, now: Instant) -> Result<(), Duration> {
        self.refill(rate, now);
        if self.left >= cost {
            self.left -= cost;
            return Ok(());
        }
        let missing = (cost - self.left) / rate.per_second;
        Err(Duration::from_secs_f64(missing.min(3600.0)))
    }
}

/// Buckets of one kind.
#[derive(Debug)]
struct Buckets<K> {
    rate: Rate,
    most: usize,
    buckets: HashMap<K, Bucket>,
    /// Of those who found no room.
    others: Option<Bucket>,
}

impl<K: Hash + Eq> Buckets<K> {
    fn new(rate: Rate, most: usize) -> Self {
        Self {
            rate,
            most,
            buckets: HashMap::new(),
            others: None,
        }
    }

    fn bucket(&mut self, key: K, now: Instant) -> &mut Bucket {
        let rate = self.rate;
        if self.buckets.len() >= self.most && !self.buckets.contains_key(&key) {
            // A full bucket is as good as none.
            self.buckets.retain(|_, bucket| {
                bucket.refill(rate, now);
                bucket.left < rate.burst
            });
            if self.buckets.len() >= self.most {
                return self.others.get_or_insert_with(|| Bucket::full(rate, now));
            }
        }
        self.buckets
            .entry(key)
            .or_insert_with(|| Bucket::full(rate, now))
    }

    fn take(&mut self, key: K, cost: f64, now: Instant) -> Result<(), Duration> {
        let rate = self.rate;
        self.bucket(key, now).take(cost, rate, now)
    }

    /// Takes it whether it is there or not.
    fn charge(&mut self, key: K, cost: f64, now: Instant) {
        let rate = self.rate;
        let bucket = self.bucket(key, now);
        bucket.refill(rate, now);
        bucket.left = (bucket.left - cost).max(-rate.burst);
    }
}

/// Who asks, by address: a network of somebody's own is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum From {
    /// One address of the older kind.
    V4([u8; 4]),
    /// The first half of one of the newer: whoever has one has all of those.
    V6([u8; 8]),
    /// This machine's own socket.
    Local,
}

impl std::convert::From<IpAddr> for From {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.octets()),
            IpAddr::V6(address) => {
                let octets = address.octets();
                Self::V6(std::array::from_fn(|at| octets[at]))
            }
        }
    }
}

/// What an attempt with a wrong token costs more than another: guessing is slow.
const GUESS: f64 = 10.0;

/// All buckets.
#[derive(Debug)]
pub(crate) struct Limits {
    tokens: Mutex<Buckets<TokenId>>,
    addresses: Mutex<Buckets<From>>,
}

impl Limits {
    pub(crate) fn new(token: Rate, address: Rate) -> Self {
        Self {
            tokens: Mutex::new(Buckets::new(token, MOST)),
            addresses: Mutex::new(Buckets::new(address, MOST)),
        }
    }

    /// A request from an address.
    pub(crate) fn from(&self, from: From, now: Instant) -> Result<(), Duration> {
        let mut buckets = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        buckets.take(from, 1.0, now)
    }

    /// A wrong token from an address.
    pub(crate) fn guessed(&self, from: From, now: Instant) {
        let mut buckets = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        buckets.charge(from, GUESS, now);
    }

    /// A request under a token.
    pub(crate) fn by(&self, token: TokenId, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.take(token, 1.0, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 2.0,
        burst: 3.0,
    };

    #[test]
    fn a_burst_is_let_through_and_then_a_steady_rate() {
        let (mut buckets, start) = (Buckets::new(RATE, 8), Instant::now());
        for _ in 0..3 {
            assert_eq!(buckets.take('a', 1.0, start), Ok(()));
        }
        assert_eq!(
            buckets.take('a', 1.0, start),
            Err(Duration::from_millis(500))
        );
        assert_eq!(buckets.take('b', 1.0, start), Ok(()), "others are others");
        let later = start + Duration::from_secs(1);
        assert_eq!(buckets.take('a', 1.0, later), Ok(()));
        assert_eq!(buckets.take('a', 1.0, later), Ok(()));
        assert!(buckets.take('a', 1.0, later).is_err());
    }

    #[test]
    fn there_are_never_more_buckets_than_may_be_and_a_crowd_shares_one() {
        let (mut buckets, start) = (Buckets::new(RATE, 4), Instant::now());
        for key in 0..4 {
            assert_eq!(buckets.take(key, 1.0, start), Ok(()));
        }
        let let_in = (4..100).filter(|key| buckets.take(*key, 1.0, start).is_ok());
        assert_eq!(let_in.count(), 3);
        assert_eq!(buckets.buckets.len(), 4);
        let later = start + Duration::from_secs(2);
        assert_eq!(buckets.take(100, 1.0, later), Ok(()));
        assert_eq!(buckets.buckets.len(), 1, "the full ones made room");
    }

    #[test]
    fn guessing_costs_more_and_is_forgiven_in_time() {
        let limits = Limits::new(RATE, RATE);
        let (from, start) = (From::Local, Instant::now());
        assert_eq!(limits.from(from, start), Ok(()));
        limits.guessed(from, start);
        let wait = limits.from(from, start).unwrap_err();
        assert_eq!(wait, Duration::from_secs(2));
        assert_eq!(limits.from(from, start + wait), Ok(()));
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| From::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
