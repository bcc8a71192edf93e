//! Laws of what an agent or a server says over MCP.

use lodestar_core::canonical;
use lodestar_kernel::tool::Output;
use lodestar_mcp::answer::{Contents, OWN, recorded, stripped};
use lodestar_mcp::members::Members;
use lodestar_mcp::wire::{self, Message};
use serde_json::Value;
use serde_json::value::RawValue;

/// What is read says one thing, and says it again when it is written.
pub fn mcp_message(data: &[u8]) {
    let Ok(message) = Message::read(data) else {
        return;
    };
    let mut again = Vec::new();
    match &message {
        Message::Request { method, params, .. } => wire::request(&mut again, 7, method, *params),
        Message::Notification { method, params } => wire::notification(&mut again, method, *params),
        Message::Answer { id, result } => wire::answer(&mut again, id.text(), result.get()),
        Message::Failure { id, error } => {
            wire::error(&mut again, id.map_or("7", |id| id.text()), error.get());
        }
    }
    let same = Message::read(&again).unwrap_or_else(|refused| panic!("{refused:?}"));
    match (message, same) {
        (
            Message::Request { method, params, .. },
            Message::Request {
                method: other,
                params: kept,
                ..
            },
        )
        | (
            Message::Notification { method, params },
            Message::Notification {
                method: other,
                params: kept,
            },
        ) => {
            assert_eq!(method, other);
            assert_eq!(params.map(RawValue::get), kept.map(RawValue::get));
        }
        (
            Message::Answer { id, result },
            Message::Answer {
                id: other,
                result: kept,
            },
        ) => {
            assert_eq!((id.key(), result.get()), (other.key(), kept.get()));
        }
        (Message::Failure { error, .. }, Message::Failure { error: kept, .. }) => {
            assert_eq!(error.get(), kept.get());
        }
        (one, other) => panic!("{one:?} became {other:?}"),
    }
}

/// A result, as the proxy takes it.
pub fn taken(data: &[u8]) -> Option<Output> {
    let raw: &RawValue = serde_json::from_slice(data).ok()?;
    recorded(raw, Contents::Blocks).ok()
}

/// What is taken can be written to a log; what the agent gets speaks in nobody's name; members stay bytes.
pub fn mcp_result(data: &[u8]) {
    let Some(output) = taken(data) else {
        return;
    };
    canonical::to_vec(&output.content).expect("the log can spell the blocks");
    canonical::to_vec(&output.rest).expect("the log can spell the rest");
    let raw: &RawValue = serde_json::from_slice(data).expect("it was taken");
    let Ok(clean) = stripped(raw.get()) else {
        return;
    };
    let copy: Value = match &clean {
        Some((clean, found)) => {
            assert!(*found > 0);
            serde_json::from_str(clean.get()).expect("it was JSON")
        }
        None => serde_json::from_str(raw.get()).expect("it was JSON"),
    };
    assert!(!speaks(&copy), "{copy}");
    let members = Members::of(raw).expect("it was taken");
    let again = members.write_with(&[]);
    let again: &RawValue = serde_json::from_str(&again).expect("an object");
    let same = Members::of(again).expect("an object");
    assert!(
        members
            .iter()
            .map(|(name, value)| (name, value.get()))
            .eq(same.iter().map(|(name, value)| (name, value.get())))
    );
}

fn speaks(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| name == OWN || speaks(member)),
        Value::Array(items) => items.iter().any(speaks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
