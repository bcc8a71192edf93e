//! What clients say through hooks, read; and Lodestar's answer, in each client's own words.
//!
//! A client's module holds its events, its table of built-in tools and the form of its answers; what they have
//! in common stands here. Reading is strict where something hangs on it (one JSON object with one meaning,
//! fields of the right type, the event that was announced) and takes no offence at fields that it does not
//! know. What cannot be read is an error, and an error is answered with [`unavailable`]: closed. *Proceed* says
//! nothing at all, so that the client's own rules still apply.

mod claude_code;
mod codex;
mod cursor;
mod fields;
mod gemini;

#[cfg(test)]
mod tests;

use lodestar_core::canonical::{self, CanonicalError};
use lodestar_core::name::Excerpt;
use serde_json::{Value, json};
use thiserror::Error;

use super::{Answer, Client, Event, Incoming, Kind};
use fields::Fields;

/// The most that a client may say at once. Results of tools can be long; a file that is longer than this is
/// not written by an agent.
pub const MAX_INPUT: usize = 16 << 20;

/// Why nothing came of what a client said.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Longer than [`MAX_INPUT`].
    #[error("what the client says is longer than {MAX_INPUT} bytes")]
    TooLong,
    /// Not JSON, or JSON with more than one meaning.
    #[error("what the client says cannot be read: {0}")]
    Json(#[from] CanonicalError),
    /// JSON, but no object.
    #[error("what the client says is no JSON object")]
    NoObject,
    /// A field that has to be there.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// A field of another type.
    #[error("the field `{field}` is not {wanted}")]
    WrongType {
        /// Which.
        field: &'static str,
        /// What it has to be.
        wanted: &'static str,
    },
    /// A text that stands for something and is empty, too long or has control characters.
    #[error("the field `{0}` is no name: empty, too long, or with control characters")]
    NoName(&'static str),
    /// An event that could be one before something happens, for all that is known here.
    #[error("nobody here knows the event `{0}`")]
    UnknownEvent(String),
    /// The client was to speak of another event.
    #[error("the hook was installed for `{installed}` and is told of `{told}`")]
    OtherEvent {
        /// What the command line says.
        installed: String,
        /// What the client says.
        told: String,
    },
}

/// What is said to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
    /// With this exit code.
    pub exit: u8,
}

impl Spoken {
    /// Nothing at all: no approval either.
    pub fn nothing() -> Self {
        Self {
            stdout: String::new(),
            stderr: String::new(),
            exit: 0,
        }
    }

    /// In words and by the exit code with which every client blocks. The words are never none: a client may take
    /// a block without words for no block.
    fn blocked(stdout: &Value, reason: &str) -> Self {
        Self {
            stdout: stdout.to_string(),
            stderr: format!("{reason}\n"),
            exit: BLOCKS,
        }
    }

    /// A complaint that stops nothing, where nothing can be stopped.
    fn complaint(reason: &str) -> Self {
        Self {
            stdout: String::new(),
            stderr: format!("{reason}\n"),
            exit: COMPLAINS,
        }
    }
}

/// The exit code that blocks, in all four clients.
const BLOCKS: u8 = 2;

/// An exit code that every client takes for a fault of the hook, and goes on.
const COMPLAINS: u8 = 1;

/// When in a conversation an event happens: what can still be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A conversation begins. No client lets a hook stop that.
    Started,
    /// A conversation ends.
    Ended,
    /// The user has spoken; nothing was done yet.
    Prompt,
    /// A tool is about to be used.
    Before,
    /// A tool was used.
    After,
}

impl Moment {
    /// Of what was read.
    fn of(event: &Event) -> Self {
        match event {
            Event::Started => Self::Started,
            Event::Ended { .. } => Self::Ended,
            Event::Prompt { .. } => Self::Prompt,
            Event::Before { .. } => Self::Before,
            Event::After { .. } => Self::After,
        }
    }
}

/// The events of a client that are spoken, with the moment that each is of.
pub fn events(client: Client) -> &'static [(&'static str, Moment)] {
    match client {
        Client::ClaudeCode => claude_code::EVENTS,
        Client::Codex => codex::EVENTS,
        Client::Cursor => cursor::EVENTS,
        Client::Gemini => gemini::EVENTS,
    }
}

/// Events of a client that tell of something and could stop nothing that is not told of otherwise. They say nothing
/// to Lodestar, and answering them with a refusal would mean something else to the client: one of `Stop` is to go on.
fn mere(client: Client) -> &'static [&'static str] {
    match client {
        Client::ClaudeCode => claude_code::MERE,
        Client::Codex => codex::MERE,
        Client::Cursor => cursor::MERE,
        Client::Gemini => gemini::MERE,
    }
}

