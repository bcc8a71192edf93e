//! What an outgoing message says of itself in its headers.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{HeaderName, HeaderValue};

use serde_json::Value;
use serde_json::value::RawValue;

use super::REVISION;
use crate::in_headers::Annotated;
use crate::members::Members;
use crate::wire::{IdKey, Message};

/// Since 2026-07-28, a message names its method and what it is about, for whoever routes it.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A message on its way out.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// The number of a request.
    pub(super) id: Option<u64>,
    method: Option<String>,
    /// The revision that the request itself names: it has no session then.
    revision: Option<String>,
    name: Option<String>,
    /// What a tool is called with.
    arguments: Value,
}

impl Outgoing {
    pub(super) fn of(message: &[u8]) -> Self {
        let (id, method, params) = match Message::read(message) {
            Ok(Message::Request { id, method, params }) => (Some(id), method, params),
            Ok(Message::Notification { method, params }) => (None, method, params),
            _ => return Self::default(),
        };
        let id = id.and_then(|id| match id.key() {
            IdKey::Number(id) => u64::try_from(id).ok(),
            IdKey::Text(_) => None,
        });
        let members = Members::of_some(params).unwrap_or_default();
        let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
        let revision = meta.text(crate::inline::REVISION);
        let arguments = match (&revision, &*method) {
            (Some(_), "tools/call") => members.get("arguments").map(RawValue::get),
            _ => None,
        };
        let arguments = serde_json::from_str(arguments.unwrap_or("null"));
        Self {
            id,
            arguments: arguments.unwrap_or_default(),
            revision: revision.map(|revision| revision.into_owned()),
            name: about(&method, &members),
            method: Some(method.into_owned()),
        }
    }

    /// Whether it is a message of this method.
    pub(super) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    /// Whether it names its own revision.
    pub(super) fn speaks_for_itself(&self) -> bool {
        self.revision.is_some()
    }

    /// The tool that it calls.
    pub(super) fn tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.is("tools/call"))
    }

    /// The headers of a message that names its own revision, with the arguments that its tool wants there.
    pub(super) fn headers(&self, annotated: &[Annotated]) -> Vec<(HeaderName, HeaderValue)> {
        let Some(revision) = &self.revision else {
            return Vec::new();
        };
        let all = [
            (REVISION, Some(revision)),
            (METHOD, self.method.as_ref()),
            (NAME, self.name.as_ref()),
        ];
        let all = all
            .into_iter()
            .map(|(name, value)| (name, value.cloned()))
            .chain(
                annotated
                    .iter()
                    .map(|one| (one.header.clone(), one.text(&self.arguments))),
            );
        let given = all.filter_map(|(name, value)| {
            let value = HeaderValue::from_str(&encoded(&value?)).ok()?;
            Some((name, value))
        });
        given.collect()
    }
}

/// What a message is about: the name of a tool or prompt, the address of a resource.
pub(crate) fn about(method: &str, params: &Members<'_>) -> Option<String> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.text(member).map(|text| text.into_owned())
}

/// A text as a header's value; wrapped where it could not stand there as it is.
fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    match is_plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", BASE64_STANDARD.encode(text)),
    }
}

/// What a header's value says.
pub(crate) fn decoded(value: &str) -> Option<String> {
    let wrapped = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match wrapped {
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_its_header() {
        for name in ["plain", " blank ", "zürich", "=?base64?eA==?=", "a\nb", ""] {
            let value = encoded(name);
            assert!(HeaderValue::from_str(&value).is_ok(), "{name:?}");
            assert_eq!(decoded(&value).as_deref(), Some(name));
        }
    }

    #[test]
    fn only_a_message_that_names_its_revision_has_headers_of_its_own() {
        let old = br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}"#;
        let old = Outgoing::of(old);
        assert_eq!((old.id, old.headers(&[]).len()), (Some(3), 0));
        let new = br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert_eq!(Outgoing::of(new).headers(&[]).len(), 3);
    }
}
