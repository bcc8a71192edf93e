//! A model-free adversary: an agent that obeys whatever it reads, and a searcher that changes what it reads
//! until something gives.
//!
//! | part | does |
//! |---|---|
//! | [`search`] | tries attacks against governed sessions, learns from how far each got, and counts |
//! | `plan` | an attack as data: what it wants, how it spells, hides, routes and vouches for it |
//! | `obey` | the agent: looks for orders in all that it reads, and carries them out |
//! | `world` | what a world has to offer, and the names of the tools in both |
//! | `office`, `desk` | a scripted world in sessions of the library: tools that deliver what they are told to, and remember it |
//! | `demo` | the servers of the demonstration, behind the real proxy as a process |
//! | `people` | the one person who is asked, and what somebody slips in between |
//! | `benign` | work that has nothing to do with the attack and has to go through |
//!
//! No model takes part: whether an attack succeeds depends on Lodestar alone. That says nothing of how often a
//! model would obey; it says what happens if it always does.

mod benign;
mod demo;
mod desk;
mod obey;
mod office;
mod people;
mod plan;
mod rng;
mod search;
mod text;
mod within;
mod world;

pub use plan::Goal;
pub use search::{AttackReport, Benign, Options, Over, Success, search};
pub use within::{Testable, testable};
