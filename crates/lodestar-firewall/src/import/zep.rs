//! Zep, and Graphiti beneath it.
//!
//! - A graph is `edges`, `nodes` and `episodes`, as a search gives them together and as Graphiti dumps
//!   them: an edge says a `fact`, a node has a `name` and a `summary`, an episode has `content`. Newer
//!   versions add hyperedges, observations and summaries of threads and documents.
//! - The memory of a session is `{messages, facts, relevant_facts, summary}`; facts are texts or
//!   `{uuid, fact, rating, created_at}`. Sessions, in newer versions threads, come in lists, and carry
//!   these fields themselves or under `memory`.
//! - Lists come bare, under their name, or as a page with `items`; a search over sessions gives
//!   `results` of `{fact | message | summary, score, session_id}`.
//!
//! An edge or fact that Zep holds to be over (`invalid_at`, `expired_at`) is a record like any other.

use super::draft::{Draft, Fields};
use super::walk::{Holds, Item, Shape};
use super::{Aspect, SkipReason};

pub(super) static SHAPE: Shape = Shape {
    root,
    is_holder,
    holder: graph,
    element,
    lines: false,
};

fn root(key: &str) -> Holds {
    match key {
        "users" | "graphs" | "groups" => Holds::Objects(graph),
        "graph" => Holds::Object(graph),
        "results" | "items" => Holds::Records(element),
        _ => graph(key),
    }
}

fn graph(key: &str) -> Holds {
    match key {
        "sessions" | "threads" => Holds::Objects(session),
        _ => session(key),
    }
}

fn session(key: &str) -> Holds {
    match key {
        "memory" => Holds::Object(lists),
        _ => lists(key),
    }
}

fn lists(key: &str) -> Holds {
    match key {
        "edges" | "hyperedges" | "facts" | "relevant_facts" => Holds::Records(fact),
        "nodes" | "communities" | "observations" => Holds::Records(node),
        "episodes" => Holds::Records(episode),
        "messages" => Holds::Records(message),
        "summaries" | "thread_summaries" | "document_summaries" => Holds::Records(summary),
        "summary" => Holds::Record(summary),
        _ => Holds::Nothing,
    }
}

/// Edges and nodes list their episodes too, as ids; what a record says of itself tells it apart from a
/// session or a graph.
fn is_holder(keys: &[String]) -> bool {
    let says = |key: &String| matches!(key.as_str(), "fact" | "content" | "message" | "name");
    let holds = |key: &String| key != "summary" && !matches!(graph(key), Holds::Nothing);
    !keys.iter().any(says) && keys.iter().any(holds)
}

const IDS: &[&str] = &["uuid", "uuid_", "id"];
const TIMES: &[&str] = &["created_at"];

fn fields(item: Item) -> Result<Fields, SkipReason> {
    match item {
        Item::Fields(fields) => Ok(fields),
        Item::Text(_) => Err(SkipReason::NotARecord),
    }
}

/// A record whose list does not say what it is.
fn element(item: Item) -> Result<Draft, SkipReason> {
    let fields = fields(item)?;
    for (key, read) in [
        ("fact", fact as fn(Item) -> Result<Draft, SkipReason>),
        ("message", message),
        ("summary", summary),
    ] {
        if fields.has_object(key) {
            return read(Item::Fields(fields.unwrapped(key, "search")));
        }
    }
    let of_data = fields.has("source") || fields.has("source_description");
    if fields.has("fact") {
        fact(Item::Fields(fields))
    } else if fields.has("content") {
        match !of_data && (fields.has("role") || fields.has("role_type")) {
            true => message(Item::Fields(fields)),
            false => episode(Item::Fields(fields)),
        }
    } else if fields.has("summary") && !fields.has("name") && !fields.has("labels") {
        summary(Item::Fields(fields))
    } else if fields.has("summary") {
        node(Item::Fields(fields))
    } else {
        let expected = &["`fact`", "`content`", "`summary`"];
        Err(SkipReason::NoText { expected })
    }
}

fn fact(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = match item {
        Item::Text(text) => return Ok(Draft::of_text(Aspect::Fact, text)),
        Item::Fields(fields) => fields,
    };
    let text = fields.take_text(&["`fact`"])?;
    fields.into_draft(Aspect::Fact, text, IDS, TIMES)
}

fn node(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?;
    let text = fields.take_text(&["`summary`"])?;
    fields.into_draft(Aspect::NodeSummary, text, IDS, TIMES)
}

fn episode(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?;
    let text = fields.take_text(&["`content`"])?;
    fields.into_draft(Aspect::Episode, text, IDS, TIMES)
}

fn message(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = fields(item)?;
    let text = fields.take_text(&["`content`"])?;
    fields.into_draft(Aspect::Message, text, IDS, TIMES)
}

fn summary(item: Item) -> Result<Draft, SkipReason> {
    let mut fields = match item {
        Item::Text(text) => return Ok(Draft::of_text(Aspect::Summary, text)),
        Item::Fields(fields) => fields,
    };
    let text = fields.take_text(&["`content`", "`summary`"])?;
    fields.into_draft(Aspect::Summary, text, IDS, TIMES)
}
