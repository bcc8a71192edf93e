//! `nostr.publish`: a signed event to relays that the operator named.
//!
//! The event is made and signed here, so that what is published is exactly what was approved, by a
//! key that no argument can choose. Publishing cannot be taken back: relays copy from each other.

mod config;
mod event;
mod relay;

pub use config::{
    DEFAULT_MAX_CONTENT_BYTES, MAX_CONTENT_BYTES, MAX_RELAYS, NostrConfig, NostrError,
};
pub use event::{Event, Key, KeyError};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde_json::{Map, Value, json};

use self::relay::{Answer, publish};
use super::net::arguments;
use super::net::connector::Connector;
use super::net::credential::Source;
use super::net::endpoint::Location;
use super::net::resolve::Resolver;
use super::net::wire::Wire;
use crate::tool::{
    Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError, ToolErrorKind,
};

/// Most tags of an event, most words of a tag, and longest word.
const MAX_TAGS: usize = 256;
const MAX_TAG_WORDS: usize = 16;
const MAX_WORD_LEN: usize = 1024;

/// What is left of a call's time for the report, once relays no longer answer.
const REPORT_TIME: Duration = Duration::from_millis(200);

/// The tool `nostr.publish`.
#[derive(Debug)]
pub struct NostrPublish {
    definition: Definition,
    connector: Connector,
    relays: Vec<Location>,
    kinds: Vec<u16>,
    key: Key,
    max_content_bytes: usize,
}

impl NostrPublish {
    /// The tool for this configuration; the key is read now.
    pub fn new(
        config: NostrConfig,
        scope: Scope,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, NostrError> {
        let relays = config::relays(&config.relays)?;
        if config.kinds.is_empty() {
            return Err(NostrError::NoKinds);
        }
        if !(1..=MAX_CONTENT_BYTES).contains(&config.max_content_bytes) {
            return Err(NostrError::Cap {
                given: config.max_content_bytes,
            });
        }
        let source = Source::of(
            config.credential_env.as_deref(),
            config.credential_file.as_deref(),
        )?;
        let key = Key::parse(&source.ok_or(NostrError::NoKey)?.read()?)?;
        Ok(Self {
            definition: definition(&relays, &config.kinds, scope)?,
            connector: Connector::new(&config.network, resolver)?,
            relays,
            kinds: config.kinds,
            key,
            max_content_bytes: config.max_content_bytes,
        })
    }

    async fn run(&self, call: &Call<'_>) -> Result<Output, ToolError> {
        let arguments = call.arguments();
        arguments::only(arguments, &["content", "kind", "tags", "relays"])?;
        let content = call.text("content")?;
        if content.len() > self.max_content_bytes {
            return Err(ToolError::refused(format!(
                "`content` is {} bytes long; at most {} are published",
                content.len(),
                self.max_content_bytes
            )));
        }
        check_text("content", content)?;
        let kind = self.kind(arguments)?;
        let tags = tags(arguments)?;
        let relays = self.chosen(arguments)?;
        let event = self
            .key
            .sign(now()?, kind, tags, content.to_owned())
            .map_err(|e| ToolError::failed(Effect::None, e.to_string()))?;
        let wire = Wire::default();
        let each = self
            .connector
            .timeout()
            .min(call.time_left().saturating_sub(REPORT_TIME));
        let work = async {
            let asked = relays
                .iter()
                .map(|relay| publish(&self.connector, &wire, relay, &event, each));
            Ok(join_all(asked).await)
        };
        let answers = wire.watch(call, call.time_left(), work).await?;
        report(&wire, &event, &relays, answers)
    }

    fn kind(&self, arguments: &Map<String, Value>) -> Result<u16, ToolError> {
        let kind = arguments
            .get("kind")
            .and_then(Value::as_u64)
            .and_then(|kind| u16::try_from(kind).ok())
            .ok_or_else(|| ToolError::invalid("`kind` must be a number from 0 to 65535"))?;
        if self.kinds.contains(&kind) {
            return Ok(kind);
        }
        Err(ToolError::refused(format!(
            "kind {kind} is not among those that this tool publishes; the operator can add it to `kinds`"
        )))
    }

    fn chosen(&self, arguments: &Map<String, Value>) -> Result<Vec<&Location>, ToolError> {
        let Some(named) = arguments::texts(arguments, "relays")? else {
            return Ok(self.relays.iter().collect());
        };
        let mut chosen: Vec<&Location> = Vec::new();
        for text in named {
            let location =
                Location::parse(text).map_err(|refused| ToolError::refused(refused.to_string()))?;
            let known = self.relays.iter().find(|relay| **relay == location);
            let known = known.ok_or_else(|| {
                ToolError::refused(format!(
                    "`{}` is not among the relays of this tool; the operator can add it to `relays`",
                    Excerpt::of(text)
                ))
            })?;
            if !chosen.contains(&known) {
                chosen.push(known);
            }
        }
        if chosen.is_empty() {
            return Err(ToolError::invalid(
                "`relays` is empty; leave it out for all of them",
            ));
        }
        Ok(chosen)
    }
}

impl Tool for NostrPublish {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move { self.run(&call).await })
    }
}

