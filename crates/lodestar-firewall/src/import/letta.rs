//! Letta.
//!
//! - An agent file (`.af`) is `{"agents": […], "blocks": […], "files": […], …}`: blocks of core memory
//!   are `{id, label, value, limit, …}`, and each agent has its `messages`. Tools, sources and the
//!   system prompt are no memories.
//! - An agent file of the first generation is one agent, with `core_memory` and `messages`.
//! - The API gives agents with `memory.blocks`, and lists of blocks, of archival passages
//!   (`{id, text, tags, created_at, …}`, in a search as `{passage, score}`), and of messages, which
//!   then have a `message_type` and a `date`. Such lists are read bare or under their name.
//!
//! The content of a message is a text or a list of parts. Its text parts are the memory; if there are
//! others, such as reasoning or calls, all of it stays in the attributes.

use serde_json::Value;

use super::draft::{Draft, Fields};
use super::walk::{Holds, Item, Shape};
use super::{Aspect, SkipReason};

pub(super) static SHAPE: Shape = Shape {
    root,
    is_holder: |keys| keys.iter().any(|key| !matches!(agent(key), Holds::Nothing)),
    holder: agent,
    element,
    lines: false,
};

fn root(key: &str) -> Holds {
    match key {
        "agents" => Holds::Objects(agent),
        "archives" => Holds::Objects(archive),
        "results" => Holds::Records(element),
        "files" => Holds::Records(file),
        _ => agent(key),
    }
}

fn agent(key: &str) -> Holds {
    match key {
        "blocks" | "memory_blocks" | "core_memory" => Holds::Records(block),
        "memory" => Holds::Object(core_memory),
        "messages" => Holds::Records(message),
        _ => archive(key),
    }
}

fn core_memory(key: &str) -> Holds {
    match key {
        "blocks" | "file_blocks" => Holds::Records(block),
        _ => Holds::Nothing,
    }
}

fn archive(key: &str) -> Holds {
    match key {
        "passages" | "archival_memory" => Holds::Records(passage),
        _ => Holds::Nothing,
    }
}

fn fields(item: Item) -> Result<Fields, SkipReason> {
    match item {
        Item::Fields(fields) => Ok(fields),
        Item::Text(_) => Err(SkipReason::NotARecord),
    }
}

/// A record whose list does not say what it is.
fn element(item: Item) -> Result<Draft, SkipReason> {
    let fields = fields(item)?;
    if fields.has("message_type") || fields.has("role") {
        message(Item::Fields(fields))
    } else if fields.has("value") {
        block(Item::Fields(fields))
    } else {
        passage(Item::Fields(fields))
    }
}

fn block(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?;
    let text = fields.take_text(&["`value`"])?;
    fields.into_draft(Aspect::Block, text, &["id"], &["created_at"])
}

fn passage(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?.unwrapped("passage", "search");
    let text = fields.take_text(&["`text`", "`content`"])?;
    fields.into_draft(Aspect::Passage, text, &["id"], &["created_at", "timestamp"])
}

fn file(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?;
    let text = fields.take_text(&["`content`"])?;
    let times = &["created_at", "file_creation_date"];
    fields.into_draft(Aspect::File, text, &["id"], times)
}

fn message(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?;
    let calls = |fields: &Fields| {
        let some_calls = fields.0.get("tool_calls").and_then(Value::as_array);
        fields.has("tool_call") || some_calls.is_some_and(|calls| !calls.is_empty())
    };
    let said = match fields.0.get("content") {
        Some(Value::Array(parts)) => Ok(text_parts(parts)),
        _ => fields.take_text(&["`content`", "`text`", "`reasoning`", "`tool_return`"]),
    };
    let text = match said {
        Ok(text) if text.trim().is_empty() && calls(&fields) => Err(SkipReason::OnlyCalls),
        Err(SkipReason::NoText { .. }) if calls(&fields) => Err(SkipReason::OnlyCalls),
        said => said,
    }?;
    if let Some(Value::Array(parts)) = fields.0.get("content")
        && matches!(parts.as_slice(), [only] if only["type"] == "text")
    {
        fields.0.remove("content");
    }
    fields.into_draft(Aspect::Message, text, &["id"], &["created_at", "date"])
}

fn text_parts(parts: &[Value]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Value::String(text) => Some(text.as_str()),
        part if part["type"] == "text" => part["text"].as_str(),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
