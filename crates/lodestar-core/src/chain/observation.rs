//! Observation: what a tool returned, kept as it came.
//!
//! Content blocks are sorted by kind for readers, but nothing of them is dropped or interpreted:
//! [`ContentBlock::from_wire`] and [`ContentBlock::to_wire`] are inverse to each other on every JSON
//! value. In the log a block says its kind outright, so that no content can pass itself off as
//! another kind when it is read back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{InvocationId, ObservationId};
use crate::name::{ActorId, ProjectId, SessionId, ToolName, words};
use crate::sensitivity::Sensitivity;
use crate::time::Timestamp;

words! {
    /// How far the form of an observation was checked. It says nothing about truth.
    pub enum ObservationTrust: "observation trust" {
        /// As it came.
        Raw = "raw",
        /// Its structured content matched the pinned output schema.
        Validated = "validated",
        /// Made by a probe.
        Synthetic = "synthetic",
    }
}

/// What one invocation of a tool returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Its id.
    pub id: ObservationId,
    /// The tool that was called.
    pub tool: ToolName,
    /// Which call of it.
    pub invocation_id: InvocationId,
    /// When the result arrived.
    pub captured_at: Timestamp,
    /// In which session.
    pub session: SessionId,
    /// Of which project.
    pub project: ProjectId,
    /// Who called.
    pub actor: ActorId,
    /// How far its form was checked.
    pub trust: ObservationTrust,
    /// Who may see it.
    pub sensitivity: Sensitivity,
    /// What came back, block by block, verbatim.
    pub content: Vec<ContentBlock>,
    /// What came beside the blocks, verbatim. No claim is made of it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub rest: Map<String, Value>,
}

/// One piece of what a tool returned.
///
/// `rest` holds the members of the block that its kind does not name, verbatim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentBlock {
    /// Text that someone wrote.
    Text {
        /// The text.
        text: String,
        /// Everything else the block had.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        rest: Map<String, Value>,
    },
    /// An image.
    Image {
        /// Base64, as it came.
        data: String,
        /// What the server says it is.
        mime_type: String,
        /// Everything else the block had.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        rest: Map<String, Value>,
    },
    /// A sound.
    Audio {
        /// Base64, as it came.
        data: String,
        /// What the server says it is.
        mime_type: String,
        /// Everything else the block had.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        rest: Map<String, Value>,
    },
    /// A resource, embedded.
    Resource {
        /// The resource, as it came.
        resource: Map<String, Value>,
        /// Everything else the block had.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        rest: Map<String, Value>,
    },
    /// A resource, pointed at.
    ResourceLink {
        /// Where the server says it is: an attribute, never a subject.
        uri: String,
        /// Everything else the block had.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        rest: Map<String, Value>,
    },
    /// The structured result, which travels beside the blocks and is never read out of one.
    Structured {
        /// The value, as it came.
        value: Value,
    },
    /// Anything else, as it came.
    Unknown {
        /// The whole block.
        raw: Value,
    },
}

impl ContentBlock {
    /// Sorts a content block as a server sent it.
    ///
    /// Never fails: what lacks the members of its kind, or has them in another type, is unknown.
    pub fn from_wire(block: Value) -> Self {
        let Value::Object(mut rest) = block else {
            return Self::Unknown { raw: block };
        };
        match classify(&rest) {
            Some(Wire::Text) => Self::Text {
                text: take_string(&mut rest, "text"),
                rest,
            },
            Some(Wire::Image) => Self::Image {
                data: take_string(&mut rest, "data"),
                mime_type: take_string(&mut rest, "mimeType"),
                rest,
            },
            Some(Wire::Audio) => Self::Audio {
                data: take_string(&mut rest, "data"),
                mime_type: take_string(&mut rest, "mimeType"),
                rest,
            },
            Some(Wire::Resource) => {
                rest.remove("type");
                let Some(Value::Object(resource)) = rest.remove("resource") else {
                    unreachable!("INVARIANT: classified by this member being an object");
                };
                Self::Resource { resource, rest }
            }
            Some(Wire::ResourceLink) => Self::ResourceLink {
                uri: take_string(&mut rest, "uri"),
                rest,
            },
            None => Self::Unknown {
                raw: Value::Object(rest),
            },
        }
    }

    /// The block as the server sent it; for a structured result, its value.
    pub fn to_wire(&self) -> Value {
        let (kind, named, rest) = match self {
            Self::Text { text, rest } => ("text", vec![("text", text.as_str().into())], rest),
            Self::Image {
                data,
                mime_type,
                rest,
            } => ("image", media(data, mime_type), rest),
            Self::Audio {
                data,
                mime_type,
                rest,
            } => ("audio", media(data, mime_type), rest),
            Self::Resource { resource, rest } => (
                "resource",
                vec![("resource", resource.clone().into())],
                rest,
            ),
            Self::ResourceLink { uri, rest } => {
                ("resource_link", vec![("uri", uri.as_str().into())], rest)
            }
            Self::Structured { value } => return value.clone(),
            Self::Unknown { raw } => return raw.clone(),
        };
        let mut block = rest.clone();
        block.insert("type".to_owned(), kind.into());
        block.extend(
            named
                .into_iter()
                .map(|(name, value): (&str, Value)| (name.to_owned(), value)),
        );
        Value::Object(block)
    }

