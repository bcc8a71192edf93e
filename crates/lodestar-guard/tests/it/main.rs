//! Stores over real logs, and governed sessions end to end.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod attacks;
mod boxed;
mod calls;
mod crash;
mod governed;
mod holds;
mod opening;
mod rebuild;
mod replay;
mod script;
mod steps;
mod tamper;
mod world;
