//! The spelling of what Lodestar's other crates define, for the schemas of the API: types of theirs that are
//! written as text, and the pattern of that text.

use std::borrow::Cow;
use std::marker::PhantomData;

use lodestar_core::device::DeviceLevel;
use lodestar_core::digest::Digest;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::id::{
    AccountId, AttestationId, BattleId, ContenderId, DeviceId, EvaluationId, RunId, RunnerId,
    SubmissionId, TermsId, TokenId,
};
use lodestar_core::key::PublicKey;
use lodestar_core::name::{ActorId, MAX_NAME_LEN};
use lodestar_core::statement::{Envelope, Nonce};
use lodestar_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Stands for `T` where a schema is made.
#[derive(Debug)]
pub(crate) struct As<T>(PhantomData<T>);

/// What is known of how a type is written.
pub(crate) trait Spelled {
    /// What the type is called in the API's document.
    const NAME: &'static str;

    /// What it looks like.
    fn schema() -> Schema;
}

impl<T: Spelled> JsonSchema for As<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

/// The spelling of an id, as a pattern.
pub(crate) fn id_pattern(prefix: &str) -> String {
    format!(
        "^{prefix}_[0-9a-f]{{8}}-[0-9a-f]{{4}}-7[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$"
    )
}

macro_rules! ids {
    ($($id:ident: $what:literal;)+) => {$(
        impl Spelled for $id {
            const NAME: &'static str = stringify!($id);

            fn schema() -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": id_pattern($id::PREFIX),
                    "description": $what,
                })
            }
        }
    )+};
}

ids! {
    AccountId: "An account: whoever owns devices, agents and runs.";
    DeviceId: "A machine with a key of its own.";
    RunnerId: "A program on a device that makes runs.";
    ContenderId: "An agent of an account.";
    RunId: "One governed session that is to be attested.";
    AttestationId: "A device's word on a run.";
    EvaluationId: "What the service made of a run.";
    TermsId: "What an owner registered runs to be judged by.";
    TokenId: "A token, by name; not the token itself.";
    SubmissionId: "A piece of work that was handed in.";
    BattleId: "A contest that work is handed in for.";
}

impl Spelled for Digest {
    const NAME: &'static str = "Digest";

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "A SHA-256, in hexadecimal digits.",
        })
    }
}

impl Spelled for PublicKey {
    const NAME: &'static str = "PublicKey";

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "An Ed25519 key's public half, in hexadecimal digits.",
        })
    }
}

impl Spelled for Nonce {
    const NAME: &'static str = "Nonce";

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{32}$",
            "description": "Sixteen random bytes, in hexadecimal digits.",
        })
    }
}

impl Spelled for Timestamp {
    const NAME: &'static str = "Timestamp";

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$",
            "description": "A moment in UTC, to the microsecond, always written in full.",
        })
    }
}

impl Spelled for ActorId {
    const NAME: &'static str = "Name";

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z0-9](\\.?[A-Za-z0-9_-])*\\.?$",
            "minLength": 1,
            "maxLength": MAX_NAME_LEN,
            "description": "A name: letters, digits, `.`, `_` and `-`; starts with a letter or digit, and has no `..`.",
        })
    }
}

macro_rules! vocabularies {
    ($($words:ident: $what:literal;)+) => {$(
        impl Spelled for $words {
            const NAME: &'static str = stringify!($words);

            fn schema() -> Schema {
                let words: Vec<_> = $words::ALL.iter().map(|word| word.as_str()).collect();
                json_schema!({"type": "string", "enum": words, "description": $what})
            }
        }
    )+};
}

vocabularies! {
    DeviceLevel: "How far a device has come; see the device ladder.";
    ExecutionLevel: "How far a run is proved; see the execution ladder.";
    ExecutionFact: "A fact that the execution ladder asks for.";
}

impl Spelled for Envelope {
    const NAME: &'static str = "Envelope";

    fn schema() -> Schema {
        json_schema!({
            "type": "object",
            "description": "A signed statement in DSSE: its payload and signatures in standard base64.",
            "additionalProperties": false,
            "required": ["payload", "payloadType", "signatures"],
            "properties": {
                "payload": {"type": "string", "contentEncoding": "base64"},
                "payloadType": {"type": "string"},
                "signatures": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": lodestar_core::statement::MAX_ENVELOPE_SIGNATURES,
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["keyid", "sig"],
                        "properties": {
                            "keyid": {"type": "string", "pattern": "^ed25519:[0-9a-f]{64}$"},
                            "sig": {"type": "string", "contentEncoding": "base64"},
                        },
                    },
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_of_an_id_is_that_of_its_spelling() {
        let id = DeviceId::from_parts(1_700_000_000_000, [0xab; 10]).to_string();
        // As the pattern says it, without a machine for patterns: lengths and fixed places.
        let parts: Vec<_> = id.split(['_', '-']).map(str::len).collect();
        assert_eq!(parts, [3, 8, 4, 4, 4, 12]);
        assert!(id_pattern(DeviceId::PREFIX).starts_with("^dev_"));
        assert_eq!(&id[18..19], "7");
    }
}
