//! Whole-log tests: real files, real processes, real kills.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod anchor;
mod basics;
mod concurrent;
mod crash;
mod disk_full;
mod hostile;
mod interrupted;
mod proofs;
mod python;
mod redaction;
mod rules;
mod support;
mod tails;
mod tamper;
mod verdicts;
