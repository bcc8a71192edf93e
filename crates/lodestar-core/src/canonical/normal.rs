//! Values that are what their canonical form says.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, MAX_INTEGER};

pub(super) fn object(object: &Map<String, Value>, depth: usize) -> bool {
    let mut previous: Option<&str> = None;
    depth < MAX_DEPTH
        && object.iter().all(|(key, value)| {
            // Of keys in ASCII alone, the order of bytes is the canonical one.
            let is_next = previous.is_none_or(|previous| previous < key.as_str());
            previous = Some(key);
            is_next && key.is_ascii() && is_normal(value, depth + 1)
        })
}

fn is_normal(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        // Doubles have spellings of their own.
        Value::Number(number) => {
            let integer = number.as_i64();
            integer.is_some_and(|integer| integer.unsigned_abs() <= MAX_INTEGER)
        }
        Value::Array(values) => {
            depth < MAX_DEPTH && values.iter().all(|value| is_normal(value, depth + 1))
        }
        Value::Object(members) => object(members, depth),
    }
}
