//! The proxy as a process: an agent on the standard streams, or clients over HTTP.

use std::io;
use std::net::SocketAddr;

use lodestar_guard::GuardError;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};

use crate::conversation::{Conversation, Settings};
use crate::face::HttpFace;
use crate::lines::{Line, Lines};
use crate::streams::{self, Outbox, write_lines};

/// Why a proxy ended otherwise than by the agent's leave.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// The standard streams cannot be used.
    #[error("the standard streams cannot be used: {0}")]
    Streams(#[from] io::Error),
    /// The session could not be opened, or could not go on.
    #[error("{0}")]
    Session(String),
    /// The session could not be closed properly.
    #[error(transparent)]
    Close(#[from] GuardError),
    /// Nobody could be told from anybody.
    #[error(
        "the configuration says no token that clients have to show; make one with `openssl rand -hex 32` into a file, `chmod 600` it, and write `[http]` with `token_file = \"…\"`"
    )]
    NoToken,
    /// The token cannot be used.
    #[error("`[http]`: {0}")]
    Token(String),
    /// Every client has a session of its own.
    #[error("`session_id` names one session, and over HTTP every client has its own; leave it out")]
    NamedSession,
    /// The address cannot be had.
    #[error("`{address}` cannot be listened on: {problem}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        problem: io::Error,
    },
}

/// Serves one agent over this process's standard streams until it leaves or the process is told to end.
pub async fn serve_stdio(settings: Settings) -> Result<(), ProxyError> {
    let limit = settings.config.limits.message_bytes;
    let (input, output) = (streams::standard_input()?, streams::standard_output()?);
    let (agent, written) = Outbox::new();
    let writing = tokio::spawn(write_lines(written, output));
    let conversation = Conversation::begin(settings, agent.clone());
    let mut lines = Lines::new(input, limit);
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let ended = loop {
        tokio::select! {
            line = lines.next() => match line {
                Ok(Some(Line::Whole(line))) => conversation.take(line, &agent).await,
                Ok(Some(Line::TooLong(gone))) => conversation.too_long(gone.bytes, &agent).await,
                Ok(None) => break Ok("the agent left"),
                Err(_) => break Ok("the agent's stream broke"),
            },
            _ = terminate.recv() => break Ok("told to end"),
            _ = interrupt.recv() => break Ok("interrupted"),
            why = conversation.broken() => break Err(why),
        }
    };
    let closed = conversation
        .close(ended.as_ref().unwrap_or(&"it could not go on"))
        .await;
    drop((agent, conversation));
    // What was answered goes out, if somebody still reads.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(1), writing).await;
    closed?;
    ended.map(drop).map_err(ProxyError::Session)
}

/// Serves clients over HTTP until the process is told to end. Where it listens goes to standard error, as
/// a line of JSON.
pub async fn serve_http(settings: Settings, address: SocketAddr) -> Result<(), ProxyError> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let face = HttpFace::bind(settings, address).await?;
    if face.is_open() {
        eprintln!(
            "lodestar: others than this machine can reach {address}, and what they send is not encrypted; put a proxy with TLS in front"
        );
    }
    eprintln!("{}", serde_json::json!({"listening": face.url()}));
    let until = async {
        tokio::select! {
            _ = terminate.recv() => "told to end",
            _ = interrupt.recv() => "interrupted",
        }
    };
    face.serve(until).await;
    Ok(())
}
