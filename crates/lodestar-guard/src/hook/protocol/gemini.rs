//! Gemini CLI: `BeforeTool`, `AfterTool`, `BeforeAgent`; blocked by `decision: deny`.
//!
//! Looked at in version 0.61.0, whose inputs are kept in `recorded/gemini`. It takes whatever JSON it finds on
//! standard output, or else on standard error, before it looks at the exit code: a refusal therefore always says
//! its decision in JSON.

use serde_json::{Value, json};

use super::super::{Client, Event, Kind};
use super::{Fields, Moment, ProtocolError};

pub(super) const EVENTS: &[(&str, Moment)] = &[
    ("SessionStart", Moment::Started),
    ("SessionEnd", Moment::Ended),
    ("BeforeAgent", Moment::Prompt),
    ("BeforeTool", Moment::Before),
    ("AfterTool", Moment::After),
];

pub(super) const MERE: &[&str] = &["AfterAgent", "AfterModel", "Notification", "PreCompress"];

pub(super) const TOOLS: &[(&str, Kind)] = &[
    ("read_file", Kind::Read),
    ("read_many_files", Kind::Read),
    ("list_directory", Kind::Find),
    ("glob", Kind::Find),
    ("grep_search", Kind::Find),
    ("search_file_content", Kind::Find),
    ("replace", Kind::Edit),
    ("write_file", Kind::Write),
    ("run_shell_command", Kind::Shell),
    ("web_fetch", Kind::Fetch),
    ("google_web_search", Kind::Search),
    ("invoke_agent", Kind::Agent),
    ("codebase_investigator", Kind::Agent),
    ("ask_user", Kind::Note),
    ("write_todos", Kind::Note),
    ("update_topic", Kind::Note),
    ("complete_task", Kind::Note),
    ("enter_plan_mode", Kind::Note),
    ("exit_plan_mode", Kind::Note),
    ("get_internal_docs", Kind::Note),
    ("tracker_create_task", Kind::Note),
    ("tracker_update_task", Kind::Note),
    ("tracker_get_task", Kind::Note),
    ("tracker_list_tasks", Kind::Note),
    ("tracker_add_dependency", Kind::Note),
    ("tracker_visualize", Kind::Note),
    ("list_mcp_resources", Kind::Mcp),
    ("read_mcp_resource", Kind::Mcp),
    // What it keeps in memory it reads as instructions in every later conversation.
    ("save_memory", Kind::Other),
    ("activate_skill", Kind::Other),
    ("take_snapshot", Kind::Other),
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
            r#use: fields.tool_use(Client::Gemini)?,
        },
        Moment::After => {
            let result = fields.value("tool_response").unwrap_or(Value::Null);
            let error = result.get("error").filter(|error| !error.is_null());
            Event::After {
                failed: error.is_some(),
                r#use: fields.tool_use(Client::Gemini)?,
                result,
            }
        }
    };
    Ok((conversation, Some(event)))
}

pub(super) fn refusal(reason: &str) -> Value {
    json!({"decision": "deny", "reason": reason})
}
