//! Calls and results for tests.

use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::{InvocationId, ObservationId};
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::extract::{ClaimDraft, Extractors, ToolCall};

/// A call that owns its parts.
#[derive(Debug, Clone)]
pub(in crate::extract) struct Call {
    number: u8,
    server: ServerIdentity,
    tool: ToolName,
    arguments: Value,
    reviewed: bool,
    is_error: bool,
}

impl Call {
    pub(in crate::extract) fn of(tool: &str, arguments: Value) -> Self {
        Self {
            number: 1,
            server: ServerIdentity::new("files").unwrap(),
            tool: ToolName::new(tool).unwrap(),
            arguments,
            reviewed: true,
            is_error: false,
        }
    }

    pub(in crate::extract) fn number(self, number: u8) -> Self {
        Self { number, ..self }
    }

    pub(in crate::extract) fn server(self, server: &str) -> Self {
        let server = ServerIdentity::new(server).unwrap();
        Self { server, ..self }
    }

    pub(in crate::extract) fn unreviewed(self) -> Self {
        Self {
            reviewed: false,
            ..self
        }
    }

    pub(in crate::extract) fn error(self) -> Self {
        Self {
            is_error: true,
            ..self
        }
    }

    pub(in crate::extract) fn with<T>(&self, then: impl FnOnce(&ToolCall<'_>) -> T) -> T {
        then(&ToolCall {
            invocation: invocation(self.number),
            server: &self.server,
            tool: &self.tool,
            arguments: &self.arguments,
            definition: definition(),
            reviewed: self.reviewed,
            is_error: self.is_error,
        })
    }

    pub(in crate::extract) fn observation(&self, content: Vec<ContentBlock>) -> Observation {
        Observation {
            id: ObservationId::from_parts(u64::from(self.number), [self.number; 10]),
            tool: self.tool.clone(),
            invocation_id: invocation(self.number),
            captured_at: Timestamp::from_unix_micros(1_700_000_000_000_000).unwrap(),
            session: "session".parse().unwrap(),
            project: "project".parse().unwrap(),
            actor: "agent".parse().unwrap(),
            trust: ObservationTrust::Raw,
            sensitivity: Sensitivity::Internal,
            rest: Default::default(),
            content,
        }
    }

    /// What the built-in extractors make of it.
    pub(in crate::extract) fn drafts(&self, content: Vec<ContentBlock>) -> Vec<ClaimDraft> {
        let observation = self.observation(content);
        self.with(|call| Extractors::built_in().extract(call, &observation))
            .unwrap()
    }
}

pub(in crate::extract) fn invocation(number: u8) -> InvocationId {
    InvocationId::from_parts(u64::from(number), [number; 10])
}

pub(in crate::extract) fn definition() -> Digest {
    sha256(b"definition")
}

pub(in crate::extract) fn scope() -> Scope {
    "project:web".parse().unwrap()
}

pub(in crate::extract) fn text(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text {
        text: text.into(),
        rest: Map::new(),
    }
}

/// One block of every kind, in the order of their names in the envelope.
pub(in crate::extract) fn every_kind() -> Vec<ContentBlock> {
    let rest = Map::new;
    let (data, mime_type) = ("aGk=".to_owned(), "x/y".to_owned());
    vec![
        text("hi"),
        ContentBlock::Image {
            data: data.clone(),
            mime_type: mime_type.clone(),
            rest: rest(),
        },
        ContentBlock::Audio {
            data,
            mime_type,
            rest: rest(),
        },
        ContentBlock::Resource {
            resource: [("uri".to_owned(), json!("memo://1"))]
                .into_iter()
                .collect(),
            rest: rest(),
        },
        ContentBlock::ResourceLink {
            uri: "memo://2".to_owned(),
            rest: rest(),
        },
        ContentBlock::Structured {
            value: json!({"a": 1}),
        },
        ContentBlock::Unknown {
            raw: json!({"type": "video"}),
        },
    ]
}
