//! The gateway as its callers see it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod store;
