//! The policy crate from outside: policies as operators write them, calls as agents make them.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod arbiters;
mod checks;
mod confirmations;
mod forgery;
mod forging;
mod hostile;
mod laws;
mod model;
mod requirements;
mod rulings;
mod schema;
mod sentinels;
mod signing;
mod slicing;
mod suite;
mod table;
mod without;
mod world;