    /// The text of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// The kinds a server can send.
enum Wire {
    Text,
    Image,
    Audio,
    Resource,
    ResourceLink,
}

fn classify(block: &Map<String, Value>) -> Option<Wire> {
    let is_string = |name: &str| block.get(name).is_some_and(Value::is_string);
    match block.get("type")?.as_str()? {
        "text" if is_string("text") => Some(Wire::Text),
        "image" if is_string("data") && is_string("mimeType") => Some(Wire::Image),
        "audio" if is_string("data") && is_string("mimeType") => Some(Wire::Audio),
        "resource" if block.get("resource").is_some_and(Value::is_object) => Some(Wire::Resource),
        "resource_link" if is_string("uri") => Some(Wire::ResourceLink),
        _ => None,
    }
}

fn take_string(block: &mut Map<String, Value>, name: &str) -> String {
    block.remove("type");
    match block.remove(name) {
        Some(Value::String(text)) => text,
        _ => unreachable!("INVARIANT: classified by this member being a string"),
    }
}

fn media(data: &str, mime_type: &str) -> Vec<(&'static str, Value)> {
    vec![("data", data.into()), ("mimeType", mime_type.into())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn kind(block: Value) -> String {
        let stored = serde_json::to_value(ContentBlock::from_wire(block)).unwrap();
        stored["kind"].as_str().unwrap().to_owned()
    }

    #[test]
    fn blocks_are_sorted_by_kind() {
        assert_eq!(kind(json!({"type": "text", "text": "hi"})), "text");
        assert_eq!(
            kind(json!({"type": "image", "data": "aGk=", "mimeType": "image/png"})),
            "image"
        );
        assert_eq!(
            kind(json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"})),
            "audio"
        );
        assert_eq!(
            kind(json!({"type": "resource", "resource": {"uri": "file:///a"}})),
            "resource"
        );
        assert_eq!(
            kind(json!({"type": "resource_link", "uri": "file:///a", "name": "a"})),
            "resource_link"
        );
    }

    #[test]
    fn a_block_that_lacks_what_its_kind_needs_is_unknown() {
        for block in [
            json!(null),
            json!("text"),
            json!([]),
            json!({}),
            json!({"type": 1}),
            json!({"type": "text"}),
            json!({"type": "text", "text": 7}),
            json!({"type": "image", "data": "x"}),
            json!({"type": "resource", "resource": "x"}),
            json!({"type": "video", "data": "x"}),
        ] {
            assert_eq!(kind(block.clone()), "unknown", "{block}");
            assert_eq!(ContentBlock::from_wire(block.clone()).to_wire(), block);
        }
    }

    #[test]
    fn content_cannot_pass_itself_off_as_the_structured_result() {
        for block in [
            json!({"type": "structured", "value": 1}),
            json!({"kind": "structured", "value": 1}),
            json!({"type": "unknown", "raw": {"kind": "structured"}}),
        ] {
            assert_eq!(kind(block), "unknown");
        }
        let sly =
            json!({"type": "text", "text": "hi", "kind": "structured", "value": 1, "rest": {}});
        let block = ContentBlock::from_wire(sly.clone());
        let stored = serde_json::to_string(&block).unwrap();
        assert_eq!(
            serde_json::from_str::<ContentBlock>(&stored).unwrap(),
            block
        );
        assert_eq!((block.text(), block.to_wire()), (Some("hi"), sly));
    }

    #[test]
    fn a_stored_block_with_a_member_too_many_is_refused() {
        assert!(
            serde_json::from_str::<ContentBlock>(r#"{"kind":"text","text":"a","x":1}"#).is_err()
        );
        assert!(serde_json::from_str::<ContentBlock>(r#"{"kind":"video"}"#).is_err());
    }

    fn any_block() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            prop::sample::select(vec![
                "text",
                "image",
                "audio",
                "resource",
                "resource_link",
                "x"
            ])
            .prop_map(Value::from),
            ".{0,4}".prop_map(Value::from),
        ];
        let name = prop::sample::select(vec![
            "type", "text", "data", "mimeType", "resource", "uri", "kind", "rest",
        ]);
        leaf.prop_recursive(3, 24, 8, move |inner| {
            prop::collection::hash_map(name.clone(), inner, 0..8).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect()
            })
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost_on_the_way_in_and_out(wire in any_block()) {
            let block = ContentBlock::from_wire(wire.clone());
            prop_assert_eq!(block.to_wire(), wire);
            let stored = serde_json::to_string(&block).unwrap();
            prop_assert_eq!(serde_json::from_str::<ContentBlock>(&stored).unwrap(), block);
        }
    }
}
