//! A memory in the making: what is taken out of a record's fields, and what is left.

use lodestar_core::digest::sha256;
use lodestar_core::time::Timestamp;
use serde_json::{Map, Value};

use super::moment::moment;
use super::{Aspect, MAX_ATTRIBUTES, MAX_REFERENCE, MAX_TEXT, SkipReason};

/// Fields that hold vectors in one system or another.
const VECTORS: &[&str] = &["embedding", "fact_embedding", "name_embedding", "vector"];

/// A memory whose size nobody has looked at yet.
pub(super) struct Draft {
    pub(super) aspect: Aspect,
    pub(super) id: Option<String>,
    pub(super) text: String,
    pub(super) created_at: Option<Timestamp>,
    pub(super) attributes: Map<String, Value>,
}

impl Draft {
    /// Nothing but a text.
    pub(super) fn of_text(aspect: Aspect, text: String) -> Self {
        Self {
            aspect,
            id: None,
            text,
            created_at: None,
            attributes: Map::new(),
        }
    }

    /// Itself, if text and attributes are neither too little nor too much.
    pub(super) fn bounded(self) -> Result<Self, SkipReason> {
        if self.text.trim().is_empty() {
            return Err(SkipReason::EmptyText);
        }
        if self.text.len() > MAX_TEXT {
            let bytes = self.text.len();
            return Err(SkipReason::TextTooLarge { bytes });
        }
        let bytes = json_len(&self.attributes);
        if bytes > MAX_ATTRIBUTES {
            return Err(SkipReason::AttributesTooLarge { bytes });
        }
        Ok(self)
    }

    /// The name within the export. No text can pass for another one's name: an id holds neither the
    /// `/` that pointers start with nor the `=` of a digest.
    pub(super) fn reference(&self, pointer: &str) -> String {
        let Some(id) = &self.id else {
            return pointer.to_owned();
        };
        let mut reference = String::new();
        for byte in id.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-') {
                reference.push(char::from(byte));
            } else {
                reference.push_str(&format!("%{byte:02X}"));
            }
            if reference.len() > MAX_REFERENCE {
                return format!("sha256={}", sha256(id.as_bytes()));
            }
        }
        reference
    }
}

fn json_len(attributes: &Map<String, Value>) -> usize {
    serde_json::to_vec(attributes)
        .expect("INVARIANT: values with text as keys can be written")
        .len()
}

/// The fields of a record.
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    /// Whether there is something under the key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !value.is_null())
    }

    /// Whether there is an object under the key.
    pub(super) fn has_object(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(Value::is_object)
    }

    /// Whether the field is this text.
    pub(super) fn is(&self, key: &str, text: &str) -> bool {
        self.0.get(key).and_then(Value::as_str) == Some(text)
    }

    /// The text under the first of these keys that holds anything. Keys are given in backticks, as they
    /// stand in messages.
    pub(super) fn take_text(
        &mut self,
        keys: &'static [&'static str],
    ) -> Result<String, SkipReason> {
        let first = keys.iter().find(|key| self.has(bare(key)));
        let key = first.ok_or(SkipReason::NoText { expected: keys })?;
        match self.0.remove(bare(key)) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(SkipReason::NotText { key }),
        }
    }

    /// The object under a key as fields, with the fields around it under `around`.
    pub(super) fn unwrapped(mut self, key: &str, around: &str) -> Self {
        let Some(Value::Object(mut inner)) = self.0.remove(key) else {
            return self;
        };
        if !self.0.is_empty() {
            inner.entry(around).or_insert(Value::Object(self.0));
        }
        Self(inner)
    }

    /// The memory with this text, and with what is left: id and time under the first of the keys that
    /// hold one, vectors left out, the rest as attributes.
    pub(super) fn into_draft(
        mut self,
        aspect: Aspect,
        text: String,
        ids: &[&str],
        times: &[&str],
    ) -> Result<Draft, SkipReason> {
        if self.is_deleted() {
            return Err(SkipReason::Deleted);
        }
        for key in VECTORS {
            self.0.remove(*key);
        }
        let id = ids.iter().find_map(|key| {
            let id = text_of_id(self.0.get(*key)?)?;
            self.0.remove(*key);
            Some(id)
        });
        let created_at = times.iter().find_map(|key| {
            let time = moment(self.0.get(*key)?)?;
            self.0.remove(*key);
            Some(time)
        });
        Ok(Draft {
            aspect,
            id,
            text,
            created_at,
            attributes: self.0,
        })
    }

    /// Whether the system kept the record although somebody deleted it. Go writes a time that was never
    /// set as the year 1, and that is not a deletion.
    fn is_deleted(&self) -> bool {
        let flag = self.0.get("is_deleted") == Some(&Value::Bool(true));
        flag || self.0.get("deleted_at").is_some_and(|time| match time {
            Value::String(time) => !time.is_empty() && !time.starts_with("0001-"),
            Value::Number(_) => true,
            _ => false,
        })
    }
}

fn bare(key: &'static str) -> &'static str {
    key.trim_matches('`')
}

/// An id is a text, or a number in a database.
fn text_of_id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
