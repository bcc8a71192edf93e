//! Content blocks, as extractors look at them: their kind, their sum, what the server claims of them.

use lodestar_core::chain::ContentBlock;
use lodestar_core::digest::{Digest, sha256_parts};
use serde_json::{Map, Value};

use super::inert::{MAX_ATTRIBUTE, bounded};
use super::sum::Sum;

/// The kind of a content block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Image,
    Audio,
    Resource,
    ResourceLink,
    Structured,
    Unknown,
}

impl BlockKind {
    pub(super) const ALL: [Self; 7] = [
        Self::Text,
        Self::Image,
        Self::Audio,
        Self::Resource,
        Self::ResourceLink,
        Self::Structured,
        Self::Unknown,
    ];

    pub(super) fn of(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::Text { .. } => Self::Text,
            ContentBlock::Image { .. } => Self::Image,
            ContentBlock::Audio { .. } => Self::Audio,
            ContentBlock::Resource { .. } => Self::Resource,
            ContentBlock::ResourceLink { .. } => Self::ResourceLink,
            ContentBlock::Structured { .. } => Self::Structured,
            ContentBlock::Unknown { .. } => Self::Unknown,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Resource => "resource",
            Self::ResourceLink => "resource_link",
            Self::Structured => "structured",
            Self::Unknown => "unknown",
        }
    }

    /// Of a block with its kind and everything it had.
    pub(super) fn digest(block: &ContentBlock) -> Digest {
        let claimed = match block {
            ContentBlock::Image { mime_type, .. } | ContentBlock::Audio { mime_type, .. } => {
                mime_type
            }
            _ => "",
        };
        let extra = extra(block).map(|sum| sum.digest);
        sha256_parts(&[
            Self::of(block).as_str().as_bytes(),
            &[0],
            content(block).digest.as_bytes(),
            Sum::of_text(claimed).digest.as_bytes(),
            extra.as_ref().map_or(&[], |digest| digest.as_bytes()),
        ])
    }
}

/// The sum of what the block carries: text and base64 as they came, everything else as JSON.
pub(super) fn content(block: &ContentBlock) -> Sum {
    match block {
        ContentBlock::Text { text, .. } => Sum::of_text(text),
        ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => Sum::of_text(data),
        ContentBlock::Resource { resource, .. } => Sum::of_map(resource),
        ContentBlock::ResourceLink { uri, .. } => Sum::of_text(uri),
        ContentBlock::Structured { value } => Sum::of_json(value),
        ContentBlock::Unknown { raw } => Sum::of_json(raw),
    }
}

/// The sum of the members that the block's kind does not name, if it has any.
pub(super) fn extra(block: &ContentBlock) -> Option<Sum> {
    rest(block).filter(|rest| !rest.is_empty()).map(Sum::of_map)
}

/// What the server says the block is: attributes, bounded and inert, and never a subject.
pub(super) fn claimed(block: &ContentBlock) -> Map<String, Value> {
    let empty = Map::new();
    let text = |members: &Map<String, Value>, name: &str| {
        members.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let (uri, mime_type) = match block {
        ContentBlock::Image { mime_type, .. } | ContentBlock::Audio { mime_type, .. } => {
            (None, Some(mime_type.clone()))
        }
        ContentBlock::Resource { resource, .. } => {
            (text(resource, "uri"), text(resource, "mimeType"))
        }
        ContentBlock::ResourceLink { uri, rest } => (Some(uri.clone()), text(rest, "mimeType")),
        ContentBlock::Text { .. }
        | ContentBlock::Structured { .. }
        | ContentBlock::Unknown { .. } => (None, None),
    };
    let name = text(rest(block).unwrap_or(&empty), "name");
    [("uri", uri), ("mime_type", mime_type), ("name", name)]
        .into_iter()
        .filter_map(|(member, value)| {
            Some((member.to_owned(), bounded(&value?, MAX_ATTRIBUTE).into()))
        })
        .collect()
}

/// The text that a reader of the block sees: of a text block, or of a resource that carries text.
pub(super) fn readable(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text { text, .. } => Some(text),
        ContentBlock::Resource { resource, .. } => resource.get("text")?.as_str(),
        _ => None,
    }
}

fn rest(block: &ContentBlock) -> Option<&Map<String, Value>> {
    match block {
        ContentBlock::Text { rest, .. }
        | ContentBlock::Image { rest, .. }
        | ContentBlock::Audio { rest, .. }
        | ContentBlock::Resource { rest, .. }
        | ContentBlock::ResourceLink { rest, .. } => Some(rest),
        ContentBlock::Structured { .. } | ContentBlock::Unknown { .. } => None,
    }
}
