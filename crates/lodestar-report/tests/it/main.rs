//! Reports of real sessions, held against their logs by a check that shares no code with them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod again;
mod bundles;
mod contained;
#[path = "../../../lodestar-guard/tests/it/governed.rs"]
#[allow(
    dead_code,
    reason = "what the sessions of other tests need is not all needed here"
)]
mod governed;
mod inert;
mod random;
mod redacted;
mod refusals;
mod schema;
mod signals;
mod told;
mod withheld;
#[path = "../../../lodestar-guard/tests/it/world.rs"]
#[allow(
    dead_code,
    reason = "what the sessions of other tests need is not all needed here"
)]
mod world;
