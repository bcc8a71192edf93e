//! JSON-RPC messages as they come.
//!
//! Only the envelope is read. Parameters, results and errors stay the bytes that came, with every field
//! that nobody here knows: they are logged and passed on as they are, and whoever looks into them looks at
//! a view. What is no message, or could be read as two different ones, is refused; if it has an id, the
//! refusal says so, so that somebody can be answered.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

/// A message.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// Something that wants an answer.
    Request {
        /// What the answer has to carry.
        id: Id<'a>,
        /// What is wanted.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// Something that wants none.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// What a request came to.
    Answer {
        /// The request's.
        id: Id<'a>,
        /// What came of it.
        result: &'a RawValue,
    },
    /// What was wrong with a request.
    Failure {
        /// The request's; none where it could not be read.
        id: Option<Id<'a>>,
        /// Code, message and whatever else.
        error: &'a RawValue,
    },
}

/// An id, as it was written: a string or a whole number.
#[derive(Debug, Clone, Copy)]
pub struct Id<'a>(&'a RawValue);

/// What an id means, whichever way it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdKey {
    /// A whole number.
    Number(i64),
    /// A string.
    Text(String),
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    /// They are no JSON, or nest too deep.
    #[error("it is no JSON: {0}")]
    NoJson(String),
    /// Several messages in one, which no revision that is spoken here allows.
    #[error("it is a batch")]
    Batch,
    /// It is no object.
    #[error("it is no object")]
    NoObject,
    /// It does not say that it is JSON-RPC 2.0.
    #[error("`jsonrpc` is not \"2.0\"")]
    OtherVersion,
    /// Its id is neither a string nor a whole number.
    #[error("its id is neither a string nor a whole number")]
    BadId,
    /// It is both a request and an answer, or an answer and a failure.
    #[error("it says more than one thing at once")]
    Ambiguous,
    /// It is neither a request nor an answer.
    #[error("it is neither a request nor an answer")]
    Neither,
    /// An answer to nothing.
    #[error("it is an answer without an id")]
    NoId,
    /// Parameters are neither an object nor a list.
    #[error("its parameters are neither an object nor a list")]
    BadParams,
}

/// What could not be taken, and whom to answer.
#[derive(Debug, Clone)]
pub struct Refused<'a> {
    /// Why.
    pub why: Malformed,
    /// The id of what looks like a request.
    pub id: Option<Id<'a>>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// `null` is there, other than nothing.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> Message<'a> {
    /// Reads one message.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Refused<'a>> {
        let refused = |why| Refused { why, id: None };
        match bytes.trim_ascii_start().first() {
            Some(b'{') => {}
            Some(b'[') => return Err(refused(Malformed::Batch)),
            _ => return Err(refused(Malformed::NoObject)),
        }
        let fields: Fields<'a> = serde_json::from_slice(bytes)
            .map_err(|problem| refused(Malformed::NoJson(problem.to_string())))?;
        Self::of(fields)
    }

    fn of(fields: Fields<'a>) -> Result<Self, Refused<'a>> {
        let Fields {
            jsonrpc,
            id,
            method,
            params,
            result,
            error,
        } = fields;
        let read = id.map(Id::read);
        let refused = |why| Refused {
            why,
            id: read.flatten(),
        };
        if jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(refused(Malformed::OtherVersion));
        }
        match (method, result, error) {
            (Some(method), None, None) => {
                if params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
                    return Err(refused(Malformed::BadParams));
                }
                match read {
                    None => Ok(Self::Notification { method, params }),
                    Some(Some(id)) => Ok(Self::Request { id, method, params }),
                    Some(None) => Err(refused(Malformed::BadId)),
                }
            }
            (None, Some(result), None) => match read {
                Some(Some(id)) => Ok(Self::Answer { id, result }),
                Some(None) => Err(refused(Malformed::BadId)),
                None => Err(refused(Malformed::NoId)),
            },
            (None, None, Some(error)) => match (read, id.map(RawValue::get)) {
                (Some(Some(id)), _) => Ok(Self::Failure {
                    id: Some(id),
                    error,
                }),
                (None, _) | (Some(None), Some("null")) => Ok(Self::Failure { id: None, error }),
                (Some(None), _) => Err(refused(Malformed::BadId)),
            },
            (None, None, None) => Err(refused(Malformed::Neither)),
            _ => Err(refused(Malformed::Ambiguous)),
        }
    }
}

impl<'a> Id<'a> {
    /// None where it is neither a string nor a whole number that everybody can hold.
    pub fn read(raw: &'a RawValue) -> Option<Self> {
        let id = Self(raw);
        id.try_key().map(|_| id)
    }

