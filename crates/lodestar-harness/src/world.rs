//! What scenarios are made of: projects on disk, agents that speak MCP to the real proxy, servers that do as
//! they were scripted, people with keys, firewalls, and the log read back.

mod agent;
pub mod fleet;
pub(crate) mod forge;
mod mind;
mod people;
mod policy;
mod program;
mod project;
mod readings;
mod record;
mod server;
mod tool;
mod twice;

pub use agent::{Agent, Called, Proxy};
pub use forge::forged_grant;
pub use mind::{FILES, Mind, Text, about};
pub use people::{Asking, Person, answering};
pub use program::Said;
pub(crate) use program::apart;
pub use project::{ACTOR, PROJECT, Project};
pub(crate) use project::{PROBE_SERVER, grade_table, quoted};
pub use record::{Record, Recorded};
pub use server::{Act, Answer, ScriptError, ServerScript, ToolScript, serve};
pub use tool::CountingTool;
pub use twice::Twice;
