//! `http.request` and `http.fetch`.
//!
//! Both reach only hosts that the operator named, in HTTP/1.1 over a connection of the
//! [connector](super::net::connector), one for each request. [`HttpRequest`] sends whatever was
//! approved and follows nothing. [`HttpFetch`] reads from a few places whose paths and queries are
//! pinned, so tightly that it may stand on a low rung, and checks every redirect like a first call.
//! [`client`] is no tool: by it Lodestar itself asks a service that the operator named.

pub mod client;
mod config;
pub(crate) mod exchange;
mod fetch;
mod headers;
mod request;

pub use config::{
    DEFAULT_MAX_REQUEST_BYTES, DEFAULT_MAX_RESPONSE_BYTES, FetchConfig, FetchEntry, HostEntry,
    HttpError, MAX_BODY_BYTES, Method, RequestConfig,
};
pub use fetch::{HttpFetch, MAX_HOPS};
pub use request::HttpRequest;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::chain::ContentBlock;
use serde_json::{Map, json};

use crate::tool::Output;
use exchange::Incoming;

/// What came back, as content: status and headers in one block, the body in another.
fn output(url: &str, hops: &[String], incoming: Incoming) -> Output {
    let mut head = json!({
        "url": url,
        "status": incoming.status,
        "headers": incoming.headers,
        "body_bytes": incoming.body.len(),
    });
    if !hops.is_empty() {
        head["redirects"] = json!(hops);
    }
    if incoming.scrubbed > 0 {
        head["credentials_removed"] = json!(incoming.scrubbed);
    }
    let mut content = vec![ContentBlock::Structured { value: head }];
    let media = incoming.header("content-type").map(str::to_owned);
    match String::from_utf8(incoming.body) {
        Ok(text) if text.is_empty() => {}
        Ok(text) => content.push(ContentBlock::Text {
            text,
            rest: Map::new(),
        }),
        Err(binary) => content.push(blob(url, media, binary.as_bytes())),
    }
    Output {
        content,
        is_error: incoming.status >= 400,
        ..Output::default()
    }
}

/// A body that is not text, as an embedded resource.
fn blob(url: &str, media: Option<String>, bytes: &[u8]) -> ContentBlock {
    let mut resource = Map::new();
    resource.insert("uri".into(), json!(url));
    if let Some(media) = media {
        resource.insert("mimeType".into(), json!(media));
    }
    resource.insert("blob".into(), json!(STANDARD.encode(bytes)));
    ContentBlock::Resource {
        resource,
        rest: Map::new(),
    }
}
#[cfg(test)]
mod tests;
