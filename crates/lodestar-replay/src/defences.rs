//! Whether a session had all its defences. One that had not is a harness's world, and says nothing of this
//! one: there is one rule for that, here.

use std::io;

use lodestar_log::{Reader, SessionDir};
use serde_json::Value;

/// What a session says of its defences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defences {
    /// It had all.
    Whole,
    /// It was opened without these, as it names them: another version may know others.
    Lacks(Vec<String>),
    /// Its opening is not there, cannot be read or was redacted.
    CannotTell,
}

impl Defences {
    /// Those of a session.
    pub fn of(dir: &SessionDir) -> io::Result<Self> {
        let first = Reader::open(dir)?.next_event().ok().flatten();
        let payload = first.and_then(|event| event.whole(dir).ok()).flatten();
        Ok(payload.map_or(Self::CannotTell, |opening| Self::of_opening(&opening)))
    }

    /// Those of a session that was opened so.
    pub fn of_opening(opening: &Value) -> Self {
        let name = |one: &Value| match one {
            Value::String(name) => name.clone(),
            other => other.to_string(),
        };
        match opening.get("defences_off") {
            None | Some(Value::Null | Value::Bool(false)) => Self::Whole,
            Some(Value::Array(names)) if names.is_empty() => Self::Whole,
            Some(Value::Array(names)) => Self::Lacks(names.iter().map(name).collect()),
            Some(other) => Self::Lacks(vec![name(other)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_says_that_something_is_off_lacks_it() {
        for whole in [
            json!({}),
            json!({"defences_off": null}),
            json!({"defences_off": []}),
        ] {
            assert_eq!(Defences::of_opening(&whole), Defences::Whole);
        }
        for off in [
            json!(true),
            json!("x"),
            json!([1]),
            json!({"a": 1}),
            json!(["unheard_of"]),
        ] {
            let said = Defences::of_opening(&json!({"defences_off": off}));
            assert!(matches!(said, Defences::Lacks(names) if names.len() == 1));
        }
    }
}
