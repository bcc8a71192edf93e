//! The gateway from outside: runs that real sessions made, and everything that is done to them on the way.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod bundle;
mod ran;
