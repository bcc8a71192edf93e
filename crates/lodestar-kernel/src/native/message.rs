//! `message.send`: a message to people that the operator named.
//!
//! Sender, recipients, server and headers are the operator's; a call brings a subject, a text and a
//! choice among the recipients. Mail goes by SMTP, other messages to web hooks.

mod email;
mod smtp;
mod webhook;

pub use email::{EmailConfig, TlsMode};
pub use webhook::{Hook, WebhookConfig};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, LabelError, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

use self::email::Email;
use self::webhook::Webhooks;
use super::net::connector::Connector;
use super::net::credential::CredentialError;
use super::net::resolve::Resolver;
use super::net::wire::Wire;
use super::net::{NetworkConfig, NetworkError, arguments};
use crate::tool::{Call, Calling, Definition, NATIVE_SERVER, Output, Tool, ToolError};

/// Longest text in bytes: a letter, not an attachment.
pub const DEFAULT_MAX_BODY_BYTES: usize = 256 << 10;

/// The most that it can be raised to.
pub const MAX_BODY_BYTES: usize = 8 << 20;

/// Longest subject in bytes: what mail programs show of it.
pub const MAX_SUBJECT_LEN: usize = 256;

/// Most recipients of one message.
pub const MAX_RECIPIENTS: usize = 32;

/// The configuration of `message.send`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageConfig {
    /// By what way messages go.
    pub channel: ChannelConfig,
    /// How that is reached.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Longest text in bytes.
    #[serde(default = "max_body_bytes")]
    pub max_body_bytes: usize,
}

fn max_body_bytes() -> usize {
    DEFAULT_MAX_BODY_BYTES
}

/// A way for messages.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ChannelConfig {
    /// Mail, by SMTP.
    Email(EmailConfig),
    /// Web hooks, by HTTPS.
    Webhook(WebhookConfig),
}

/// Why a configuration makes no tool.
#[derive(Debug, Error)]
pub enum MessageError {
    /// An address of mail is none.
    #[error("`{address}` is no plain mail address; write `name@host` in ASCII")]
    Address {
        /// The address, inert.
        address: Excerpt,
    },
    /// The server is no host.
    #[error("`{server}` is no host; write one such as `mail.example.com`, without a port")]
    Server {
        /// The server, inert.
        server: Excerpt,
    },
    /// Nobody to write to.
    #[error("there is nobody to write to; name at least one recipient")]
    Nobody,
    /// The same recipient twice.
    #[error("`{name}` is there twice; keep one")]
    Twice {
        /// Who, inert.
        name: Excerpt,
    },
    /// A user without a password, or the other way round.
    #[error("a login is a `username` and a credential; name both or neither")]
    HalfLogin,
    /// A password over a connection that everyone on the way reads.
    #[error(
        "`tls` is `none` and there is a credential, which everyone on the way would read; use `implicit` or `starttls`"
    )]
    InTheClear,
    /// A hook without a URL, or with several.
    #[error("hook `{name}`: name one of `url`, `url_env`, `url_file`")]
    HookSource {
        /// The hook, inert.
        name: Excerpt,
    },
    /// A hook whose URL cannot be used. The URL itself may be a secret, so it is not shown.
    #[error("hook `{name}`: its url is not a plain `https://host/path`")]
    HookUrl {
        /// The hook, inert.
        name: Excerpt,
    },
    /// A name of a hook that is no word.
    #[error("hook `{name}`: a name is 1 to 64 of `a-z A-Z 0-9 . _ -`")]
    HookName {
        /// The name, inert.
        name: Excerpt,
    },
    /// A cap that allows nothing or everything.
    #[error("`max_body_bytes` is {given}; write 1 to {MAX_BODY_BYTES}")]
    Cap {
        /// What was given.
        given: usize,
    },
    /// A credential is not to be had.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The definition cannot be made.
    #[error(transparent)]
    Label(#[from] LabelError),
}

/// What is to be said.
#[derive(Debug, Clone, Copy)]
struct Words<'a> {
    subject: Option<&'a str>,
    body: &'a str,
}

#[derive(Debug)]
enum Channel {
    Email(Box<Email>),
    Webhook(Webhooks),
}

/// The tool `message.send`.
#[derive(Debug)]
pub struct MessageSend {
    definition: Definition,
    connector: Connector,
    channel: Channel,
    max_body_bytes: usize,
}

