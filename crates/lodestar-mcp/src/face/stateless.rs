//! Clients without a session, since 2026-07-28: told apart by their token and by what they say they are.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use lodestar_core::canonical;
use lodestar_core::digest::{Digest, sha256};
use serde_json::json;
use serde_json::value::RawValue;

use super::attended::Key;
use super::body::{self, json as respond};
use super::{Shared, failure, full};
use crate::http::{METHOD, NAME, REVISION, about, decoded};
use crate::inline::{HEADER_MISMATCH, INLINE, Sender, UNKNOWN_REVISION, names_itself};
use crate::members::Members;
use crate::wire::{self, Id, Message};

/// Whether a request is one of a client without a session.
pub(super) fn is_stateless(headers: &HeaderMap, method: &str, params: Option<&RawValue>) -> bool {
    let named = headers.get(REVISION).is_some_and(|named| named == INLINE);
    method != "initialize" && (named || method == "server/discover" || names_itself(params))
}

impl Shared {
    /// A request that speaks for itself: its headers say what its body says, and nothing else.
    pub(super) async fn stateless(
        self: &Arc<Self>,
        owner: Digest,
        headers: &HeaderMap,
        message: &Bytes,
    ) -> Response {
        let Ok(Message::Request { id, method, params }) = Message::read(message) else {
            let why = "only requests speak for themselves";
            return failure(StatusCode::BAD_REQUEST, None, HEADER_MISMATCH, why);
        };
        let sender = match Sender::of(params) {
            Ok(sender) => sender,
            Err(problem) => return wrong(id, &problem.error().1.to_string()),
        };
        if let Err(why) = agrees(headers, &sender, &method, params) {
            let why = json!({"code": HEADER_MISMATCH, "message": why});
            return wrong(id, &why.to_string());
        }
        let key = Key::Identity(identity(owner, &sender));
        let known = self.attended().get(&key).cloned();
        let Some(attended) = known.or_else(|| self.begin(owner, key)) else {
            return full();
        };
        let response = attended
            .answer_stateless(message, body::takes_events(headers))
            .await;
        response.unwrap_or_else(status)
    }
}

/// A client, by its token and what it says it is.
fn identity(owner: Digest, sender: &Sender) -> Digest {
    let says = canonical::to_vec(&sender.client).unwrap_or_default();
    let mut all = owner.as_bytes().to_vec();
    all.extend_from_slice(&says);
    sha256(&all)
}

/// What routes a request and what is in it are the same.
fn agrees(
    headers: &HeaderMap,
    sender: &Sender,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), String> {
    let members = Members::of_some(params).unwrap_or_default();
    let wanted = [
        (REVISION, Some(sender.revision.clone())),
        (METHOD, Some(method.to_owned())),
        (NAME, about(method, &members)),
    ];
    for (name, wanted) in wanted {
        let said = one(headers, &name)?;
        if said != wanted {
            return Err(format!("the header `{name}` and the message disagree"));
        }
    }
    Ok(())
}

fn one(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, String> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    let text = value.to_str().ok().and_then(decoded);
    match (text, all.next()) {
        (Some(text), None) => Ok(Some(text)),
        _ => Err(format!("the header `{name}` says no one thing")),
    }
}

fn wrong(id: Id<'_>, error: &str) -> Response {
    let mut message = Vec::new();
    wire::error(&mut message, id.text(), error);
    respond(StatusCode::BAD_REQUEST, message)
}

/// An answer whose error is also one of HTTP.
fn status(message: Vec<u8>) -> Response {
    let code = match Message::read(&message) {
        Ok(Message::Failure { error, .. }) => Members::of(error)
            .ok()
            .and_then(|error| error.get("code")?.get().parse::<i64>().ok()),
        _ => None,
    };
    let status = match code {
        Some(UNKNOWN_REVISION | HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
        Some(super::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    respond(status, message)
}
