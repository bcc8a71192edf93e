//! What `show` and `export` have in common: which events, and what one looks like as JSON.

use lodestar_core::digest::Digest;
use lodestar_core::time::Timestamp;
use lodestar_log::{Event, Payload, ReadError, SessionDir};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::inert;

/// An event as JSON. A redacted one has no payload and names the event that took it.
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
}

impl<'a> EventJson<'a> {
    /// The whole event, with what lies in blobs back in its place.
    pub(crate) fn whole(event: &'a Event, dir: &'a SessionDir) -> Result<Self, Failure> {
        let payload = event.whole(dir).map_err(|error| {
            Failure::check(format!("event #{} cannot be restored: {error}", event.seq))
                .help("`lodestar log verify` says what is wrong with the session")
        })?;
        let redacted_by = match event.payload {
            Payload::Redacted { by } => Some(by),
            Payload::Present(_) => None,
        };
        Ok(Self {
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
        })
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
