//! Web hooks: places that take `{"text": …}` and show it to people.
//!
//! The URL of a hook is usually its only secret, so it is named and never shown.

use std::path::PathBuf;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use lodestar_core::name::Excerpt;
use serde::Deserialize;
use serde_json::json;

use super::{MessageError, Words};
use crate::native::http::exchange::{Cap, Outgoing, exchange};
use crate::native::net::connector::Connector;
use crate::native::net::credential::{Scrubber, Secret, Source};
use crate::native::net::endpoint::{Location, Scheme};
use crate::native::net::wire::Wire;
use crate::tool::{Effect, Output, ToolError};

/// Largest answer of a hook: a word of thanks.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Longest name of a hook.
const MAX_NAME_LEN: usize = 64;

/// The configuration of web hooks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The hooks; a message goes to those that it names.
    pub hooks: Vec<Hook>,
}

/// A web hook, with its URL from one of three places.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// What messages call it.
    pub name: String,
    /// Its URL, if that is no secret.
    pub url: Option<String>,
    /// The environment variable with its URL.
    pub url_env: Option<String>,
    /// The file with its URL, mode 0600.
    pub url_file: Option<PathBuf>,
}

/// Web hooks, ready to use.
#[derive(Debug)]
pub(super) struct Webhooks {
    hooks: Vec<Ready>,
}

pub(super) struct Ready {
    name: String,
    location: Location,
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hook({} at {})", self.name, self.location.endpoint())
    }
}

impl Webhooks {
    pub(super) fn new(config: WebhookConfig) -> Result<Self, MessageError> {
        let mut hooks: Vec<Ready> = Vec::new();
        for hook in config.hooks {
            let name = Excerpt::of(&hook.name);
            if hooks.iter().any(|other| other.name == hook.name) {
                return Err(MessageError::Twice { name });
            }
            if !is_name(&hook.name) {
                return Err(MessageError::HookName { name });
            }
            hooks.push(ready(hook)?);
        }
        if hooks.is_empty() {
            return Err(MessageError::Nobody);
        }
        Ok(Self { hooks })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.hooks.iter().map(|hook| hook.name.clone()).collect()
    }

    /// The hooks of a call, each once, all of them known.
    pub(super) fn recipients(&self, texts: &[&str]) -> Result<Vec<&Ready>, ToolError> {
        let mut to: Vec<&Ready> = Vec::new();
        for text in texts {
            let hook = self
                .hooks
                .iter()
                .find(|hook| hook.name == *text)
                .ok_or_else(|| {
                    ToolError::refused(format!(
                        "`{}` is not among the hooks of this tool; the operator can add it to `hooks`",
                        Excerpt::of(text)
                    ))
                })?;
            if !to.iter().any(|other| other.name == hook.name) {
                to.push(hook);
            }
        }
        Ok(to)
    }

    /// Tells each hook in turn; a failure only where none can have got it.
    pub(super) async fn send(
        &self,
        connector: &Connector,
        wire: &Wire,
        to: &[&Ready],
        words: Words<'_>,
    ) -> Result<Output, ToolError> {
        let text = match words.subject {
            Some(subject) => format!("{subject}\n\n{}", words.body),
            None => words.body.to_owned(),
        };
        let body = Bytes::from(json!({ "text": text }).to_string());
        let mut report = Vec::new();
        let mut is_error = false;
        for hook in to {
            match post(connector, wire, hook, body.clone()).await {
                Ok(status) => {
                    is_error |= !(200..300).contains(&status);
                    report.push(json!({ "hook": hook.name, "status": status }));
                }
                Err(error) if wire.effect() == Effect::None => return Err(error),
                Err(error) => {
                    is_error = true;
                    report.push(json!({ "hook": hook.name, "failed": error.message }));
                }
            }
        }
        if report.iter().all(|one| one.get("failed").is_some()) {
            let reasons: Vec<_> = report
                .iter()
                .filter_map(|one| one["failed"].as_str())
                .collect();
            return Err(wire.failed(reasons.join("; ")));
        }
        Ok(Output {
            is_error,
            ..Output::structured(json!({ "hooks": report }))
        })
    }
}

async fn post(
    connector: &Connector,
    wire: &Wire,
    hook: &Ready,
    body: Bytes,
) -> Result<u16, ToolError> {
    let outgoing = Outgoing {
        method: "POST",
        target: hook.location.target(),
        headers: vec![(
            CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        )],
        body,
    };
    let endpoint = hook.location.endpoint();
    // Of the answer only its status is passed on, so there is nothing to remove from it.
    let none = Scrubber::none();
    let cap = Cap::Refused(MAX_ANSWER_BYTES);
    exchange(connector, wire, endpoint, outgoing, &none, cap)
        .await
        .map(|incoming| incoming.status)
}

fn ready(hook: Hook) -> Result<Ready, MessageError> {
    let name = Excerpt::of(&hook.name);
    let source = Source::of(hook.url_env.as_deref(), hook.url_file.as_deref())
        .map_err(|_| MessageError::HookSource { name: name.clone() })?;
    let url = match (hook.url, source) {
        (Some(url), None) => Secret::part(&url),
        (None, Some(source)) => source.read()?,
        _ => return Err(MessageError::HookSource { name }),
    };
    let location = Location::parse(url.expose())
        .ok()
        .filter(|location| location.endpoint().scheme() == Scheme::Https)
        .ok_or(MessageError::HookUrl { name })?;
    Ok(Ready {
        name: hook.name,
        location,
    })
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_LEN).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}
