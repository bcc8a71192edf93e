//! The MCP proxy: one server to the agent, many servers behind it, and a governed session in between.
//!
//! | part | role |
//! |---|---|
//! | [`serve_stdio`], [`Settings`] | the proxy as a process, over its standard streams |
//! | [`probe`] | what a server offers, asked once and outside every session |
//! | [`pins`] | the definitions that servers' tools had when they were first seen, kept and signed |
//! | [`wire`], [`lines`], [`members`] | JSON-RPC as it comes: envelopes, lines and members are read, what is inside stays bytes |
#![deny(missing_docs)]

mod answer;
mod catalogue;
mod child;
mod conversation;
mod http;
mod identity;
pub mod lines;
pub mod members;
mod offer;
mod peer;
mod pinned;
pub mod pins;
pub mod probe;
mod proxy;
mod server;
mod streams;
mod tool;
pub mod wire;

pub use conversation::Settings;
pub use proxy::{ProxyError, serve_stdio};