impl MessageSend {
    /// The tool for this configuration; credentials are read now.
    pub fn new(
        config: MessageConfig,
        scope: Scope,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, MessageError> {
        if !(1..=MAX_BODY_BYTES).contains(&config.max_body_bytes) {
            return Err(MessageError::Cap {
                given: config.max_body_bytes,
            });
        }
        let channel = match config.channel {
            ChannelConfig::Email(email) => Channel::Email(Box::new(Email::new(email)?)),
            ChannelConfig::Webhook(webhook) => Channel::Webhook(Webhooks::new(webhook)?),
        };
        Ok(Self {
            definition: definition(&channel, scope)?,
            connector: Connector::new(&config.network, resolver)?,
            channel,
            max_body_bytes: config.max_body_bytes,
        })
    }

    async fn run(&self, call: &Call<'_>) -> Result<Output, ToolError> {
        let arguments = call.arguments();
        arguments::only(arguments, &["to", "subject", "body"])?;
        let to = arguments::texts(arguments, "to")?
            .ok_or_else(|| ToolError::invalid("`to` is missing"))?;
        if !(1..=MAX_RECIPIENTS).contains(&to.len()) {
            return Err(ToolError::invalid(format!(
                "`to` has {} recipients; name 1 to {MAX_RECIPIENTS}",
                to.len()
            )));
        }
        let subject = arguments::text(arguments, "subject")?;
        check_subject(subject.unwrap_or_default())?;
        let body = call.text("body")?;
        self.check_body(body)?;
        let words = Words { subject, body };
        let wire = Wire::default();
        let time = self.connector.timeout();
        match &self.channel {
            Channel::Email(email) => {
                let to = email.recipients(&to)?;
                let work = email.send(&self.connector, &wire, &to, words);
                wire.watch(call, time, work).await
            }
            Channel::Webhook(hooks) => {
                let to = hooks.recipients(&to)?;
                let work = hooks.send(&self.connector, &wire, &to, words);
                wire.watch(call, time, work).await
            }
        }
    }

    fn check_body(&self, body: &str) -> Result<(), ToolError> {
        if body.len() > self.max_body_bytes {
            return Err(ToolError::refused(format!(
                "`body` is {} bytes long; at most {} are sent",
                body.len(),
                self.max_body_bytes
            )));
        }
        match body
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
        {
            Some(c) => Err(ToolError::invalid(format!(
                "`body` has the control character `{}`; leave it out",
                Excerpt::of_char(c)
            ))),
            None => Ok(()),
        }
    }
}

fn check_subject(subject: &str) -> Result<(), ToolError> {
    if subject.len() > MAX_SUBJECT_LEN {
        return Err(ToolError::refused(format!(
            "`subject` is {} bytes long; at most {MAX_SUBJECT_LEN} are sent",
            subject.len()
        )));
    }
    // Besides controls, the two characters that Unicode calls line ends too.
    match subject
        .chars()
        .find(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
    {
        Some(c) => Err(ToolError::refused(format!(
            "`subject` has `{}`; it is one line of text",
            Excerpt::of_char(c)
        ))),
        None => Ok(()),
    }
}

impl Tool for MessageSend {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move { self.run(&call).await })
    }
}

fn definition(channel: &Channel, scope: Scope) -> Result<Definition, MessageError> {
    let (known, with_credential, by) = match channel {
        Channel::Email(email) => (email.names(), email.has_login(), "mail"),
        Channel::Webhook(hooks) => (hooks.names(), true, "web hook"),
    };
    let mut permissions = BTreeSet::from([Permission::Network, Permission::Publish]);
    if with_credential {
        permissions.insert(Permission::Credentials);
    }
    Ok(Definition {
        name: ToolName::new("message.send")?,
        server: ServerIdentity::new(NATIVE_SERVER)?,
        description: format!(
            "Sends a message by {by} to recipients that the operator named. It cannot be taken back."
        ),
        input_schema: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["to", "body"],
            "properties": {
                "to": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_RECIPIENTS,
                    "items": { "type": "string" },
                    "description": format!("Among: {}", known.join(", ")),
                },
                "subject": { "type": "string", "maxLength": MAX_SUBJECT_LEN },
                "body": { "type": "string" },
            },
        }),
        roles: BTreeMap::from([
            ("to".to_owned(), ArgumentRole::Destination),
            ("subject".to_owned(), ArgumentRole::Payload),
            ("body".to_owned(), ArgumentRole::Payload),
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
            permissions,
        },
    })
}

#[cfg(test)]
mod tests;
