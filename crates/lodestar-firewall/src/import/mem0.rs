//! mem0.
//!
//! - `get_all` and `search` give `{"results": [memory, …]}`, the platform with `count`, `next` and
//!   `previous` around it, older versions the bare list. A memory is `{id, memory, hash, metadata,
//!   user_id, created_at, updated_at, …}`.
//! - With graph memory there is `relations` beside `results`: `{source, relationship, target}`, where
//!   a search says `destination`.
//! - A backup of OpenMemory is `{"user", "apps", "memories": [{id, content, state, …}], …}`; beside it
//!   lies a file with one such memory per line. Its API gives pages with `items`, and times in seconds.
//! - A memory export of the platform has the schema that its user made up; it is read if that schema
//!   keeps `memories` or `results`.
//! - A dump of the vector store has rows `{id, payload: {data, hash, created_at, …}}`.

use serde_json::Value;

use super::draft::{Draft, Fields};
use super::walk::{Holds, Item, Shape};
use super::{Aspect, SkipReason};

pub(super) static SHAPE: Shape = Shape {
    root,
    is_holder: |_| false,
    holder: |_| Holds::Nothing,
    element: memory,
    lines: true,
};

fn root(key: &str) -> Holds {
    match key {
        "results" | "memories" | "items" => Holds::Records(memory),
        "relations" => Holds::Records(relation),
        _ => Holds::Nothing,
    }
}

fn memory(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = match item {
        Item::Text(text) => return Ok(Draft::of_text(Aspect::Memory, text)),
        Item::Fields(fields) => fields,
    };
    // OpenMemory keeps what was deleted, as a state.
    if fields.is("state", "deleted") {
        return Err(SkipReason::Deleted);
    }
    if !fields.has("memory") && fields.has_object("payload") {
        return row(fields);
    }
    let text = fields.take_text(&["`memory`", "`content`", "`text`", "`data`"])?;
    fields.into_draft(Aspect::Memory, text, &["id"], &["created_at"])
}

/// A row of the vector store: the memory is in its payload, the id beside it.
fn row(mut fields: Fields) -> Result<Draft, SkipReason> {
    let Some(Value::Object(payload)) = fields.0.remove("payload") else {
        return Err(SkipReason::NotARecord);
    };
    let mut payload = Fields(payload);
    let text = payload.take_text(&["`data`", "`memory`"])?;
    let inner = payload.into_draft(Aspect::Memory, text, &[], &["created_at"])?;
    fields
        .0
        .insert("payload".to_owned(), Value::Object(inner.attributes));
    let outer = fields.into_draft(Aspect::Memory, inner.text, &["id"], &[])?;
    Ok(Draft {
        created_at: inner.created_at,
        ..outer
    })
}

/// Nobody wrote a relation as a text, so its three words in a row are one.
fn relation(item: Item) -> Result<Draft, SkipReason> {
    let Item::Fields(mut fields) = item else {
        return Err(SkipReason::NotARecord);
    };
    let text = [
        fields.take_text(&["`source`"])?,
        fields.take_text(&["`relationship`", "`relation`"])?,
        fields.take_text(&["`target`", "`destination`"])?,
    ];
    if text.iter().any(|word| word.trim().is_empty()) {
        return Err(SkipReason::EmptyText);
    }
    fields.into_draft(Aspect::Relation, text.join(" "), &["id"], &["created_at"])
}