    fn try_key(self) -> Option<IdKey> {
        let text = self.0.get();
        if text.starts_with('"') {
            return serde_json::from_str(text).ok().map(IdKey::Text);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_whole.then(|| text.parse().ok().map(IdKey::Number))?
    }

    /// What it means.
    pub fn key(self) -> IdKey {
        self.try_key()
            .expect("INVARIANT: an id is read when it is made")
    }

    /// As it was written.
    pub fn text(self) -> &'a str {
        self.0.get()
    }
}

/// Writes a request with an id of one's own.
pub fn request(out: &mut Vec<u8>, id: u64, method: &str, params: Option<&RawValue>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.to_string().as_bytes());
    said(out, method, params);
}

/// Writes a notification.
pub fn notification(out: &mut Vec<u8>, method: &str, params: Option<&RawValue>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    said(out, method, params);
}

fn said(out: &mut Vec<u8>, method: &str, params: Option<&RawValue>) {
    out.extend_from_slice(b",\"method\":");
    quoted(out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.get().as_bytes());
    }
    out.push(b'}');
}

/// Writes an answer; the id as whoever asked wrote it.
pub fn answer(out: &mut Vec<u8>, id: &str, result: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result.as_bytes());
    out.push(b'}');
}

/// Writes an error that somebody else wrote; the id as whoever asked wrote it.
pub fn error(out: &mut Vec<u8>, id: &str, error: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"error\":");
    out.extend_from_slice(error.as_bytes());
    out.push(b'}');
}

/// Writes that a request failed.
pub fn failure(out: &mut Vec<u8>, id: Option<&str>, code: i64, message: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.unwrap_or("null").as_bytes());
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    quoted(out, message);
    out.extend_from_slice(b"}}");
}

fn quoted(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("INVARIANT: a text is written into memory");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn why(text: &str) -> Malformed {
        match Message::read(text.as_bytes()) {
            Err(refused) => refused.why,
            Ok(message) => panic!("{message:?}"),
        }
    }

    #[test]
    fn what_is_inside_stays_as_it_was_written() {
        let text = r#"{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"n":1.0, "x" : [1e400]},"more":1}"#;
        let Ok(Message::Request { id, method, params }) = Message::read(text.as_bytes()) else {
            panic!("a request")
        };
        assert_eq!(id.text(), r#""\u0061""#);
        assert_eq!(id.key(), IdKey::Text("a".to_owned()));
        assert_eq!(method, "tools/call");
        assert_eq!(params.unwrap().get(), r#"{"n":1.0, "x" : [1e400]}"#);
    }

    #[test]
    fn what_could_be_two_things_or_none_is_refused() {
        for (text, wanted) in [
            ("[]", Malformed::Batch),
            ("7", Malformed::NoObject),
            ("", Malformed::NoObject),
            ("{}", Malformed::OtherVersion),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
                Malformed::OtherVersion,
            ),
            (r#"{"jsonrpc":"2.0"}"#, Malformed::Neither),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
                Malformed::Ambiguous,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
                Malformed::Ambiguous,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
                Malformed::BadId,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
                Malformed::BadId,
            ),
            (
                r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"m"}"#,
                Malformed::BadId,
            ),
            (r#"{"jsonrpc":"2.0","id":{},"result":{}}"#, Malformed::BadId),
            (r#"{"jsonrpc":"2.0","result":{}}"#, Malformed::NoId),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","params":3}"#,
                Malformed::BadParams,
            ),
        ] {
            assert_eq!(why(text), wanted, "{text}");
        }
        let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#;
        assert!(matches!(why(twice), Malformed::NoJson(_)));
    }

    #[test]
    fn a_refusal_names_whom_to_answer() {
        let text = r#"{"jsonrpc":"2.0","id":41,"method":"m","params":3}"#;
        let refused = Message::read(text.as_bytes()).unwrap_err();
        assert_eq!(refused.id.map(Id::key), Some(IdKey::Number(41)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::read(&bytes);
        }

        #[test]
        fn what_is_written_is_read_again(id in any::<u64>(), method in ".{0,40}", message in ".{0,40}") {
            let params = RawValue::from_string("{\"a\": 1.0}".to_owned()).unwrap();
            let mut out = Vec::new();
            request(&mut out, id >> 1, &method, Some(&params));
            let Ok(Message::Request { id: read, method: same, params: kept }) = Message::read(&out)
            else {
                return Err(TestCaseError::fail("a request"));
            };
            prop_assert_eq!(read.key(), IdKey::Number((id >> 1) as i64));
            prop_assert_eq!(same, method);
            prop_assert_eq!(kept.unwrap().get(), params.get());
            out.clear();
            failure(&mut out, Some("\"x\""), -32600, &message);
            let read = matches!(Message::read(&out), Ok(Message::Failure { .. }));
            prop_assert!(read);
        }
    }
}
