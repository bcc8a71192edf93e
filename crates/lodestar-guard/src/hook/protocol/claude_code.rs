//! Claude Code: `session_id`, `tool_name`, `tool_input`; blocked by a decision in JSON and exit code 2.
//!
//! Looked at in version 2.1.326, whose inputs are kept in `recorded/claude-code`.

use serde_json::{Value, json};

use super::super::{Client, Event, Kind};
use super::{Fields, Moment, ProtocolError, decided};

pub(super) const EVENTS: &[(&str, Moment)] = &[
    ("SessionStart", Moment::Started),
    ("SessionEnd", Moment::Ended),
    ("UserPromptSubmit", Moment::Prompt),
    ("PreToolUse", Moment::Before),
    ("PostToolUse", Moment::After),
    ("PostToolUseFailure", Moment::After),
];

pub(super) const MERE: &[&str] = &[
    "InstructionsLoaded",
    "Notification",
    "PostCompact",
    "PreCompact",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
];

/// What acts where nobody looks, or later, or elsewhere, is no note: it stays [`Kind::Other`].
pub(super) const TOOLS: &[(&str, Kind)] = &[
    ("Read", Kind::Read),
    ("Glob", Kind::Find),
    ("Grep", Kind::Find),
    ("LSP", Kind::Find),
    ("Edit", Kind::Edit),
    ("MultiEdit", Kind::Edit),
    ("NotebookEdit", Kind::Edit),
    ("Write", Kind::Write),
    ("Bash", Kind::Shell),
    // A command that runs on and whose lines are read as they come.
    ("Monitor", Kind::Shell),
    ("WebFetch", Kind::Fetch),
    ("WebSearch", Kind::Search),
    ("Agent", Kind::Agent),
    ("Task", Kind::Agent),
    ("Workflow", Kind::Agent),
    ("AskUserQuestion", Kind::Note),
    ("EnterPlanMode", Kind::Note),
    ("ExitPlanMode", Kind::Note),
    ("TodoWrite", Kind::Note),
    ("TaskCreate", Kind::Note),
    ("TaskGet", Kind::Note),
    ("TaskList", Kind::Note),
    ("TaskUpdate", Kind::Note),
    ("BashOutput", Kind::Note),
    ("TaskOutput", Kind::Note),
    ("ListAgents", Kind::Note),
    ("CronList", Kind::Note),
    ("ToolSearch", Kind::Note),
    ("ReportFindings", Kind::Note),
    ("StructuredOutput", Kind::Note),
    ("WaitForMcpServers", Kind::Note),
    ("EndConversation", Kind::Note),
    ("ListMcpResourcesTool", Kind::Mcp),
    ("ReadMcpResourceTool", Kind::Mcp),
    ("ReadMcpResourceDirTool", Kind::Mcp),
    ("RefreshMcpTools", Kind::Mcp),
    // PowerShell is no shell that can be taken apart here.
    ("PowerShell", Kind::Other),
    ("REPL", Kind::Other),
    ("Skill", Kind::Other),
    ("SendMessage", Kind::Other),
    ("SendUserMessage", Kind::Other),
    ("SendFeedback", Kind::Other),
    ("PushNotification", Kind::Other),
    ("ReadNotifications", Kind::Other),
    ("RemoteTrigger", Kind::Other),
    ("CronCreate", Kind::Other),
    ("CronDelete", Kind::Other),
    ("ScheduleWakeup", Kind::Other),
    ("Sleep", Kind::Other),
    ("TaskStop", Kind::Other),
    ("KillShell", Kind::Other),
    ("EnterWorktree", Kind::Other),
    ("ExitWorktree", Kind::Other),
    ("Artifact", Kind::Other),
    ("Brief", Kind::Other),
    ("ClaudeDesign", Kind::Other),
    ("Config", Kind::Other),
    ("Projects", Kind::Other),
    ("ProposeGoal", Kind::Other),
    ("TeamCreate", Kind::Other),
    ("TeamDelete", Kind::Other),
];

/// How the client announces what a sub-agent brought back, in the place of a prompt.
const NOTIFICATION: &str = "<task-notification>";

pub(super) fn read(
    told: &str,
    moment: Moment,
    fields: &mut Fields,
) -> Result<(String, Option<Event>), ProtocolError> {
    let conversation = fields.name("session_id")?;
    let event = match moment {
        Moment::Started => Some(Event::Started),
        Moment::Ended => Some(Event::Ended {
            reason: fields.name("reason")?,
        }),
        Moment::Prompt => prompt(fields)?,
        Moment::Before => Some(Event::Before {
            r#use: fields.tool_use(Client::ClaudeCode)?,
        }),
        Moment::After => {
            let failed = told == "PostToolUseFailure";
            let result = match failed {
                true => json!({"error": fields.text("error")?}),
                false => fields.value("tool_response").unwrap_or(Value::Null),
            };
            Some(Event::After {
                r#use: fields.tool_use(Client::ClaudeCode)?,
                result,
                failed,
            })
        }
    };
    Ok((conversation, event))
}

/// What the user said. The client also puts words of its own there (a sub-agent is done, a wake-up that the model
/// asked for is due), which must not become what the user wants.
fn prompt(fields: &mut Fields) -> Result<Option<Event>, ProtocolError> {
    let text = fields.text("prompt")?;
    let source = fields.name_if_any("source")?;
    let is_the_users = match source.as_deref() {
        None | Some("user" | "sdk") => !text.trim_start().starts_with(NOTIFICATION),
        Some(_) => false,
    };
    Ok(is_the_users.then_some(Event::Prompt { text }))
}

pub(super) fn refusal(moment: Moment, reason: &str) -> Value {
    decided(moment, reason)
}
