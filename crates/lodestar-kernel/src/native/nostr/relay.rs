//! One event, one relay, one answer.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use lodestar_core::name::Excerpt;
use serde_json::{Value, json};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::event::Event;
use crate::native::net::connector::Connector;
use crate::native::net::endpoint::Location;
use crate::native::net::wire::Wire;
use crate::tool::{Effect, ToolError, ToolErrorKind};

/// Largest message of a relay: an `OK` is far below that.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Most messages that are passed over while waiting for the `OK`.
const MAX_OTHER_MESSAGES: usize = 64;

/// Longest reason of a relay that is passed on.
const MAX_REASON_LEN: usize = 512;

/// What became of an event at one relay.
#[derive(Debug)]
pub(super) enum Answer {
    /// It has it, and says this.
    Accepted(String),
    /// It refuses it, and says this.
    Rejected(String),
    /// It did not answer in time; it may have it.
    Silent,
    /// It went wrong after it was sent; it may have it.
    Broken(String),
    /// It was never sent.
    Unreached(ToolError),
}

impl Answer {
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(_))
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::Rejected(_) => "rejected",
            Self::Silent => "silent",
            Self::Broken(_) => "broken",
            Self::Unreached(_) => "unreached",
        }
    }

    pub(super) fn reason(&self) -> String {
        match self {
            Self::Accepted(text) | Self::Rejected(text) | Self::Broken(text) => text.clone(),
            Self::Silent => "it did not answer in time".into(),
            Self::Unreached(error) => error.message.clone(),
        }
    }

    /// What sort of failure kept it from being sent.
    pub(super) fn kind(&self) -> Option<ToolErrorKind> {
        match self {
            Self::Unreached(error) => Some(error.kind),
            _ => None,
        }
    }
}

/// Sends an event to a relay and waits for its `OK`, for so long in all.
pub(super) async fn publish(
    connector: &Connector,
    wire: &Wire,
    relay: &Location,
    event: &Event,
    time: Duration,
) -> Answer {
    // Whether *this* relay may have it; `wire` knows it of any.
    let here = Wire::default();
    let work = async {
        match send(connector, wire, &here, relay, event).await {
            Ok(answer) => answer,
            Err(error) => failed(&here, error),
        }
    };
    match tokio::time::timeout(time, work).await {
        Ok(answer) => answer,
        Err(_) if here.effect() == Effect::Unknown => Answer::Silent,
        Err(_) => Answer::Unreached(
            here.failed(format!("no connection to `{}` in time", relay.endpoint())),
        ),
    }
}

fn failed(here: &Wire, error: ToolError) -> Answer {
    match here.effect() {
        Effect::None => Answer::Unreached(error),
        Effect::Unknown => Answer::Broken(error.message),
    }
}

async fn send(
    connector: &Connector,
    wire: &Wire,
    here: &Wire,
    relay: &Location,
    event: &Event,
) -> Result<Answer, ToolError> {
    let endpoint = relay.endpoint();
    let broken = |e: tokio_tungstenite::tungstenite::Error| {
        here.failed(format!(
            "the exchange with `{endpoint}` failed: {}",
            Excerpt::of(&e.to_string())
        ))
    };
    let stream = connector.connect(endpoint).await?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let (mut socket, _) = client_async_with_config(relay.as_str(), stream, Some(config))
        .await
        .map_err(broken)?;
    wire.sending();
    here.sending();
    let text = json!(["EVENT", event]).to_string();
    socket.send(Message::text(text)).await.map_err(broken)?;
    for _ in 0..MAX_OTHER_MESSAGES {
        let Some(message) = socket.next().await else {
            return Err(here.failed(format!("`{endpoint}` closed the connection unasked")));
        };
        if let Message::Text(text) = message.map_err(broken)?
            && let Some(answer) = answer_to(&event.id, &text)
        {
            return Ok(answer);
        }
    }
    Err(here.failed(format!(
        "`{endpoint}` sent {MAX_OTHER_MESSAGES} messages and no answer"
    )))
}

/// `["OK", id, true or false, reason]`, if it is that and about this event.
fn answer_to(id: &str, text: &str) -> Option<Answer> {
    let value: Value = serde_json::from_str(text).ok()?;
    let parts = value.as_array()?;
    if parts.first()?.as_str()? != "OK" || parts.get(1)?.as_str()? != id {
        return None;
    }
    let accepted = parts.get(2)?.as_bool()?;
    let reason = parts.get(3).and_then(Value::as_str).unwrap_or_default();
    let reason = if reason.len() > MAX_REASON_LEN {
        format!("a reason of {} bytes, which is not passed on", reason.len())
    } else {
        reason.to_owned()
    };
    Some(if accepted {
        Answer::Accepted(reason)
    } else {
        Answer::Rejected(reason)
    })
}
