//! Fuzz targets for every parser that reads what others wrote, as plain functions.
//!
//! A target takes any bytes and panics when a law is broken; that nothing panics, overflows or
//! hangs by itself goes without saying. cargo-fuzz drives them where a nightly toolchain is at hand
//! (`fuzz_targets/`); everywhere else a test runs the seeds in `corpus/` and mutations of them
//! (`tests/seeds.rs`, with [`Mutator`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod canonical_json;
mod checkpoint;
mod dsse_envelope;
mod log_line;
mod memory_export;
mod mutate;
mod proof;
pub mod sample;

pub use canonical_json::canonical_json;
pub use checkpoint::checkpoint;
pub use dsse_envelope::dsse_envelope;
pub use log_line::log_line;
pub use memory_export::memory_export;
pub use mutate::Mutator;
pub use proof::proof;

/// A target: takes any bytes, panics when a law is broken.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also the folder of its seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("canonical_json", canonical_json),
    ("log_line", log_line),
    ("checkpoint", checkpoint),
    ("dsse_envelope", dsse_envelope),
    ("proof", proof),
    ("memory_export", memory_export),
];
