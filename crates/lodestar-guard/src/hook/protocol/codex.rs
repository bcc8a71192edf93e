//! Codex: the words of Claude Code, with a `turn_id`; commands are called `Bash`, patches `apply_patch`.
//!
//! Looked at in version 0.169.0, whose inputs are kept in `recorded/codex`. On exit code 2 it reads standard
//! error and nothing else.

use serde_json::Value;

use super::super::{Client, Event, Kind};
use super::{Fields, Moment, ProtocolError, decided};

pub(super) const EVENTS: &[(&str, Moment)] = &[
    ("SessionStart", Moment::Started),
    ("SessionEnd", Moment::Ended),
    ("UserPromptSubmit", Moment::Prompt),
    ("PreToolUse", Moment::Before),
    ("PostToolUse", Moment::After),
];

pub(super) const MERE: &[&str] = &["PostCompact", "PreCompact", "Stop", "SubagentStop"];

pub(super) const TOOLS: &[(&str, Kind)] = &[
    // What the model calls `exec_command`, `shell` or `shell_command`.
    ("Bash", Kind::Shell),
    ("exec_command", Kind::Shell),
    ("shell", Kind::Shell),
    ("shell_command", Kind::Shell),
    ("local_shell", Kind::Shell),
    ("apply_patch", Kind::Edit),
    ("view_image", Kind::Read),
    ("web_search", Kind::Search),
    ("spawn_agent", Kind::Agent),
    ("update_plan", Kind::Note),
    ("get_goal", Kind::Note),
    ("create_goal", Kind::Note),
    ("update_goal", Kind::Note),
    ("request_user_input", Kind::Note),
    ("tool_search", Kind::Note),
    ("wait_agent", Kind::Note),
    ("list_agents", Kind::Note),
    ("get_context_remaining", Kind::Note),
    ("list_mcp_resources", Kind::Mcp),
    ("list_mcp_resource_templates", Kind::Mcp),
    ("read_mcp_resource", Kind::Mcp),
    // What is typed into a program that runs already.
    ("write_stdin", Kind::Other),
    ("send_input", Kind::Other),
    ("resume_agent", Kind::Other),
    ("close_agent", Kind::Other),
    ("interrupt_agent", Kind::Other),
    ("image_gen", Kind::Other),
    ("new_context", Kind::Other),
];

pub(super) fn read(
    moment: Moment,
    fields: &mut Fields,
) -> Result<(String, Option<Event>), ProtocolError> {
    let conversation = fields.name("session_id")?;
    let event = match moment {
        Moment::Started => Event::Started,
        Moment::Ended => Event::Ended {
            reason: fields.name("reason")?,
        },
        Moment::Prompt => Event::Prompt {
            text: fields.text("prompt")?,
        },
        Moment::Before => Event::Before {
            r#use: fields.tool_use(Client::Codex)?,
        },
        // It does not say whether a tool failed; the text does, for those who read it.
        Moment::After => Event::After {
            result: fields.value("tool_response").unwrap_or(Value::Null),
            r#use: fields.tool_use(Client::Codex)?,
            failed: false,
        },
    };
    Ok((conversation, Some(event)))
}

pub(super) fn refusal(moment: Moment, reason: &str) -> Value {
    decided(moment, reason)
}
