//! Whole-log tests: real files, real processes, real kills.

mod anchor;
mod basics;
mod concurrent;
mod crash;
mod disk_full;
mod proofs;
mod python;
mod redaction;
mod support;
mod tamper;
