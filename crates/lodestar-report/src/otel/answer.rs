//! What a receiver answers: whether it took the spans, some of them, or is none.

use lodestar_core::name::Excerpt;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use serde::Deserialize;

/// Longest answer: a receiver has to say how many spans it rejects, and why, and no more.
pub(super) const MAX_ANSWER: usize = 64 << 10;

pub(super) const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// What a receiver says of a batch that it took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// How many spans it rejects.
    pub rejected: i64,
    /// What it has to say, inert.
    pub remark: Option<Excerpt>,
}

impl Answer {
    /// Reads a body of this content type. Nothing is what a receiver with nothing to say says; what is of
    /// another type, or none of its type, says that this is no receiver.
    pub fn read(kind: &str, body: &[u8]) -> Option<Self> {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        let (rejected, said) = match essence {
            _ if body.is_empty() => Default::default(),
            _ if body.len() > MAX_ANSWER => return None,
            PROTOBUF | "" => {
                let answer = ExportTraceServiceResponse::decode(body).ok()?;
                let partial = answer.partial_success.unwrap_or_default();
                (partial.rejected_spans, partial.error_message)
            }
            JSON => {
                let answer: InJson = serde_json::from_slice(body).ok()?;
                let partial = answer.partial_success.unwrap_or_default();
                (partial.rejected_spans.number()?, partial.error_message)
            }
            _ => return None,
        };
        let said = Some(said).filter(|said| !said.is_empty());
        Some(Self {
            rejected,
            remark: said.map(|said| Excerpt::of(&said)),
        })
    }
}

/// The same answer in JSON. Protobuf's JSON writes such numbers as texts, which the generated types do not
/// read here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InJson {
    #[serde(default)]
    partial_success: Option<Partial>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Partial {
    rejected_spans: Count,
    error_message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Count {
    Number(i64),
    Text(String),
}

impl Default for Count {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Count {
    fn number(self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_the_same_in_protobuf_and_in_json() {
        let said = Answer {
            rejected: 3,
            remark: Some(Excerpt::of("too old")),
        };
        let protobuf = b"\x0a\x0b\x08\x03\x12\x07too old";
        assert_eq!(Answer::read(PROTOBUF, protobuf).as_ref(), Some(&said));
        for rejected in ["3", "\"3\""] {
            let json = format!(
                r#"{{"partialSuccess":{{"rejectedSpans":{rejected},"errorMessage":"too old"}}}}"#
            );
            let kind = "application/json; charset=utf-8";
            assert_eq!(Answer::read(kind, json.as_bytes()).as_ref(), Some(&said));
        }
        for nothing in [
            "{}",
            r#"{"partialSuccess":{}}"#,
            r#"{"partialSuccess":null}"#,
        ] {
            assert_eq!(
                Answer::read(JSON, nothing.as_bytes()),
                Some(Answer::default())
            );
        }
    }

    #[test]
    fn what_no_receiver_says_is_no_answer() {
        assert_eq!(Answer::read("text/html", b"<p>welcome</p>"), None);
        assert_eq!(Answer::read(PROTOBUF, b"no protobuf"), None);
        assert_eq!(
            Answer::read(JSON, br#"{"partialSuccess":{"rejectedSpans":"many"}}"#),
            None
        );
        // Each pair of these bytes is a field that nobody knows.
        assert_eq!(Answer::read(PROTOBUF, &vec![b'x'; MAX_ANSWER + 2]), None);
    }
}
