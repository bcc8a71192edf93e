//! One line on what an event says.
//!
//! A payload may be anything a catalogue entry allows, now or in a later version, and parts of it
//! are untrusted. So the line is made from its shape: what usually matters first, every value
//! bounded and inert, and a count of what did not fit.

use lodestar_log::BlobRef;
use serde_json::{Map, Value};

use crate::{inert, words};

/// What a reader looks for first.
const FIRST: [&str; 12] = [
    "tool",
    "verdict",
    "title",
    "statement",
    "reason",
    "error",
    "text",
    "content",
    "outcome",
    "result",
    "server",
    "source",
];
/// What a value may take while others wait behind it.
const VALUE_COLUMNS: usize = 64;
/// A value that would have to be cut shorter than this is counted instead.
const FEWEST_COLUMNS: usize = 24;
const BETWEEN: &str = " · ";

/// The payload in at most `columns` columns.
pub(crate) fn summary(payload: &Value, columns: usize) -> String {
    let Value::Object(fields) = payload else {
        return inert::line(&payload.to_string(), columns);
    };
    let pieces = pieces(fields);
    let mut line = String::new();
    for (i, (key, value)) in pieces.iter().enumerate() {
        let left = pieces.len() - i - 1;
        let start = match i {
            0 => format!("{key}: "),
            _ => format!("{BETWEEN}{key}: "),
        };
        let taken = width(&line) + width(&start) + width(&more(left));
        let room = columns.saturating_sub(taken);
        let most = if left == 0 {
            room
        } else {
            room.min(VALUE_COLUMNS)
        };
        if i > 0 && room < FEWEST_COLUMNS && width(value) > room {
            line.push_str(&more(left + 1));
            break;
        }
        line.push_str(&start);
        line.push_str(&inert::line(value, most));
    }
    line
}

fn width(text: &str) -> usize {
    text.chars().map(inert::width).sum()
}

fn more(fields: usize) -> String {
    match fields {
        0 => String::new(),
        _ => format!("{BETWEEN}… (+{})", words::count(fields as u64, "field")),
    }
}

/// Keys, inert, and values as text, the ones that matter most first.
fn pieces(fields: &Map<String, Value>) -> Vec<(String, String)> {
    let blobs = blobs(fields);
    let lifted = |key: &str| {
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        blobs.iter().find(|blob| blob.at == pointer)
    };
    let rank = |key: &str| FIRST.iter().position(|first| *first == key);
    let mut keys: Vec<&String> = fields.keys().collect();
    keys.sort_by_key(|key| rank(key).unwrap_or(FIRST.len()));
    keys.into_iter()
        .filter(|key| blobs.is_empty() || *key != "blobs")
        .filter_map(|key| {
            let shown = match (&fields[key], lifted(key)) {
                (_, Some(blob)) => format!("({} in a blob)", words::bytes(blob.raw_bytes)),
                (Value::Null, None) => return None,
                (value, None) => short(value),
            };
            Some((inert::line(key, 32), shown))
        })
        .collect()
}

fn blobs(fields: &Map<String, Value>) -> Vec<BlobRef> {
    fields
        .get("blobs")
        .and_then(|list| serde_json::from_value(list.clone()).ok())
        .unwrap_or_default()
}

fn short(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.len() > 3 => {
            format!("[{}]", words::count(items.len() as u64, "item"))
        }
        Value::Object(fields) if fields.len() > 3 => {
            format!("{{{}}}", words::count(fields.len() as u64, "field"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_matters_comes_first_and_nothing_is_left_out_silently() {
        let payload =
            json!({"aaa": 1, "tool": "shell", "zzz": [1, 2], "verdict": "allow", "none": null});
        assert_eq!(
            summary(&payload, 200),
            "tool: shell · verdict: allow · aaa: 1 · zzz: [1,2]"
        );
        assert_eq!(
            summary(&payload, 50),
            "tool: shell · verdict: allow · … (+2 fields)"
        );
    }

    #[test]
    fn hostile_values_and_keys_stay_inert_and_bounded() {
        let payload = json!({
            "text": format!("\x1b[2J{}", "A".repeat(100_000)),
            "\u{202e}key\n": {"nested": "\u{9b}31m"},
            "list": ["\u{200b}", "\x07"],
        });
        for columns in 60..140 {
            let line = summary(&payload, columns);
            assert_eq!(inert::hidden(&line).next(), None, "{line}");
            assert!(
                width(&line) <= columns,
                "{} > {columns}: {line}",
                width(&line)
            );
        }
        assert!(summary(&payload, 120).starts_with("text: ␛[2JAAAA"));
    }

    #[test]
    fn content_in_a_blob_is_named_by_its_size() {
        let zero = "0".repeat(64);
        let payload = json!({
            "content": null,
            "blobs": [{"at": "/content", "encoding": "text", "raw_bytes": 20_000, "raw_sha256": zero, "sha256": zero}],
        });
        assert_eq!(summary(&payload, 80), "content: (19.5 KiB in a blob)");
    }

    #[test]
    fn a_payload_that_only_looks_like_blobs_is_shown_as_it_is() {
        let payload = json!({"blobs": "none"});
        assert_eq!(summary(&payload, 80), "blobs: none");
    }
}
