//! Requests by hand: any bytes to any path, and what comes back.

use std::net::SocketAddr;
use std::time::Duration;

use lodestar_gateway::client::GatewayError;
use lodestar_gateway::code::Code;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request.
#[derive(Debug, Clone, Default)]
pub(super) struct Post<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// The whole header, whatever it is.
    pub(super) authorization: Option<String>,
    pub(super) content_type: Option<&'a str>,
    pub(super) body: Vec<u8>,
    /// What it says of its length, if not the truth.
    pub(super) said_length: Option<u64>,
}

impl<'a> Post<'a> {
    pub(super) fn new(method: &'a str, path: &'a str) -> Self {
        Self {
            method,
            path,
            ..Self::default()
        }
    }

    pub(super) fn token(self, token: &str) -> Self {
        Self {
            authorization: Some(format!("Bearer {token}")),
            ..self
        }
    }

    pub(super) fn json(self, body: impl Into<Vec<u8>>) -> Self {
        Self {
            content_type: Some("application/json"),
            body: body.into(),
            ..self
        }
    }

    pub(super) fn bytes(self, body: impl Into<Vec<u8>>) -> Self {
        Self {
            content_type: Some("application/octet-stream"),
            body: body.into(),
            ..self
        }
    }

    /// Sends it, and reads what comes back to the end: a refusal as such, anything else as JSON.
    pub(super) async fn send(&self, address: SocketAddr) -> Result<Value, GatewayError> {
        let exchange = self.exchange(address);
        let read = tokio::time::timeout(Duration::from_secs(60), exchange).await;
        let answer = read.expect("it answers in time").unwrap();
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("{self:?}: {text}"));
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        match status {
            200..300 => Ok(body),
            _ => {
                let code = body["error"]["code"].as_str();
                let code = code.unwrap_or_else(|| panic!("{self:?}: no code in {text}"));
                let code: Code = code.parse().unwrap();
                assert_eq!(code.status(), status, "{self:?}");
                Err(GatewayError::Refused {
                    code,
                    message: body["error"]["message"].to_string(),
                    field: None,
                    retry_after: None,
                })
            }
        }
    }

    async fn exchange(&self, address: SocketAddr) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address).await?;
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n",
            self.method, self.path
        )
        .into_bytes();
        if let Some(shown) = &self.authorization {
            head.extend_from_slice(format!("authorization: {shown}\r\n").as_bytes());
        }
        if let Some(kind) = self.content_type {
            head.extend_from_slice(format!("content-type: {kind}\r\n").as_bytes());
        }
        let length = self.said_length.unwrap_or(self.body.len() as u64);
        if length > 0 || self.content_type.is_some() {
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        stream.write_all(&head).await?;
        // Whoever is refused on account of the head may not be read any further.
        let _ = stream.write_all(&self.body).await;
        if self
            .said_length
            .is_some_and(|said| said != self.body.len() as u64)
        {
            let _ = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        match answer.is_empty() {
            true => read.map(|_| answer),
            false => Ok(answer),
        }
    }
}
