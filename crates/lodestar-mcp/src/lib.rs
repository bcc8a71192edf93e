//! The MCP proxy: one server to the agent, many servers behind it, and a governed session in between.
//!
//! | part | role |
//! |---|---|
//! | [`serve_stdio`], [`Settings`] | the proxy as a process, over its standard streams |
//! | [`serve_http`], [`HttpFace`] | the proxy over Streamable HTTP, for clients that show a token |
//! | [`probe`] | what a server offers, asked once and outside every session |
//! | [`pins`] | the definitions that servers' tools had when they were first seen, kept and signed |
//! | [`answer`] | a result on its way: what is recorded of it, what the agent gets |
//! | [`wire`], [`lines`], [`members`] | JSON-RPC as it comes: envelopes, lines and members are read, what is inside stays bytes |
#![deny(missing_docs)]

mod agent_tool;
pub mod answer;
mod beside;
mod catalogue;
mod child;
mod conversation;
mod face;
mod http;
mod identity;
mod in_headers;
mod inline;
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

pub use catalogue::graded_methods;
pub use conversation::Settings;
pub use face::{HttpFace, PATH};
pub use proxy::{ProxyError, serve_http, serve_stdio};
