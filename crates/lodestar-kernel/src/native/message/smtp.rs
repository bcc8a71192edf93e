//! SMTP over a connection of ours.
//!
//! lettre speaks the protocol; the connection, its addresses and its TLS are the connector's.
//! STARTTLS is done here, so that whatever somebody on the way wrote ahead of the encryption is
//! noticed: the answer to STARTTLS has to be the last thing in the clear.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::address::Envelope;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use lodestar_core::name::Excerpt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::email::TlsMode;
use crate::native::net::connector::{Connector, Stream};
use crate::native::net::credential::Scrubber;
use crate::native::net::endpoint::Endpoint;
use crate::native::net::wire::Wire;
use crate::tool::{ToolError, ToolErrorKind};

/// Longest answer of a server in the clear.
const MAX_REPLY_BYTES: usize = 16 << 10;

/// Longest part of a server's answer that is passed on.
const MAX_SAID_LEN: usize = 512;

/// What lettre waits for first, and STARTTLS has already seen.
const GREETING: &[u8] = b"220 ready\r\n";

/// Who logs in, and what finds the password in answers.
pub(super) struct Login {
    pub(super) credentials: Option<Credentials>,
    pub(super) scrubber: Scrubber,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

/// One delivery: who talks to whom about it.
struct Delivery<'a> {
    wire: &'a Wire,
    server: &'a Endpoint,
    login: &'a Login,
}

/// Hands a message to the server, for all recipients or for none, and says what it answered.
pub(super) async fn deliver(
    connector: &Connector,
    wire: &Wire,
    server: &Endpoint,
    tls: TlsMode,
    login: &Login,
    envelope: &Envelope,
    message: &[u8],
) -> Result<String, ToolError> {
    let delivery = Delivery {
        wire,
        server,
        login,
    };
    let stream = delivery.connect(connector, tls).await?;
    let hello = ClientId::Domain(
        envelope
            .from()
            .map_or_else(|| "localhost".to_owned(), |from| from.domain().to_owned()),
    );
    let mut connection = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &hello)
        .await
        .map_err(|e| delivery.failed("the greeting", &e))?;
    if let Some(credentials) = &login.credentials {
        connection
            .auth(&[Mechanism::Plain, Mechanism::Login], credentials)
            .await
            .map_err(|e| delivery.failed("the login", &e))?;
    }
    let mut options = Vec::new();
    if !message.is_ascii() {
        if !connection
            .server_info()
            .supports_feature(Extension::EightBitMime)
        {
            return Err(wire.failed(format!("`{}` takes only ASCII", server.authority())));
        }
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    connection
        .command(Mail::new(envelope.from().cloned(), options))
        .await
        .map_err(|e| delivery.failed("the sender", &e))?;
    for to in envelope.to() {
        connection
            .command(Rcpt::new(to.clone(), Vec::new()))
            .await
            .map_err(|e| delivery.failed(&format!("the recipient `{to}`"), &e))?;
    }
    wire.sending();
    connection
        .command(Data)
        .await
        .map_err(|e| delivery.failed("the message", &e))?;
    let response = connection
        .message(message)
        .await
        .map_err(|e| delivery.failed("the message", &e))?;
    // The message is delivered; how the connection ends changes nothing.
    let _ = connection.quit().await;
    let said: Vec<_> = response.message().collect();
    Ok(delivery.said(&format!("{} {}", response.code(), said.join(" "))))
}

impl Delivery<'_> {
    async fn connect(&self, connector: &Connector, tls: TlsMode) -> Result<SmtpStream, ToolError> {
        let (ahead, inner): (&[u8], Stream) = match tls {
            TlsMode::Implicit => (b"", connector.connect(self.server).await?),
            TlsMode::None => (
                b"",
                Stream::Plain(connector.connect_plain(self.server).await?),
            ),
            TlsMode::Starttls => {
                let mut stream = connector.connect_plain(self.server).await?;
                self.begin_tls(&mut stream).await?;
                (GREETING, connector.secure(self.server, stream).await?)
            }
        };
        Ok(SmtpStream { ahead, inner })
    }

    /// Talks in the clear up to where TLS begins.
    async fn begin_tls(&self, stream: &mut TcpStream) -> Result<(), ToolError> {
        self.reply(stream, "220").await?;
        let offered = self.ask(stream, b"EHLO localhost\r\n", "250").await?;
        let offers = |line: &str| {
            line.get(4..)
                .is_some_and(|word| word.eq_ignore_ascii_case("STARTTLS"))
        };
        if !offered.lines().any(offers) {
            return Err(self.refused("does not offer STARTTLS, so nothing is sent"));
        }
        self.ask(stream, b"STARTTLS\r\n", "220").await?;
        Ok(())
    }

    async fn ask(
        &self,
        stream: &mut TcpStream,
        command: &[u8],
        code: &str,
    ) -> Result<String, ToolError> {
        stream
            .write_all(command)
            .await
            .map_err(|e| self.failed("the connection", &e))?;
        self.reply(stream, code).await
    }

    /// Reads one answer, of one or more lines, and nothing after it.
    async fn reply(&self, stream: &mut TcpStream, code: &str) -> Result<String, ToolError> {
        let mut read = Vec::new();
        loop {
            let mut part = [0; 1024];
            let count = stream
                .read(&mut part)
                .await
                .map_err(|e| self.failed("the connection", &e))?;
            if count == 0 {
                return Err(self.refused("closed the connection before encryption began"));
            }
            read.extend_from_slice(&part[..count]);
            if read.len() > MAX_REPLY_BYTES {
                return Err(self.refused("answered at a length that is no answer"));
            }
            let text = String::from_utf8_lossy(&read);
            let Some(end) = end_of_reply(&text) else {
                continue;
            };
            if end < text.len() {
                return Err(self.refused("said more than was asked before encryption began"));
            }
            if !text.starts_with(code) {
                return Err(self.refused("refused to begin encryption"));
            }
            return Ok(text.into_owned());
        }
    }

    fn refused(&self, what: &str) -> ToolError {
        ToolError {
            kind: ToolErrorKind::Failed,
            ..self
                .wire
                .refused(format!("`{}` {what}", self.server.authority()))
        }
    }

    fn failed(&self, step: &str, error: &dyn std::error::Error) -> ToolError {
        let cause = error
            .source()
            .map_or_else(String::new, |e| format!(": {e}"));
        self.wire.failed(format!(
            "`{}` did not take {step}: {}",
            self.server.authority(),
            self.said(&format!("{error}{cause}"))
        ))
    }

    /// What a server said, without the password, inert and bounded.
    fn said(&self, text: &str) -> String {
        let (text, _) = self.login.scrubber.scrub_text(text);
        if text.len() > MAX_SAID_LEN {
            return Excerpt::of(&text).to_string();
        }
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    }
}

/// Where the first answer ends: after its first line that has no `-` behind the code.
fn end_of_reply(text: &str) -> Option<usize> {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if !line.ends_with('\n') {
            return None;
        }
        end += line.len();
        if line.as_bytes().get(3) != Some(&b'-') {
            return Some(end);
        }
    }
    None
}

/// A connection as lettre takes it, with what it is to read ahead of it.
#[derive(Debug)]
struct SmtpStream {
    ahead: &'static [u8],
    inner: Stream,
}

impl AsyncTokioStream for SmtpStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.inner.peer_addr()
    }
}

impl AsyncRead for SmtpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_empty() {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        let (now, later) = this.ahead.split_at(this.ahead.len().min(buf.remaining()));
        buf.put_slice(now);
        this.ahead = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SmtpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
