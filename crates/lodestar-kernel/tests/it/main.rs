//! The kernel from outside: proposals, permits and clearances over a real log.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

#[cfg(target_os = "linux")]
mod escape;
mod moved;
#[cfg(target_os = "linux")]
mod walls;