/// What became of it, relay by relay. A failure only where no relay can have got it.
fn report(
    wire: &Wire,
    event: &Event,
    relays: &[&Location],
    answers: Vec<Answer>,
) -> Result<Output, ToolError> {
    if wire.effect() == Effect::None {
        let kind = answers.iter().find_map(Answer::kind);
        let reasons: Vec<_> = answers.iter().map(Answer::reason).collect();
        return Err(ToolError {
            kind: kind.unwrap_or(ToolErrorKind::Failed),
            message: reasons.join("; "),
            effect: Effect::None,
        });
    }
    let accepted = answers.iter().any(Answer::is_accepted);
    let relays: Vec<_> = relays
        .iter()
        .zip(&answers)
        .map(|(relay, answer)| {
            json!({ "relay": relay.as_str(), "answer": answer.word(), "message": answer.reason() })
        })
        .collect();
    Ok(Output {
        is_error: !accepted,
        ..Output::structured(json!({ "event": event, "relays": relays }))
    })
}

fn tags(arguments: &Map<String, Value>) -> Result<Vec<Vec<String>>, ToolError> {
    let Some(value) = arguments.get("tags") else {
        return Ok(Vec::new());
    };
    let tags: Vec<Vec<String>> = serde_json::from_value(value.clone())
        .map_err(|_| ToolError::invalid("`tags` must be a list of lists of strings"))?;
    let fits = tags.len() <= MAX_TAGS
        && tags.iter().all(|tag| {
            (1..=MAX_TAG_WORDS).contains(&tag.len())
                && tag.iter().all(|word| word.len() <= MAX_WORD_LEN)
        });
    if !fits {
        return Err(ToolError::refused(format!(
            "`tags` takes at most {MAX_TAGS} tags of 1 to {MAX_TAG_WORDS} words of at most {MAX_WORD_LEN} bytes"
        )));
    }
    for word in tags.iter().flatten() {
        check_text("tags", word)?;
    }
    Ok(tags)
}

/// Refuses the control characters that JSON writers escape in different ways: relays would not
/// agree on the event's id.
fn check_text(name: &str, text: &str) -> Result<(), ToolError> {
    match text
        .chars()
        .find(|c| *c < ' ' && !matches!(c, '\n' | '\r' | '\t'))
    {
        Some(c) => Err(ToolError::invalid(format!(
            "`{name}` has the control character `{}`; leave it out",
            Excerpt::of_char(c)
        ))),
        None => Ok(()),
    }
}

fn now() -> Result<u64, ToolError> {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|since| since.as_secs())
        .map_err(|_| ToolError::failed(Effect::None, "the clock stands before 1970; set it"))
}

fn definition(relays: &[Location], kinds: &[u16], scope: Scope) -> Result<Definition, NostrError> {
    let relays: Vec<_> = relays.iter().map(Location::as_str).collect();
    Ok(Definition {
        name: ToolName::new("nostr.publish")?,
        server: ServerIdentity::new(NATIVE_SERVER)?,
        description: "Signs a Nostr event with the operator's key and publishes it on relays that the operator named. It cannot be taken back.".into(),
        input_schema: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["content", "kind"],
            "properties": {
                "content": { "type": "string" },
                "kind": { "type": "integer", "enum": kinds },
                "tags": {
                    "type": "array",
                    "maxItems": MAX_TAGS,
                    "items": { "type": "array", "minItems": 1, "items": { "type": "string" } },
                },
                "relays": { "type": "array", "minItems": 1, "items": { "type": "string", "enum": relays } },
            },
        }),
        roles: BTreeMap::from([
            ("content".to_owned(), ArgumentRole::Payload),
            ("kind".to_owned(), ArgumentRole::Other),
            // A `p` tag names a person, who is told of the event.
            ("tags".to_owned(), ArgumentRole::Identity),
            ("relays".to_owned(), ArgumentRole::Destination),
        ]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L4,
            blast_radius: BlastRadius::External,
            reversibility: Reversibility::Irreversible,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::ControlledNetwork,
            permissions: BTreeSet::from([
                Permission::Network,
                Permission::Credentials,
                Permission::Publish,
                Permission::Sign,
            ]),
        },
    })
}

#[cfg(test)]
mod tests;
