//! The JSON schema of a report, published in `docs/reference/report.schema.json`. What each member is for
//! is said here once more, for those who read the schema and not the code; tests hold real reports
//! against it, member by member.

mod parts;

use serde_json::{Map, Value, json};

use crate::examine::Because;
use crate::model::FORMAT;

/// A member: its name, whether it is always there, what it is for, what it takes.
type Member = (&'static str, Need, &'static str, Value);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

use Need::{May, Must};

/// The schema: a report, or why there is none.
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lodestar trust report",
        "description": "What `lodestar report --format json` writes. Numbers named `seq` or listed in `events` are events of the session's log, or of the session that is named beside them. Strings quote what others wrote, bounded with a mark: show them inert.",
        "oneOf": [part("report"), refused()],
        "$defs": parts::all(),
    })
}

/// The schema as it is published.
pub fn reference_page() -> String {
    format!("{:#}\n", json_schema())
}

fn refused() -> Value {
    let because = [
        Because::NotIntact,
        Because::DoesNotFollow,
        Because::DefencesOff,
        Because::Underivable,
    ];
    let wrong = object(vec![
        ("file", May, "The file, where one is concerned.", text()),
        ("seq", May, "The event.", seq()),
        ("offset", May, "Where in the file, in bytes.", count()),
        ("problem", Must, "What is wrong, inert.", text()),
    ]);
    let refusal = object(vec![
        ("project", Must, "The project.", text()),
        ("session", Must, "The session.", text()),
        ("because", Must, "Why, in a word.", words_of(&because)),
        ("problems", Must, "Everything that is wrong.", list(wrong)),
    ]);
    object(vec![
        ("format", Must, "What this is.", json!({"const": FORMAT})),
        ("refused", Must, "Why there is no report.", refusal),
    ])
}

fn object(members: Vec<Member>) -> Value {
    let required: Vec<&str> = members
        .iter()
        .filter(|(_, need, ..)| *need == Must)
        .map(|(name, ..)| *name)
        .collect();
    let mut properties = Map::new();
    for (name, _, about, mut schema) in members {
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), about.into());
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn part(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn seq() -> Value {
    count()
}

fn events() -> Value {
    list(seq())
}

fn digest() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// One of these words, as they are written.
fn words_of<T: serde::Serialize>(words: &[T]) -> Value {
    let words: Vec<Value> = words.iter().map(|word| json!(word)).collect();
    json!({"enum": words})
}
