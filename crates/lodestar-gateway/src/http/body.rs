//! Bodies, whole and in time; and what they say, read so that every reader reads the same.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use lodestar_core::unambiguous;
use serde::de::DeserializeOwned;

use crate::code::{Code, Refusal};

/// What a request's body may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) bytes: u64,
    pub(super) within: Duration,
}

/// A body, piece by piece.
#[derive(Debug)]
pub(crate) struct Pieces {
    body: Body,
    left: u64,
    until: tokio::time::Instant,
}

impl Pieces {
    /// Refuses at once what says itself that it is too large.
    pub(super) fn of(body: Body, headers: &HeaderMap, allowed: Allowance) -> Result<Self, Refusal> {
        let said = headers.get(header::CONTENT_LENGTH);
        let said = said.and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
        if said.is_some_and(|said| said > allowed.bytes) {
            return Err(too_large(allowed.bytes));
        }
        Ok(Self {
            body,
            left: allowed.bytes,
            until: tokio::time::Instant::now() + allowed.within,
        })
    }

    /// The next piece; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let frame = tokio::time::timeout_at(self.until, self.body.frame()).await;
            let frame = frame.map_err(|_| Refusal::of(Code::BodyTooSlow))?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|_| Refusal::of(Code::BodyBroken))?;
            // Trailers are nobody's.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = data.len() as u64;
            if length > self.left {
                return Err(Refusal::of(Code::BodyTooLarge));
            }
            self.left -= length;
            return Ok(Some(data));
        }
    }

    /// All of it.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, Refusal> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }
}

fn too_large(bytes: u64) -> Refusal {
    Refusal::saying(
        Code::BodyTooLarge,
        format!("this route takes at most {bytes} bytes"),
    )
}

/// Whether a request says that its body is of a type.
pub(super) fn is_of_type(headers: &HeaderMap, wanted: &str) -> bool {
    let mut said = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(said), None) = (said.next(), said.next()) else {
        return false;
    };
    let said = said.to_str().unwrap_or_default();
    let said = said.split(';').next().unwrap_or_default().trim();
    said.eq_ignore_ascii_case(wanted)
}

/// How deep a body may be nested: terms with their policies and contracts stay far below.
const DEEPEST: usize = 100;

/// What a body says.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let malformed = |why: String| Refusal::saying(Code::MalformedJson, why);
    let text =
        str::from_utf8(body).map_err(|_| malformed("the body is not in UTF-8".to_owned()))?;
    if is_deeper(body, DEEPEST) {
        let why = format!("the body is nested deeper than {DEEPEST} levels");
        return Err(malformed(why));
    }
    let value = unambiguous::read(text).map_err(|problem| malformed(problem.to_string()))?;
    // PostgreSQL has no text with a NUL in it, and nothing here needs one.
    if has_nul(&value) {
        let why = "a text of the body has a NUL in it".to_owned();
        return Err(Refusal::saying(Code::InvalidBody, why));
    }
    serde_json::from_value(value)
        .map_err(|problem| Refusal::saying(Code::InvalidBody, problem.to_string()))
}

/// Whether brackets outside of texts open more levels than that.
fn is_deeper(json: &[u8], most: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for byte in json {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_text = false,
            (true, _) => {}
            (false, b'"') => in_text = true,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
    }
    false
}

fn has_nul(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::wire::{Attest, Named};

    fn code<T: DeserializeOwned + std::fmt::Debug>(body: &str) -> Code {
        read::<T>(body.as_bytes()).unwrap_err().code
    }

    #[test]
    fn what_two_readers_could_read_differently_is_no_body() {
        for body in ["", "{", "{} {}", r#"{"name":"a","name":"b"}"#, "nul"] {
            assert_eq!(code::<Named>(body), Code::MalformedJson, "{body}");
        }
        assert_eq!(
            read::<Named>(b"{\"name\":\"\xff\"}").unwrap_err().code,
            Code::MalformedJson
        );
    }

    #[test]
    fn a_field_too_many_or_too_few_is_refused() {
        for body in [
            r#"{}"#,
            r#"{"name":"a","more":1}"#,
            r#"{"name":1}"#,
            r#"{"name":"'; DROP TABLE devices; --"}"#,
            r#"{"name":"a\u0000b"}"#,
            "[]",
            "null",
        ] {
            assert_eq!(code::<Named>(body), Code::InvalidBody, "{body}");
        }
        assert!(read::<Named>(br#"{"name":"a"}"#).is_ok());
        assert_eq!(
            code::<Attest>(r#"{"device_trusted":"yes"}"#),
            Code::InvalidBody
        );
    }

    #[test]
    fn depth_has_a_bound_and_brackets_in_texts_are_none() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read::<Value>(nested(DEEPEST).as_bytes()).is_ok());
        assert_eq!(code::<Value>(&nested(DEEPEST + 1)), Code::MalformedJson);
        assert_eq!(code::<Value>(&"[".repeat(1 << 20)), Code::MalformedJson);
        let text = format!(r#"["{}\"[["]"#, "[".repeat(200));
        assert!(read::<Value>(text.as_bytes()).is_ok());
    }
}
