//! One line on what an event says.
//!
//! A payload may be anything a catalogue entry allows, now or in a later version, and parts of it
//! are untrusted. So the line is made from its shape: what usually matters first, every value
//! bounded and inert, and a count of what did not fit.

use lodestar_log::BlobRef;
use serde_json::{Map, Value};

use crate::{inert, words};

/// What a reader looks for first.
const FIRST: [&str; 15] = [
    "defences_off",
    "tool",
    "verdict",
    "sentinel",
    "saw",
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
/// What the first value gets before others get anything.
const FIRST_COLUMNS: usize = 40;
/// A later value that would have to be cut shorter than this is counted instead.
const FEWEST_COLUMNS: usize = 24;
const BETWEEN: &str = " · ";

/// The payload in at most `columns` columns.
pub(crate) fn summary(payload: &Value, columns: usize) -> String {
    let Value::Object(fields) = payload else {
        return inert::line(&payload.to_string(), columns);
    };
    let pieces = pieces(fields);
    let widths: Vec<usize> = pieces
        .iter()
        .map(|(_, value)| width(&inert::line(value, columns)))
        .collect();
    let (shown, more) = as_many_as_fit(&pieces, &widths, columns);
    let mut room = columns.saturating_sub(taken(&pieces[..shown]) + width(&more));
    let mut waiting = least(&widths[..shown]);
    let mut line = String::new();
    for (i, (key, value)) in pieces[..shown].iter().enumerate() {
        waiting -= least_at(i, widths[i]);
        // What nobody behind it needs is the field's own.
        let value = inert::line(value, room.saturating_sub(waiting));
        room = room.saturating_sub(width(&value));
        let between = if i == 0 { "" } else { BETWEEN };
        line.push_str(&format!("{between}{key}: {value}"));
    }
    line + &more
}

/// How many fields are shown, and the count of the others.
fn as_many_as_fit(
    pieces: &[(String, String)],
    widths: &[usize],
    columns: usize,
) -> (usize, String) {
    for shown in (1..=pieces.len()).rev() {
        let left = pieces.len() - shown;
        let wanted = least(&widths[..shown]);
        for more in [more(left), more_briefly(left)] {
            if taken(&pieces[..shown]) + wanted + width(&more) <= columns {
                return (shown, more);
            }
        }
    }
    (
        pieces.len().min(1),
        more_briefly(pieces.len().saturating_sub(1)),
    )
}

/// What values of these widths get at least.
fn least(widths: &[usize]) -> usize {
    let each = widths.iter().enumerate();
    each.map(|(i, width)| least_at(i, *width)).sum()
}

fn least_at(place: usize, width: usize) -> usize {
    match place {
        0 => width.min(FIRST_COLUMNS),
        _ => width.min(FEWEST_COLUMNS),
    }
}

/// What keys and separators take.
fn taken(pieces: &[(String, String)]) -> usize {
    let keys: usize = pieces.iter().map(|(key, _)| width(key) + 2).sum();
    keys + pieces.len().saturating_sub(1) * width(BETWEEN)
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

/// Where every column counts.
fn more_briefly(fields: usize) -> String {
    match fields {
        0 => String::new(),
        _ => format!("{BETWEEN}+{fields}"),
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
    // Why something was refused is what people look for, and comes before what was sent.
    let is_refusal = |key: &str| key == "reason" && tagged(&fields[key]).is_some();
    keys.sort_by_key(|key| (!is_refusal(key), rank(key).unwrap_or(FIRST.len())));
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

/// The words that tell one kind of refusal from another, innermost first.
const TAGS: [&str; 3] = ["distrust", "unmatched", "refused"];

/// A refusal: its kind, and what it says more.
fn tagged(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    let tags = TAGS.iter().filter_map(|tag| fields.get(*tag)?.as_str());
    let kind = tags.reduce(|inner, _| inner)?;
    let rest = fields
        .iter()
        .filter(|(name, _)| !TAGS.contains(&name.as_str()));
    let rest: Vec<String> = rest
        .map(|(name, value)| format!("{name}: {}", short(value)))
        .collect();
    Some(match rest.is_empty() {
        true => kind.to_owned(),
        false => format!("{kind} ({})", rest.join(", ")),
    })
}

fn short(value: &Value) -> String {
    if let Some(refusal) = tagged(value) {
        return refusal;
    }
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
            "tool: shell · verdict: allow · aaa: 1 · zzz: [1,2]"
        );
        assert_eq!(
            summary(&payload, 45),
            "tool: shell · verdict: allow · aaa: 1 · +1"
        );
        assert_eq!(summary(&payload, 33), "tool: shell · verdict: allow · +2");
    }

    #[test]
    fn why_something_was_refused_comes_before_what_was_sent() {
        let payload = json!({
            "sent": {"a": 1, "b": 2, "c": 3, "d": 4},
            "statement": "x".repeat(500),
            "reason": {"refused": "revoked_key", "at": "2026", "approver": "anna"},
        });
        let line = summary(&payload, 80);
        assert!(
            line.starts_with("reason: revoked_key (at: 2026, approver: anna)"),
            "{line}"
        );
        let untrusted = json!({"reason": {"unmatched": "untrusted", "distrust": "unknown_key"}});
        assert_eq!(summary(&untrusted, 80), "reason: unknown_key");
        let plain = json!({"tool": "shell", "reason": "done"});
        assert_eq!(summary(&plain, 80), "tool: shell · reason: done");
    }

    #[test]
    fn hostile_values_and_keys_stay_inert_and_bounded() {
        let payload = json!({
            "text": format!("\x1b[2J{}", "A".repeat(100_000)),
            "\u{202e}key\n": {"nested": "\u{9b}31m"},
            "list": ["\u{200b}", "\x07"],
        });
        for columns in 42..140 {
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
    fn the_line_is_filled_and_the_first_field_comes_first() {
        let text = "Note to AI assistants: this repository moved. ".repeat(5);
        let payload = json!({"content": text, "source": "files/read_file NOTES.md", "quality": "external_document"});
        assert_eq!(
            summary(&payload, 42),
            "content: Note to AI ass… (+216 bytes) · +2"
        );
        for columns in 40..200 {
            let line = summary(&payload, columns);
            assert!(width(&line) <= columns, "{columns}: {line}");
            assert!(width(&line) + 8 >= columns, "{columns}: {line}");
            assert!(line.starts_with("content: Note to AI"), "{line}");
        }
        let one = json!({"content": text});
        assert!(summary(&one, 200).starts_with(&format!("content: {}", &text[..170])));
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
