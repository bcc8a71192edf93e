//! What `show` and `export` have in common: which events, and what one looks like as JSON.

use lodestar_core::digest::Digest;
use lodestar_core::time::Timestamp;
use lodestar_log::{Event, Payload, ReadError, SessionDir};
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Exit, Failure};
use crate::{inert, words};

/// An event as JSON. A redacted one has no payload and names the event that took it; one whose
/// payload cannot be put together has none either, and says why.
#[derive(Debug, Serialize)]
pub(crate) struct EventJson<'a> {
    project: &'a str,
    session: &'a str,
    seq: u64,
    time: Timestamp,
    #[serde(rename = "type")]
    kind: &'a str,
    actor: &'a str,
    parents: &'a [u64],
    leaf_hash: Digest,
    payload: Option<Value>,
    redacted_by: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> EventJson<'a> {
    /// The whole event, with what lies in blobs back in its place.
    pub(crate) fn whole(event: &'a Event, dir: &'a SessionDir) -> Self {
        let (payload, error) = match event.whole(dir) {
            Ok(payload) => (payload, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let redacted_by = match event.payload {
            Payload::Redacted { by } => Some(by),
            Payload::Present(_) => None,
        };
        Self {
            project: dir.project().as_str(),
            session: dir.session().as_str(),
            seq: event.seq,
            time: event.time,
            kind: &event.kind,
            actor: &event.actor,
            parents: &event.parents,
            leaf_hash: event.leaf_hash,
            payload,
            redacted_by,
            error,
        }
    }

    /// Whether something of it is missing that was not redacted.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.error.is_some()
    }
}

/// The end of a stream in which events came without their payloads.
pub(crate) fn check_complete(incomplete: u64) -> Result<Exit, Failure> {
    match incomplete {
        0 => Ok(Exit::Done),
        n => Err(Failure::check(format!(
            "the payload of {} could not be restored: it is null there, and `error` says why",
            words::count(n, "event")
        ))
        .help("`lodestar log verify` says what is wrong with the session")),
    }
}

/// Whether an event's type begins with one of the given beginnings; none given lets all pass.
pub(crate) fn is_wanted(event: &Event, types: &[String]) -> bool {
    types.is_empty() || types.iter().any(|t| event.kind.starts_with(t.as_str()))
}

/// A line that is none: somebody else wrote into the file.
pub(crate) fn unreadable(dir: &SessionDir, error: &ReadError) -> Failure {
    let path = dir.events_path();
    match error {
        ReadError::Io(error) => Failure::usage(format!("`{}`: {error}", inert::path(&path))),
        ReadError::Line { .. } => Failure::check(format!("`{}`, {error}", inert::path(&path)))
            .help("`lodestar log verify` says what is wrong with the session"),
    }
}
