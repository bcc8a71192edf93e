//! Stores over real logs: they follow, they are made again, and what was tampered with is named.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod crash;
mod rebuild;
mod tamper;
mod world;
