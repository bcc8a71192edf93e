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
use crate::in_headers::Annotated;
use crate::inline::{
    self, BadSender, HEADER_MISMATCH, INLINE, MISSING_CAPABILITY, Sender, UNKNOWN_REVISION,
    names_itself,
};
use crate::members::Members;
use crate::wire::{self, Id, Message};

/// Whether a request is one of a client without a session. A handshake is none, whatever it hopes for,
/// unless it speaks for itself.
pub(super) fn is_stateless(headers: &HeaderMap, method: &str, params: Option<&RawValue>) -> bool {
    let named = headers.get(REVISION).is_some_and(|named| named == INLINE);
    let is_told = method == "server/discover" || (named && method != "initialize");
    is_told || names_itself(params)
}

/// The answer to a message whose headers name a revision that is not spoken here.
pub(super) fn unknown_revision(headers: &HeaderMap, message: &Message<'_>) -> Response {
    let named = headers.get(REVISION).map(|named| named.as_bytes());
    let named = String::from_utf8_lossy(named.unwrap_or_default()).into_owned();
    let error = BadSender::Revision(named).error().1.to_string();
    match message {
        Message::Request { id, .. } => wrong(Some(id), &error),
        _ => wrong(None, &error),
    }
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
        let members = Members::of_some(params).unwrap_or_default();
        if let Err(why) = agrees(headers, &method, &members) {
            return mismatch(&id, &why);
        }
        let sender = match Sender::of(params) {
            Ok(sender) => sender,
            Err(problem) => return wrong(Some(&id), &problem.error().1.to_string()),
        };
        let key = Key::Identity(identity(owner, &sender));
        let known = self.attended().get(&key).cloned();
        let Some(attended) = known.or_else(|| self.begin(owner, key)) else {
            return full();
        };
        if let (true, Some(tool)) = (method == "tools/call", members.text("name")) {
            let annotated = attended.conversation.annotated(&sender, &tool).await;
            if let Err(why) = repeats(headers, &annotated, &members) {
                return mismatch(&id, &why);
            }
        }
        let response = attended
            .answer_stateless(message, body::takes_events(headers))
            .await;
        response.unwrap_or_else(status)
    }
}

/// A client, by its token and by what it says it is and can.
fn identity(owner: Digest, sender: &Sender) -> Digest {
    let says = json!([sender.client, sender.capabilities]);
    // What has no canonical form still has one of its own.
    let says = canonical::to_vec(&says).unwrap_or_else(|_| says.to_string().into_bytes());
    let mut all = owner.as_bytes().to_vec();
    all.extend_from_slice(&says);
    sha256(&all)
}

/// What routes a request and what is in it are the same. What a request does not say, nothing disagrees with.
fn agrees(headers: &HeaderMap, method: &str, members: &Members<'_>) -> Result<(), String> {
    let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
    if let Some(revision) = meta.text(inline::REVISION) {
        same(headers, &REVISION, Some(&revision))?;
    }
    same(headers, &METHOD, Some(method))?;
    same(headers, &NAME, about(method, members).as_deref())
}

/// What a tool wants to have in headers is there what it is in the arguments.
fn repeats(
    headers: &HeaderMap,
    annotated: &[Annotated],
    members: &Members<'_>,
) -> Result<(), String> {
    if annotated.is_empty() {
        return Ok(());
    }
    let arguments = members.get("arguments").map_or("{}", RawValue::get);
    let arguments = serde_json::from_str(arguments).unwrap_or_default();
    annotated
        .iter()
        .try_for_each(|one| same(headers, &one.header, one.text(&arguments).as_deref()))
}

fn same(headers: &HeaderMap, name: &HeaderName, wanted: Option<&str>) -> Result<(), String> {
    match one(headers, name)?.as_deref() == wanted {
        true => Ok(()),
        false => Err(format!("the header `{name}` and the message disagree")),
    }
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

fn wrong(id: Option<&Id<'_>>, error: &str) -> Response {
    let mut message = Vec::new();
    wire::error(&mut message, id.map_or("null", |id| id.text()), error);
    respond(StatusCode::BAD_REQUEST, message)
}

fn mismatch(id: &Id<'_>, why: &str) -> Response {
    let error = json!({"code": HEADER_MISMATCH, "message": why});
    wrong(Some(id), &error.to_string())
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
        Some(UNKNOWN_REVISION | MISSING_CAPABILITY | HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
        Some(super::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    respond(status, message)
}
