//! What scenarios are made of: projects on disk, agents that speak MCP to the real proxy, servers that do as
//! they were scripted, people with keys, and the log read back.

mod agent;
mod people;
mod program;
mod project;
mod readings;
mod record;
mod server;
mod tool;

pub use agent::{Agent, Called};
pub use people::{Asking, Person, answering};
pub use program::Said;
pub use project::{ACTOR, PROJECT, Project};
pub use record::{Record, Recorded};
pub use server::{Act, Answer, ScriptError, ServerScript, ToolScript, serve};
pub use tool::CountingTool;
