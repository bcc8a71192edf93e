//! The tools in the box, each with its contract and the invariants that it enforces itself.

pub mod fs;
pub mod git;
pub mod http;
pub mod message;
pub mod net;
pub mod nostr;
pub mod shell;
