//! A run's log on its way to the service, and whether it is what was attested.
//!
//! One line of canonical JSON that names the session and its files, each with its length and digest; then the
//! files' bytes, one after the other, in the order of their names:
//!
//! ```text
//! {"files":[{"bytes":N,"name":"blobs/<sha256>","sha256":H},…],"format":"lodestar.run-bundle/1","project":P,"session":S}
//! <bytes of the first file><bytes of the second>…
//! ```
//!
//! A bundle has one spelling: the same closed session gives the same bytes, and what is not exactly of this form
//! is no bundle. [`pack`] makes one where the session ran; [`unpack`] takes apart what anybody sent, into a folder
//! that goes away with it; [`verify`] then holds it against the key of the device, what was attested, and the
//! checkpoints that came while the run went on. Nothing in a bundle is believed because it is in it.

mod fault;
mod header;
mod pack;
mod unpack;
mod verify;

pub use fault::{BundleError, Fault};
pub use header::FORMAT;
pub use pack::{PackError, Packed, pack};
pub use unpack::{Unpacked, unpack};
pub use verify::{Expected, Verified, checkpoint, verify};

use std::time::Duration;

/// How much of a bundle is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes in all.
    pub bytes: u64,
    /// Most files.
    pub files: usize,
    /// Most events.
    pub events: u64,
    /// Most bytes that blobs unpack to, counted as often as events name them: they are read as often.
    pub contents: u64,
    /// Most bytes of structure in one event, in its line and in its blobs together: what is parsed takes many times
    /// the memory that it is written in, and a blob that is written in gigabytes fits into a few thousand bytes.
    pub structure: u64,
}

impl Default for Limits {
    /// A day's work of an agent, several times over: a hundred thousand calls write half a million events.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            files: 16_384,
            events: 1_000_000,
            contents: 2 << 30,
            structure: 1 << 20,
        }
    }
}

/// How long it is worth waiting for a log of so many events to be judged: several times of what an honest one
/// takes on a slow machine.
pub fn patience(events: u64) -> Duration {
    Duration::from_secs(10).saturating_add(
        Duration::from_micros(500).saturating_mul(u32::try_from(events).unwrap_or(u32::MAX)),
    )
}
