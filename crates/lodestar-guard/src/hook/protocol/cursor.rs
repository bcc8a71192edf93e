//! Cursor: `preToolUse` and `postToolUse` for every tool, older events for commands, files and MCP.
//!
//! It comes in no package that could be run here: this is by its documentation, and so are the inputs in
//! `recorded/cursor`. The older events name no tool and give what is used in fields of their own, which become
//! the arguments under the names that `preToolUse` has for them.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::super::{Client, Event, Kind, Use};
use super::{Fields, Moment, ProtocolError};

pub(super) const EVENTS: &[(&str, Moment)] = &[
    ("sessionStart", Moment::Started),
    ("sessionEnd", Moment::Ended),
    ("beforeSubmitPrompt", Moment::Prompt),
    ("preToolUse", Moment::Before),
    ("postToolUse", Moment::After),
    ("postToolUseFailure", Moment::After),
    ("beforeShellExecution", Moment::Before),
    ("afterShellExecution", Moment::After),
    ("beforeMCPExecution", Moment::Before),
    ("afterMCPExecution", Moment::After),
    ("beforeReadFile", Moment::Before),
    ("beforeTabFileRead", Moment::Before),
    ("afterFileEdit", Moment::After),
    ("afterTabFileEdit", Moment::After),
    ("subagentStart", Moment::Before),
];

pub(super) const MERE: &[&str] = &[
    "afterAgentResponse",
    "afterAgentThought",
    "preCompact",
    "stop",
    "subagentStop",
];

pub(super) const TOOLS: &[(&str, Kind)] = &[
    ("Read", Kind::Read),
    ("TabRead", Kind::Read),
    ("Grep", Kind::Find),
    ("Glob", Kind::Find),
    ("LS", Kind::Find),
    ("SemanticSearch", Kind::Find),
    ("ReadLints", Kind::Find),
    ("Edit", Kind::Edit),
    ("StrReplace", Kind::Edit),
    ("EditNotebook", Kind::Edit),
    ("TabWrite", Kind::Edit),
    ("Write", Kind::Write),
    ("Shell", Kind::Shell),
    ("WebFetch", Kind::Fetch),
    ("WebSearch", Kind::Search),
    ("Task", Kind::Agent),
    ("TodoWrite", Kind::Note),
    ("AskQuestion", Kind::Note),
    ("Delete", Kind::Other),
];

pub(super) fn read(
    told: &str,
    moment: Moment,
    fields: &mut Fields,
) -> Result<(String, Option<Event>), ProtocolError> {
    // A session that starts or ends may have its id alone; it is that of the conversation.
    let conversation = match fields.name_if_any("conversation_id")? {
        Some(conversation) => conversation,
        None => fields
            .name_if_any("session_id")?
            .ok_or(ProtocolError::Missing("conversation_id"))?,
    };
    let event = match moment {
        Moment::Started => Event::Started,
        Moment::Ended => Event::Ended {
            reason: fields.name("reason")?,
        },
        Moment::Prompt => Event::Prompt {
            text: fields.text("prompt")?,
        },
        Moment::Before => Event::Before {
            r#use: r#use(told, fields)?,
        },
        Moment::After => after(told, fields)?,
    };
    Ok((conversation, Some(event)))
}

/// Where a command runs; else the first folder that is open.
pub(super) fn cwd(fields: &mut Fields) -> Result<Option<PathBuf>, ProtocolError> {
    const ROOTS: &str = "workspace_roots";
    if let Some(cwd) = fields.path_if_any("cwd")? {
        return Ok(Some(cwd));
    }
    let wrong = ProtocolError::WrongType {
        field: ROOTS,
        wanted: "a list of texts",
    };
    match fields.value(ROOTS) {
        None => Ok(None),
        Some(Value::Array(roots)) => match roots.into_iter().next() {
            None => Ok(None),
            Some(Value::String(root)) => Ok(Some(root.into())),
            Some(_) => Err(wrong),
        },
        Some(_) => Err(wrong),
    }
}

fn r#use(told: &str, fields: &mut Fields) -> Result<Use, ProtocolError> {
    let of = |tool: &str, kind, input| Use {
        tool: tool.to_owned(),
        kind,
        id: None,
        input,
    };
    let one = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    Ok(match told {
        "beforeShellExecution" | "afterShellExecution" => {
            let command = fields.text("command")?;
            of("Shell", Kind::Shell, one("command", command.into()))
        }
        "beforeReadFile" | "beforeTabFileRead" => {
            let file = fields.text("file_path")?;
            of("Read", Kind::Read, one("file_path", file.into()))
        }
        "afterFileEdit" | "afterTabFileEdit" => {
            let file = fields.text("file_path")?;
            let mut input = one("file_path", file.into());
            if let Some(edits) = fields.value("edits") {
                input.insert("edits".to_owned(), edits);
            }
            of("Write", Kind::Edit, input)
        }
        "beforeMCPExecution" | "afterMCPExecution" => {
            let tool = format!("MCP:{}", fields.name("tool_name")?);
            let input = spelled(fields, "tool_input")?;
            of(&tool, Kind::Mcp, input)
        }
        "subagentStart" => {
            let mut input = one("prompt", fields.text("task")?.into());
            if let Some(sort) = fields.text_if_any("subagent_type")? {
                input.insert("subagent_type".to_owned(), sort.into());
            }
            Use {
                id: fields.name_if_any("tool_call_id")?,
                ..of("Task", Kind::Agent, input)
            }
        }
        _ => fields.tool_use(Client::Cursor)?,
    })
}

/// Arguments that may be an object or the JSON text of one.
fn spelled(fields: &mut Fields, field: &'static str) -> Result<Map<String, Value>, ProtocolError> {
    let wrong = ProtocolError::WrongType {
        field,
        wanted: "an object",
    };
    match fields.value(field) {
        None => Err(ProtocolError::Missing(field)),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(Value::String(text)) => match lodestar_core::canonical::parse(text.as_bytes())? {
            Value::Object(arguments) => Ok(arguments),
            _ => Err(wrong),
        },
        Some(_) => Err(wrong),
    }
}

fn after(told: &str, fields: &mut Fields) -> Result<Event, ProtocolError> {
    let r#use = r#use(told, fields)?;
    let failed = told == "postToolUseFailure";
    let result = match told {
        "postToolUseFailure" => json!({"error": fields.text("error_message")?}),
        "postToolUse" => fields.value("tool_output").unwrap_or(Value::Null),
        "afterShellExecution" => fields.text("output")?.into(),
        "afterMCPExecution" => fields.value("result_json").unwrap_or(Value::Null),
        // What an edit did stands in its arguments.
        _ => Value::Null,
    };
    Ok(Event::After {
        r#use,
        result,
        failed,
    })
}

pub(super) fn refusal(moment: Moment, reason: &str) -> Value {
    match moment {
        Moment::Prompt => json!({"continue": false, "user_message": reason}),
        _ => json!({"permission": "deny", "user_message": reason, "agent_message": reason}),
    }
}
