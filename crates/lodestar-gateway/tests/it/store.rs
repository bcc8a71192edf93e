//! What the gateway keeps: through its functions, and past them.

mod conformance;
mod opening;
pub(crate) mod place;
mod refused;
mod rows;
mod security;
#[path = "../../../lodestar-firewall/tests/it/store/server.rs"]
mod server;
mod tables;
mod world;