/// The built-in tools of a client, by the names that its hooks have for them.
pub fn tools(client: Client) -> &'static [(&'static str, Kind)] {
    match client {
        Client::ClaudeCode => claude_code::TOOLS,
        Client::Codex => codex::TOOLS,
        Client::Cursor => cursor::TOOLS,
        Client::Gemini => gemini::TOOLS,
    }
}

fn moment(client: Client, event: &str) -> Option<Moment> {
    let known = events(client).iter().find(|(name, _)| *name == event);
    known.map(|(_, moment)| *moment)
}

/// What sort of tool this is; one that nobody knows is [`Kind::Other`].
fn kind(client: Client, tool: &str) -> Kind {
    let is_mcp = match client {
        Client::ClaudeCode | Client::Codex => tool.starts_with("mcp__"),
        Client::Cursor => tool.starts_with("MCP:"),
        Client::Gemini => tool.starts_with("mcp_"),
    };
    if is_mcp {
        return Kind::Mcp;
    }
    let known = tools(client).iter().find(|(name, _)| *name == tool);
    known.map_or(Kind::Other, |(_, kind)| *kind)
}

/// Reads what a client said. `event_name` is what the hook was installed for, if the command line says so.
/// Nothing comes of an event that is known to say nothing to Lodestar; one that nobody knows is an error.
pub fn read(
    client: Client,
    event_name: Option<&str>,
    stdin: &[u8],
) -> Result<Option<Incoming>, ProtocolError> {
    if stdin.len() > MAX_INPUT {
        return Err(ProtocolError::TooLong);
    }
    let Value::Object(object) = canonical::parse(stdin)? else {
        return Err(ProtocolError::NoObject);
    };
    let mut fields = Fields::of(object);
    let told = fields.name("hook_event_name")?;
    if let Some(installed) = event_name.filter(|installed| *installed != told) {
        return Err(ProtocolError::OtherEvent {
            installed: Excerpt::of(installed).to_string(),
            told: Excerpt::of(&told).to_string(),
        });
    }
    let moment = match moment(client, &told) {
        Some(moment) => moment,
        None if mere(client).contains(&told.as_str()) => return Ok(None),
        None => {
            let told = Excerpt::of(&told).to_string();
            return Err(ProtocolError::UnknownEvent(told));
        }
    };
    let (conversation, event) = match client {
        Client::ClaudeCode => claude_code::read(&told, moment, &mut fields)?,
        Client::Codex => codex::read(moment, &mut fields)?,
        Client::Cursor => cursor::read(&told, moment, &mut fields)?,
        Client::Gemini => gemini::read(moment, &mut fields)?,
    };
    let cwd = match client {
        Client::Cursor => cursor::cwd(&mut fields)?,
        Client::ClaudeCode | Client::Codex | Client::Gemini => Some(fields.path("cwd")?),
    };
    Ok(event.map(|event| Incoming {
        client,
        conversation,
        cwd,
        event,
    }))
}

/// The answer as the client takes it.
pub fn answer(client: Client, to: &Incoming, answer: &Answer) -> Spoken {
    match answer {
        Answer::Proceed => Spoken::nothing(),
        Answer::Refuse { reason } => refusal(client, Moment::of(&to.event), reason),
    }
}

/// What is said where there is no answer, because nobody is there to give one or because the client could not
/// be understood. What can still be stopped is stopped; an event that nobody knows could be one of those.
pub fn unavailable(client: Client, event_name: Option<&str>, reason: &str) -> Spoken {
    let moment = event_name.and_then(|name| moment(client, name));
    refusal(client, moment.unwrap_or(Moment::Before), &unjudged(reason))
}

/// The same for what was understood.
pub fn unanswered(to: &Incoming, reason: &str) -> Spoken {
    refusal(to.client, Moment::of(&to.event), &unjudged(reason))
}

fn unjudged(reason: &str) -> String {
    format!("Lodestar cannot judge this, so it must not happen: {reason}")
}

fn refusal(client: Client, moment: Moment, reason: &str) -> Spoken {
    // A block without words is none in some clients.
    let reason = match reason.trim() {
        "" => "Lodestar refuses this",
        said => said,
    };
    match (moment, client) {
        (Moment::Started | Moment::Ended, _) => Spoken::complaint(reason),
        (_, Client::ClaudeCode) => Spoken::blocked(&claude_code::refusal(moment, reason), reason),
        (_, Client::Codex) => Spoken::blocked(&codex::refusal(moment, reason), reason),
        (_, Client::Gemini) => Spoken::blocked(&gemini::refusal(reason), reason),
        // What was done cannot be taken back there, nor its result be withheld.
        (Moment::After, Client::Cursor) => Spoken::complaint(reason),
        (_, Client::Cursor) => Spoken::blocked(&cursor::refusal(moment, reason), reason),
    }
}

/// As Claude Code takes it, and Codex after it.
fn decided(moment: Moment, reason: &str) -> Value {
    match moment {
        Moment::Before => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}),
        _ => json!({"decision": "block", "reason": reason}),
    }
}
