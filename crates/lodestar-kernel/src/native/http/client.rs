//! The client of a service that the operator named: for what Lodestar itself asks, never an agent.
//!
//! It speaks to one URL with the credentials for it, over TLS unless that URL is this machine and the
//! operator said so. It follows no redirect, uses no proxy, and keeps every answer to its caps.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use lodestar_core::name::Excerpt;
use thiserror::Error;
use zeroize::Zeroizing;

use super::Method;
use super::exchange::{Cap, Incoming, Outgoing, exchange};
use crate::native::net::address::{AddressClass, refused};
use crate::native::net::connector::Connector;
use crate::native::net::credential::{
    CredentialError, MIN_SECRET_LEN, SCRUBBED, Scrubber, Secret, Source,
};
use crate::native::net::endpoint::{Location, Scheme, UrlRefused};
use crate::native::net::resolve::Resolver;
use crate::native::net::wire::Wire;
use crate::native::net::{NetworkConfig, NetworkError};

/// Read beyond the cap of an answer that is cut, so that no beginning of a credential stays at its
/// end: the longest form of the longest one.
const OVERLAP: usize = 3 * crate::native::net::credential::MAX_SECRET_LEN;

/// Headers that say how a request is to be read: whoever could set them could send another one.
const OWN_HEADERS: [HeaderName; 10] = [
    ACCEPT,
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    TRANSFER_ENCODING,
    UPGRADE,
    USER_AGENT,
];

/// Whether a service may be spoken to in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTheClear {
    /// No.
    Never,
    /// If its host is a loopback address.
    OnLoopback,
    /// Wherever it is: the operator said so.
    Anywhere,
}

/// The URL of a service: what it is asked lies below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl(Location);

/// Why a URL is that of no service.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServiceUrlError {
    /// It says no place, or says it oddly.
    #[error(transparent)]
    Url(#[from] UrlRefused),
    /// A scheme of another protocol.
    #[error("the scheme of `{shown}` is not taken here; write `https://`")]
    Scheme {
        /// The URL, inert.
        shown: Excerpt,
    },
    /// Whatever goes there, everyone on the way reads, the bearer too.
    #[error(
        "`{shown}` is not encrypted, and everyone on the way would read what is sent; write `https://`"
    )]
    InTheClear {
        /// The URL, inert.
        shown: Excerpt,
    },
    /// It is this machine, and nobody said that this is meant.
    #[error("`{shown}` is not encrypted; write `https://`, or say `allow_loopback_http = true`")]
    NotSaid {
        /// The URL, inert.
        shown: Excerpt,
    },
    /// A query.
    #[error("`{shown}` has a query; leave out the `?` and what follows")]
    Query {
        /// The URL, inert.
        shown: Excerpt,
    },
}

impl ServiceUrl {
    /// Reads a URL as the operator wrote it.
    pub fn parse(text: &str, in_the_clear: InTheClear) -> Result<Self, ServiceUrlError> {
        let location = Location::parse(text)?;
        let shown = Excerpt::of(text);
        if location.has_query() {
            return Err(ServiceUrlError::Query { shown });
        }
        let endpoint = location.endpoint();
        let class = endpoint.address().and_then(refused);
        match (endpoint.scheme(), class, in_the_clear) {
            (Scheme::Https, _, _) => Ok(Self(location)),
            (Scheme::Http, _, InTheClear::Anywhere)
            | (Scheme::Http, Some(AddressClass::Loopback), InTheClear::OnLoopback) => {
                Ok(Self(location))
            }
            (Scheme::Http, Some(AddressClass::Loopback), InTheClear::Never) => {
                Err(ServiceUrlError::NotSaid { shown })
            }
            (Scheme::Http, _, _) => Err(ServiceUrlError::InTheClear { shown }),
            (Scheme::Wss | Scheme::Ws, _, _) => Err(ServiceUrlError::Scheme { shown }),
        }
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_str())
    }
}

/// What a client is made of.
#[derive(Debug)]
pub struct ClientConfig {
    /// The service.
    pub url: ServiceUrl,
    /// The environment variable with the bearer.
    pub token_env: String,
    /// Root certificates in PEM, trusted beside the public ones.
    pub ca_file: Option<PathBuf>,
    /// Time for one connection in milliseconds, TLS included.
    pub connect_timeout_ms: u64,
}

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The bearer is not to be had.
    #[error("the token: {0}")]
    Token(#[from] CredentialError),
    /// The bearer cannot stand in a header.
    #[error("the token from `{name}` has a blank in it; a bearer token has none")]
    Blank {
        /// The environment variable, inert.
        name: Excerpt,
    },
    /// Not a header.
    #[error(
        "`{name}` is no header that can be sent; write a name of letters, digits and `-`, and a value of visible characters"
    )]
    Header {
        /// Its name, inert.
        name: Excerpt,
    },
    /// A header that the exchange itself depends on.
    #[error("the header `{name}` is Lodestar's own to set; leave it out")]
    OwnHeader {
        /// Its name, inert.
        name: Excerpt,
    },
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// What is asked of the service.
#[derive(Debug)]
pub struct Asked<'a> {
    /// How.
    pub method: Method,
    /// Where, below its URL: one name for each part of the path.
    pub path: &'a [&'a str],
    /// The query.
    pub query: &'a [(&'a str, &'a str)],
    /// What form the answer is to have.
    pub accept: Option<&'static str>,
    /// What is sent, and its type.
    pub content: Option<(&'static str, Vec<u8>)>,
    /// Most of the answer's body that is taken; the rest is not read.
    pub most: usize,
    /// How long it may take in all.
    pub within: Duration,
}

