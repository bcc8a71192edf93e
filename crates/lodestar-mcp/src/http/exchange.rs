//! Requests to one server elsewhere, over connections that are kept: to its own host, through no proxy,
//! along no redirect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT_ENCODING, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use lodestar_core::name::Excerpt;
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_kernel::native::net::connector::Connector;
use lodestar_kernel::native::net::endpoint::{Location, Scheme};
use lodestar_kernel::native::net::resolve::SystemResolver;
use url::Host;

/// Most header lines of an answer, and the most bytes they take together.
const MAX_HEADERS: usize = 100;
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Connections that are kept for the next request.
const KEPT: usize = 8;

/// Headers that the protocol sets itself.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// A server elsewhere, and how it is reached.
#[derive(Debug)]
pub(super) struct Exchange {
    location: Location,
    connector: Connector,
    headers: Vec<(HeaderName, HeaderValue)>,
    kept: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// What becomes of a request that got no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// Nothing of it went out.
    NotSent(String),
    /// It may have been read.
    Gone(String),
}

/// An answer that has begun, and the connection that it comes over.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) response: Response<Incoming>,
    sender: SendRequest<Full<Bytes>>,
}

impl Exchange {
    /// The server at this address. Values of headers are taken from the environment now.
    pub(super) fn new(url: &str, headers_env: &BTreeMap<String, String>) -> Result<Self, String> {
        let location = Location::parse(url).map_err(|problem| format!("`url`: {problem}"))?;
        let endpoint = location.endpoint();
        let is_here = match endpoint.host() {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        if endpoint.scheme() == Scheme::Http && !headers_env.is_empty() && !is_here {
            return Err(format!(
                "`{endpoint}` is not encrypted, and everyone on the way would read its headers; write `https://`"
            ));
        }
        let headers = headers_env
            .iter()
            .map(|(name, variable)| header(name, variable))
            .collect::<Result<_, String>>()?;
        let connector = Connector::to_named(&NetworkConfig::default(), Arc::new(SystemResolver))
            .map_err(|problem| problem.to_string())?;
        Ok(Self {
            location,
            connector,
            headers,
            kept: Mutex::default(),
        })
    }

    /// Sends a request over a connection that is kept, or over a new one.
    pub(super) async fn send(
        &self,
        method: Method,
        own: &[(HeaderName, HeaderValue)],
        body: Vec<u8>,
    ) -> Result<Answering, Unanswered> {
        let mut request = self.request(method, own, body)?;
        // A connection that was kept may be closed by now; what did not go out goes over another.
        while let Some(mut sender) = self.take() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(Answering { response, sender }),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Unanswered::Gone(self.broken(failed.error()))),
                },
            }
        }
        let mut sender = self.connect().await?;
        match sender.try_send_request(request).await {
            Ok(response) => Ok(Answering { response, sender }),
            Err(mut failed) => {
                let why = self.broken(failed.error());
                match failed.take_message() {
                    Some(_) => Err(Unanswered::NotSent(why)),
                    None => Err(Unanswered::Gone(why)),
                }
            }
        }
    }

    /// Keeps the connection of an answer that was read to its end.
    pub(super) fn keep(&self, sender: SendRequest<Full<Bytes>>) {
        let mut kept = self.kept();
        if kept.len() < KEPT && !sender.is_closed() {
            kept.push(sender);
        }
    }

    /// Where it is, without anything secret.
    pub(super) fn place(&self) -> String {
        self.location.endpoint().to_string()
    }

    fn request(
        &self,
        method: Method,
        own: &[(HeaderName, HeaderValue)],
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, Unanswered> {
        let mut request = Request::builder()
            .method(method)
            .uri(self.location.target())
            .header(HOST, self.location.endpoint().authority())
            .header(USER_AGENT, "lodestar")
            .header(ACCEPT_ENCODING, "identity")
            .body(Full::new(Bytes::from(body)))
            .map_err(|problem| {
                Unanswered::NotSent(format!("the request cannot be made: {problem}"))
            })?;
        for (name, value) in self.headers.iter().chain(own) {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    fn take(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut kept = self.kept();
        kept.retain(|sender| !sender.is_closed());
        let at = kept.iter().position(SendRequest::is_ready)?;
        Some(kept.swap_remove(at))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<SendRequest<Full<Bytes>>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Unanswered> {
        let endpoint = self.location.endpoint();
        let stream = self.connector.connect(endpoint).await;
        let stream = stream.map_err(|problem| Unanswered::NotSent(problem.message))?;
        let (sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|problem| Unanswered::NotSent(self.broken(&problem)))?;
        // It ends with the connection, which ends with the last handle on it.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// hyper's own words, with their cause; they never hold what was sent or received.
    pub(super) fn broken(&self, error: &hyper::Error) -> String {
        let cause = std::error::Error::source(error).map_or_else(String::new, |e| format!(": {e}"));
        format!(
            "the exchange with `{}` failed: {error}{cause}",
            self.place()
        )
    }
}

impl Answering {
    /// The answer, and what is to be kept once it is read.
    pub(super) fn into_parts(self) -> (Response<Incoming>, SendRequest<Full<Bytes>>) {
        (self.response, self.sender)
    }
}

fn header(name: &str, variable: &str) -> Result<(HeaderName, HeaderValue), String> {
    let shown = Excerpt::of(name);
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`headers_env`: `{shown}` is no name of a header"))?;
    if RESERVED.contains(&parsed.as_str()) {
        return Err(format!(
            "`headers_env`: `{shown}` is the protocol's own; leave it out"
        ));
    }
    let variable_shown = Excerpt::of(variable);
    let value = std::env::var(variable).map_err(|_| {
        format!(
            "`headers_env` names `{variable_shown}`, which is not set where the proxy was started"
        )
    })?;
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        format!(
            "the value of `{variable_shown}` cannot stand in a header; look for line ends in it"
        )
    })?;
    value.set_sensitive(true);
    Ok((parsed, value))
}
