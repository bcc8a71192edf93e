//! Digest and length of content, whatever it is made of.
//!
//! JSON is summed over its canonical form. What has none (an integer beyond 2^53, deep nesting) is
//! summed over an encoding of its own, without recursion, so that there is a sum for every value.

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, Hasher, sha256};
use serde_json::{Map, Value};

/// What some content amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    /// SHA-256 of its bytes.
    pub(super) digest: Digest,
    /// How many bytes those are.
    pub(super) length: u64,
}

impl Sum {
    pub(super) fn of_text(text: &str) -> Self {
        Self {
            digest: sha256(text.as_bytes()),
            length: text.len() as u64,
        }
    }

    pub(super) fn of_json(value: &Value) -> Self {
        match canonical::to_vec(value) {
            Ok(bytes) => Self::of_bytes(&bytes),
            Err(_) => without_canonical_form(Step::Value(value)),
        }
    }

    pub(super) fn of_map(map: &Map<String, Value>) -> Self {
        match canonical::to_vec(map) {
            Ok(bytes) => Self::of_bytes(&bytes),
            Err(_) => without_canonical_form(Step::Map(map)),
        }
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self {
            digest: sha256(bytes),
            length: bytes.len() as u64,
        }
    }
}

enum Step<'a> {
    Value(&'a Value),
    Map(&'a Map<String, Value>),
    Text(&'a str),
}

/// Keeps this encoding apart from canonical JSON, which never starts with a letter `J`.
const NO_CANONICAL_FORM: &[u8] = b"JSON without canonical form\n";

fn without_canonical_form(whole: Step<'_>) -> Sum {
    let mut hasher = Hasher::new();
    let mut length = 0_u64;
    let mut write = |piece: &[u8]| {
        hasher.update(piece);
        length += piece.len() as u64;
    };
    write(NO_CANONICAL_FORM);
    let mut steps = vec![whole];
    while let Some(step) = steps.pop() {
        // Every piece says its kind and size first, so that no two values write the same bytes.
        match step {
            Step::Value(Value::Null) => write(b"n"),
            Step::Value(Value::Bool(value)) => write(if *value { b"t" } else { b"f" }),
            Step::Value(Value::Number(number)) => write(format!("d{number} ").as_bytes()),
            Step::Value(Value::String(text)) => steps.push(Step::Text(text)),
            Step::Text(text) => {
                write(format!("s{} ", text.len()).as_bytes());
                write(text.as_bytes());
            }
            Step::Value(Value::Array(items)) => {
                write(format!("a{} ", items.len()).as_bytes());
                steps.extend(items.iter().rev().map(Step::Value));
            }
            Step::Value(Value::Object(map)) => steps.push(Step::Map(map)),
            Step::Map(map) => {
                write(format!("o{} ", map.len()).as_bytes());
                let mut members: Vec<_> = map.iter().collect();
                members.sort_by(|a, b| b.0.cmp(a.0));
                for (key, value) in members {
                    steps.extend([Step::Value(value), Step::Text(key)]);
                }
            }
        }
    }
    Sum {
        digest: hasher.finish(),
        length,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_summed_over_its_canonical_form() {
        let sum = Sum::of_json(&json!({"b": 1, "a": [true]}));
        assert_eq!(sum.digest, sha256(br#"{"a":[true],"b":1}"#));
        assert_eq!(sum.length, 18);
    }

    #[test]
    fn what_has_no_canonical_form_still_has_a_sum_of_its_own() {
        let big = |n: u64| json!({"id": n, "list": [null, "x", {}]});
        assert_eq!(Sum::of_json(&big(u64::MAX)), Sum::of_json(&big(u64::MAX)));
        assert_ne!(
            Sum::of_json(&big(u64::MAX)),
            Sum::of_json(&big(u64::MAX - 1))
        );
        let Value::Object(map) = big(u64::MAX) else {
            unreachable!()
        };
        assert_eq!(Sum::of_map(&map), Sum::of_json(&big(u64::MAX)));
    }

    #[test]
    fn nesting_of_any_depth_is_summed_without_recursion() {
        let mut deep = json!(1);
        for _ in 0..5_000 {
            deep = Value::Array(vec![deep]);
        }
        assert!(Sum::of_json(&deep).length > 10_000);
        // Dropping it would recurse, in code that is not ours.
        std::mem::forget(deep);
    }
}
