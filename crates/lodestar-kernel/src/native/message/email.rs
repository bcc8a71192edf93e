//! Mail: who it is from, who it may go to, and how it is written.

use std::path::PathBuf;

use lettre::address::{Address, Envelope};
use lettre::message::{Mailbox, Mailboxes, Message, header};
use lettre::transport::smtp::authentication::Credentials;
use lodestar_core::digest::encode_hex;
use lodestar_core::name::Excerpt;
use serde::Deserialize;
use serde_json::json;

use super::smtp::{Login, deliver};
use super::{MessageError, Words};
use crate::native::net::connector::Connector;
use crate::native::net::credential::{Scrubber, Source};
use crate::native::net::endpoint::Endpoint;
use crate::native::net::wire::Wire;
use crate::tool::{Effect, Output, ToolError};

/// How a connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// From the first byte, by default on port 465.
    #[default]
    Implicit,
    /// After a greeting in the clear, by default on port 587; a server without it gets nothing.
    Starttls,
    /// Not at all, by default on port 25; never with a credential.
    None,
}

impl TlsMode {
    fn port(self) -> u16 {
        match self {
            Self::Implicit => 465,
            Self::Starttls => 587,
            Self::None => 25,
        }
    }
}

/// The configuration of mail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmailConfig {
    /// The host of the mail server.
    pub server: String,
    /// Its port; that of the mode if none is named.
    pub port: Option<u16>,
    /// How the connection is encrypted.
    #[serde(default)]
    pub tls: TlsMode,
    /// Who all messages are from.
    pub sender: String,
    /// Who they may go to, exactly; only the case of the host does not count.
    pub recipients: Vec<String>,
    /// The name to log in with.
    pub username: Option<String>,
    /// The environment variable with the password.
    pub credential_env: Option<String>,
    /// The file with the password, mode 0600.
    pub credential_file: Option<PathBuf>,
}

/// Mail, ready to send.
#[derive(Debug)]
pub(super) struct Email {
    server: Endpoint,
    tls: TlsMode,
    sender: Address,
    recipients: Vec<Address>,
    login: Login,
}

impl Email {
    pub(super) fn new(config: EmailConfig) -> Result<Self, MessageError> {
        let port = config.port.unwrap_or(config.tls.port());
        let server =
            Endpoint::of_host(&config.server, port).ok_or_else(|| MessageError::Server {
                server: Excerpt::of(&config.server),
            })?;
        let mut recipients: Vec<Address> = Vec::new();
        for text in &config.recipients {
            let address = configured(text)?;
            if recipients.contains(&address) {
                return Err(MessageError::Twice {
                    name: Excerpt::of(text),
                });
            }
            recipients.push(address);
        }
        if recipients.is_empty() {
            return Err(MessageError::Nobody);
        }
        Ok(Self {
            server,
            tls: config.tls,
            sender: configured(&config.sender)?,
            recipients,
            login: login(&config)?,
        })
    }

    /// The recipients as they are written.
    pub(super) fn names(&self) -> Vec<String> {
        self.recipients.iter().map(ToString::to_string).collect()
    }

    pub(super) fn has_login(&self) -> bool {
        self.login.credentials.is_some()
    }

    /// The recipients of a call, each once, all of them known.
    pub(super) fn recipients(&self, texts: &[&str]) -> Result<Vec<Address>, ToolError> {
        let mut to: Vec<Address> = Vec::new();
        for text in texts {
            let address = address(text)
                .filter(|address| self.recipients.contains(address))
                .ok_or_else(|| {
                    ToolError::refused(format!(
                        "`{}` is not among the recipients of this tool; the operator can add it to `recipients`",
                        Excerpt::of(text)
                    ))
                })?;
            if !to.contains(&address) {
                to.push(address);
            }
        }
        Ok(to)
    }

    /// Writes the message and hands it to the server.
    pub(super) async fn send(
        &self,
        connector: &Connector,
        wire: &Wire,
        to: &[Address],
        words: Words<'_>,
    ) -> Result<Output, ToolError> {
        let id = self.message_id()?;
        let unwritten = |e: String| {
            ToolError::failed(Effect::None, format!("the message cannot be written: {e}"))
        };
        let everyone: Mailboxes = to
            .iter()
            .map(|address| Mailbox::new(None, address.clone()))
            .collect();
        let mut builder = Message::builder()
            .from(Mailbox::new(None, self.sender.clone()))
            .mailbox(header::To::from(everyone))
            .message_id(Some(id.clone()))
            .header(header::ContentType::TEXT_PLAIN);
        if let Some(subject) = words.subject {
            builder = builder.subject(subject);
        }
        let message = builder
            .body(words.body.to_owned())
            .map_err(|e| unwritten(e.to_string()))?;
        let envelope = Envelope::new(Some(self.sender.clone()), to.to_vec())
            .map_err(|e| unwritten(e.to_string()))?;
        let said = deliver(
            connector,
            wire,
            &self.server,
            self.tls,
            &self.login,
            &envelope,
            &message.formatted(),
        )
        .await?;
        let to: Vec<_> = to.iter().map(ToString::to_string).collect();
        Ok(Output::structured(json!({
            "accepted_by": self.server.authority(),
            "to": to,
            "message_id": id,
            "answer": said,
        })))
    }

    fn message_id(&self) -> Result<String, ToolError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| {
            ToolError::failed(
                Effect::None,
                "the system gave no random numbers, so the message has no id",
            )
        })?;
        let mut hex = Vec::new();
        encode_hex(&random, &mut hex);
        let hex = String::from_utf8(hex).expect("hex digits are ASCII");
        Ok(format!("<{hex}@{}>", self.sender.domain()))
    }
}

fn login(config: &EmailConfig) -> Result<Login, MessageError> {
    let source = Source::of(
        config.credential_env.as_deref(),
        config.credential_file.as_deref(),
    )?;
    match (&config.username, source) {
        (None, None) => Ok(Login {
            credentials: None,
            scrubber: Scrubber::none(),
        }),
        (Some(_), Some(_)) if config.tls == TlsMode::None => Err(MessageError::InTheClear),
        (Some(user), Some(source)) => {
            let secret = source.read()?;
            Ok(Login {
                credentials: Some(Credentials::new(user.clone(), secret.expose().to_owned())),
                scrubber: Scrubber::of(&secret),
            })
        }
        _ => Err(MessageError::HalfLogin),
    }
}

fn configured(text: &str) -> Result<Address, MessageError> {
    address(text).ok_or_else(|| MessageError::Address {
        address: Excerpt::of(text),
    })
}

/// A plain address; the case of its host, and of nothing else, does not count.
fn address(text: &str) -> Option<Address> {
    let plain = text.is_ascii() && !text.bytes().any(|b| b.is_ascii_control() || b == b' ');
    let read: Address = text.parse().ok().filter(|_| plain)?;
    Address::new(read.user(), read.domain().to_ascii_lowercase()).ok()
}
