//! How a reader takes an object that has two members of one name. The standard leaves it open, and servers differ.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which of two members of one name a scripted server takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Twice {
    /// The last, as most readers do.
    #[default]
    Last,
    /// The first.
    First,
}

/// The arguments of a call, where of two members of one name the first counts.
pub(super) fn first(params: &str) -> Option<Value> {
    #[derive(Deserialize)]
    struct Params {
        arguments: First,
    }
    let params: Params = serde_json::from_str(params).ok()?;
    Some(Value::Object(params.arguments.0))
}

struct First(Map<String, Value>);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = First;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<First, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            members.entry(name).or_insert(value);
        }
        Ok(First(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_two_arguments_of_one_name_the_first_counts_in_any_spelling() {
        let params = r#"{"name":"send","arguments":{"\u0074o":"a","to":"b","n":1}}"#;
        assert_eq!(first(params), Some(json!({"to": "a", "n": 1})));
        assert_eq!(first(r#"{"name":"send"}"#), None);
    }
}