/// What the service said, the bearer removed. Nobody has looked at it yet.
#[derive(Debug)]
pub struct Said {
    incoming: Incoming,
}

impl Said {
    /// The status.
    pub fn status(&self) -> u16 {
        self.incoming.status
    }

    /// The first value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.incoming.header(name)
    }

    /// What is left without the body, and the body, at most as much of it as was to be taken.
    pub fn into_parts(mut self) -> (Self, Vec<u8>) {
        let body = std::mem::take(&mut self.incoming.body);
        (self, body)
    }
}

/// Why the service was not asked, or did not answer: in words, without the bearer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoAnswer(String);

/// A client of one service.
pub struct Client {
    url: ServiceUrl,
    connector: Connector,
    /// What goes with every request, and is shown to nobody.
    credentials: Vec<(HeaderName, HeaderValue)>,
    scrubber: Scrubber,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.url.0.as_str())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// The client for this configuration; the bearer is read now.
    pub fn new(config: ClientConfig, resolver: Arc<dyn Resolver>) -> Result<Self, ClientError> {
        let network = NetworkConfig {
            ca_file: config.ca_file,
            connect_timeout_ms: config.connect_timeout_ms,
            ..NetworkConfig::default()
        };
        let connector = Connector::to_named(&network, resolver)?;
        let secret = Source::Env(config.token_env.clone()).read()?;
        let text = Zeroizing::new(format!("Bearer {}", secret.expose()));
        let blank = || ClientError::Blank {
            name: Excerpt::of(&config.token_env),
        };
        let fits = !secret.expose().contains(' ');
        let mut bearer = HeaderValue::from_str(&text)
            .ok()
            .filter(|_| fits)
            .ok_or_else(blank)?;
        bearer.set_sensitive(true);
        Ok(Self {
            url: config.url,
            connector,
            credentials: vec![(AUTHORIZATION, bearer)],
            scrubber: Scrubber::of(&secret),
        })
    }

    /// A client that sends these headers with every request, and removes their values from every answer
    /// unless they are too short to be anybody's secret.
    pub fn with_headers(
        url: ServiceUrl,
        headers: &[(String, Secret)],
        network: &NetworkConfig,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, ClientError> {
        let mut credentials = Vec::new();
        for (name, value) in headers {
            let shown = || Excerpt::of(name);
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
            let parsed = parsed.zip(HeaderValue::from_str(value.expose()).ok());
            let (parsed, mut value) =
                parsed.ok_or_else(|| ClientError::Header { name: shown() })?;
            if OWN_HEADERS.contains(&parsed) {
                return Err(ClientError::OwnHeader { name: shown() });
            }
            value.set_sensitive(true);
            credentials.push((parsed, value));
        }
        let long = |secret: &&Secret| secret.expose().len() >= MIN_SECRET_LEN;
        let secrets = headers.iter().map(|(_, secret)| secret).filter(long);
        Ok(Self {
            url,
            connector: Connector::to_named(network, resolver)?,
            credentials,
            scrubber: Scrubber::of_all(secrets),
        })
    }

    /// Where it asks.
    pub fn url(&self) -> &ServiceUrl {
        &self.url
    }

    /// Asks once. Dropping the future closes the connection.
    pub async fn ask(&self, asked: Asked<'_>) -> Result<Said, NoAnswer> {
        let mut location = self.url.0.below(asked.path);
        if !asked.query.is_empty() {
            location.add_query(asked.query.iter().copied());
        }
        let mut headers = self.credentials.clone();
        headers.extend(
            asked
                .accept
                .map(|it| (ACCEPT, HeaderValue::from_static(it))),
        );
        let content = asked.content.unwrap_or_default();
        if !content.0.is_empty() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static(content.0)));
        }
        let outgoing = Outgoing {
            method: asked.method.as_str(),
            target: location.target(),
            headers,
            body: Bytes::from(content.1),
        };
        let wire = Wire::default();
        let (endpoint, cap) = (location.endpoint(), Cap::Cut(asked.most + OVERLAP));
        let work = exchange(
            &self.connector,
            &wire,
            endpoint,
            outgoing,
            &self.scrubber,
            cap,
        );
        match tokio::time::timeout(asked.within, work).await {
            Ok(Ok(incoming)) => Ok(self.said(incoming, asked.most)),
            Ok(Err(problem)) => Err(self.no_answer(&problem.message)),
            Err(_) => Err(self.no_answer(&format!(
                "`{endpoint}` had not answered in full after {} ms",
                asked.within.as_millis()
            ))),
        }
    }

    fn said(&self, mut incoming: Incoming, most: usize) -> Said {
        if incoming.cut && incoming.scrubbed > 0 {
            // What was removed has moved the rest: where it was cut, part of a credential may stand.
            incoming.body = SCRUBBED.into();
        }
        incoming.body.truncate(most);
        Said { incoming }
    }

    fn no_answer(&self, problem: &str) -> NoAnswer {
        NoAnswer(self.scrubber.scrub_text(problem).0)
    }
}
