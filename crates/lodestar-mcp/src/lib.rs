//! The MCP proxy.
//!
//! | part | role |
//! |---|---|
//! | [`wire`] | JSON-RPC messages: the envelope is read, what is inside stays the bytes that came |
//! | [`lines`] | messages as lines, bounded |
#![deny(missing_docs)]

pub mod lines;
pub mod wire;
