//! The executable threat model: adversarial scenarios against the real parts, each with a contrast run
//! that shows it can fail.
//!
//! | part | role |
//! |---|---|
//! | [`Probe`], [`Header`] | one scenario: what happens in it, what it asserts, what it does not claim |
//! | [`Stage`] | where a scenario plays: a scratch folder, the program, what is taken out |
//! | [`world`] | projects, agents, servers and people for scenarios; all of them real |
//! | [`probes`] | the scenarios that come with the program, in two packs |
//! | [`run`], [`RunReport`] | runs them, each with its contrast, and says what came of it |
//! | [`attack`] | a model-free adversary that searches for a way through |
//! | [`pack`] | outside packs: somebody else's scenarios, as signed data |
//! | [`output`] | what came of it, for other programs: JSON, JUnit, SARIF |
//! | [`RunLog`] | a log of its own for every run |
//!
//! A **contrast run** is the same scenario in a world that lacks one named
//! [defence](lodestar_core::defence::Defence). It must be breached: a probe that cannot fail shows nothing.
#![deny(missing_docs)]

pub mod attack;
mod class;
mod header;
pub mod output;
pub mod pack;
mod page;
mod probe;
pub mod probes;
mod record;
mod runner;
mod stage;
pub mod world;

pub use class::{AttackClass, Owasp};
pub use header::{Header, Needs, Pack, Section};
pub use page::reference_page;
pub use probe::{Broken, Outcome, Probe, hold, settle, skip};
pub use record::{RecordError, RunLog};
pub use runner::{Contrast, Options, ProbeResult, RunReport, Status, missed, run};
pub use stage::{Running, Stage};
