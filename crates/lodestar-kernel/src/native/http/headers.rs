//! Headers that an argument may set, and those that only the tool does.

use hyper::header::{HeaderName, HeaderValue};
use lodestar_core::name::Excerpt;

use crate::tool::ToolError;

/// Most headers that one request may bring.
const MAX_HEADERS: usize = 32;

/// Longest header value in bytes.
const MAX_VALUE_LEN: usize = 4096;

/// Headers that say where a request goes or where it ends: whoever sets one can smuggle another
/// request into it.
const FRAMING: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that say who asks, or in what form the answer comes, which are the operator's.
const RESERVED: &[&str] = &["accept-encoding", "authorization", "cookie", "cookie2"];

/// Whether the header shapes the message itself.
pub(super) fn frames(name: &HeaderName) -> bool {
    FRAMING.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// Reads the headers of a call; `credential` is the header that the operator's credential uses.
pub(super) fn read(
    pairs: &[(&str, &str)],
    credential: Option<&HeaderName>,
) -> Result<Vec<(HeaderName, HeaderValue)>, ToolError> {
    if pairs.len() > MAX_HEADERS {
        return Err(ToolError::refused(format!(
            "there are {} headers; at most {MAX_HEADERS} are taken",
            pairs.len()
        )));
    }
    let mut read: Vec<(HeaderName, HeaderValue)> = Vec::with_capacity(pairs.len());
    for &(name, value) in pairs {
        let shown = Excerpt::of(name);
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ToolError::invalid(format!("`{shown}` is no header name")))?;
        if frames(&name) || RESERVED.contains(&name.as_str()) || credential == Some(&name) {
            return Err(ToolError::refused(format!(
                "the header `{shown}` is not for arguments to set; leave it out"
            )));
        }
        if read.iter().any(|(other, _)| *other == name) {
            return Err(ToolError::invalid(format!(
                "the header `{shown}` is there twice; headers are the same in any case"
            )));
        }
        read.push((name, value_of(&shown, value)?));
    }
    Ok(read)
}

fn value_of(name: &Excerpt, value: &str) -> Result<HeaderValue, ToolError> {
    if value.len() > MAX_VALUE_LEN {
        return Err(ToolError::refused(format!(
            "the header `{name}` is {} bytes long; at most {MAX_VALUE_LEN} are taken",
            value.len()
        )));
    }
    let plain = value.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    HeaderValue::from_str(value)
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| {
            ToolError::invalid(format!(
                "the value of the header `{name}` has a character that no header has; write visible ASCII"
            ))
        })
}
