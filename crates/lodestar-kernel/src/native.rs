//! The tools in the box, each with its contract and the invariants that it enforces itself.

pub mod http;
pub mod message;
pub mod net;
pub mod nostr;
