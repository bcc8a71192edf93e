//! What scenarios are made of: projects on disk, agents that speak MCP to the real proxy, servers that do as
//! they were scripted, people with keys, firewalls, and the log read back.

mod agent;
mod mind;
mod people;
mod project;
mod record;
mod server;
mod tool;

pub use agent::{Agent, Called};
pub use mind::{FILES, Mind, Text, about};
pub use people::{Asking, Person, answering};
pub use project::{ACTOR, PROJECT, Project};
pub use record::{Record, Recorded};
pub use server::{Act, Answer, ScriptError, ServerScript, ToolScript, serve};
pub use tool::CountingTool;
