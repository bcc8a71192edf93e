//! What the operator says: which hosts, over what, with which credential.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hyper::header::{HeaderName, HeaderValue};
use lodestar_core::name::{Excerpt, LabelError};
use serde::Deserialize;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::native::net::credential::{CredentialError, Scrubber, Source};
use crate::native::net::endpoint::{Endpoint, Scheme, UrlRefused};
use crate::native::net::{NetworkConfig, NetworkError};

/// Largest request body: a document, not an archive.
pub const DEFAULT_MAX_REQUEST_BYTES: usize = 1 << 20;

/// Largest response body: it all becomes content that somebody reads.
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 1 << 20;

/// The most that either cap can be raised to: bodies are held in memory.
pub const MAX_BODY_BYTES: usize = 64 << 20;

/// A method that `http.request` can use. `CONNECT` and `TRACE` are not among them: they make a
/// tunnel and an echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Read.
    Get,
    /// Read, without the body.
    Head,
    /// Ask what can be done.
    Options,
    /// Do something.
    Post,
    /// Replace.
    Put,
    /// Change.
    Patch,
    /// Delete.
    Delete,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Get,
        Self::Head,
        Self::Options,
        Self::Post,
        Self::Put,
        Self::Patch,
        Self::Delete,
    ];

    /// As it stands in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a server that keeps to the standard changes nothing.
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options)
    }
}

/// A host that `http.request` reaches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// `host` or `host:port`, exactly.
    pub host: String,
    /// `https`, unless it says `http`.
    #[serde(default = "https")]
    pub scheme: Scheme,
    /// The environment variable with the credential.
    pub credential_env: Option<String>,
    /// The file with the credential, mode 0600.
    pub credential_file: Option<PathBuf>,
    /// The header that carries it; `authorization` if none is named.
    pub credential_header: Option<String>,
    /// What stands before it in the header, such as `Bearer `.
    #[serde(default)]
    pub credential_prefix: String,
}

/// A place that `http.fetch` reads from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchEntry {
    /// `host` or `host:port`, exactly.
    pub host: String,
    /// `https`, unless it says `http`.
    #[serde(default = "https")]
    pub scheme: Scheme,
    /// The path, or the folder, below which everything can be read; `/` for all.
    pub path_prefix: String,
    /// The query parameters that can be used, each once, with the pattern of its value, in which
    /// `*` stands for any run of characters. Others are refused.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// The environment variable with the credential.
    pub credential_env: Option<String>,
    /// The file with the credential, mode 0600.
    pub credential_file: Option<PathBuf>,
    /// The header that carries it; `authorization` if none is named.
    pub credential_header: Option<String>,
    /// What stands before it in the header, such as `Bearer `.
    #[serde(default)]
    pub credential_prefix: String,
}

fn https() -> Scheme {
    Scheme::Https
}

/// The configuration of `http.request`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestConfig {
    /// The hosts that it reaches.
    pub hosts: Vec<HostEntry>,
    /// The methods that it uses; all, if none are named.
    #[serde(default = "all_methods")]
    pub methods: Vec<Method>,
    /// How it reaches them.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Largest request body in bytes.
    #[serde(default = "max_request_bytes")]
    pub max_request_bytes: usize,
    /// Largest response body in bytes.
    #[serde(default = "max_response_bytes")]
    pub max_response_bytes: usize,
}

/// The configuration of `http.fetch`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchConfig {
    /// The places that it reads from.
    pub fetch_allow: Vec<FetchEntry>,
    /// How it reaches them.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Largest response body in bytes.
    #[serde(default = "max_response_bytes")]
    pub max_response_bytes: usize,
}

fn all_methods() -> Vec<Method> {
    Method::ALL.to_vec()
}

fn max_request_bytes() -> usize {
    DEFAULT_MAX_REQUEST_BYTES
}

fn max_response_bytes() -> usize {
    DEFAULT_MAX_RESPONSE_BYTES
}

/// Why a configuration makes no tool.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The host of an entry is not one.
    #[error("host `{host}`: {source}")]
    Host {
        /// The entry, inert.
        host: Excerpt,
        /// Why it is refused.
        source: UrlRefused,
    },
    /// A scheme of another protocol.
    #[error("host `{host}`: the scheme is `https` or `http`")]
    Scheme {
        /// The entry, inert.
        host: Excerpt,
    },
    /// The same host twice.
    #[error("host `{host}` is there twice; keep one entry")]
    Twice {
        /// The entry, inert.
        host: Excerpt,
    },
    /// The credential is not to be had.
    #[error("host `{host}`: {source}")]
    Credential {
        /// The entry, inert.
        host: Excerpt,
        /// Why.
        source: CredentialError,
    },
    /// A credential over a connection that everyone on the way reads.
    #[error(
        "host `{host}` is `http` and has a credential, which everyone on the way would read; use `https`"
    )]
    InTheClear {
        /// The entry, inert.
        host: Excerpt,
    },
    /// The credential cannot stand in that header.
    #[error(
        "host `{host}`: a credential cannot be sent in the header `{header}`; use one of your own such as `authorization`"
    )]
    CredentialHeader {
        /// The entry, inert.
        host: Excerpt,
        /// The header, inert.
        header: Excerpt,
    },
    /// A path prefix that pins nothing.
    #[error(
        "host `{host}`: the path prefix `{prefix}` must start with `/` and be written plainly, without `..`, `%`, `?` or `#`"
    )]
    PathPrefix {
        /// The entry, inert.
        host: Excerpt,
        /// The prefix, inert.
        prefix: Excerpt,
    },
    /// A cap that allows nothing or everything.
    #[error("`{name}` is {given}; write 1 to {MAX_BODY_BYTES} bytes")]
    Cap {
        /// Which one.
        name: &'static str,
        /// What was given.
        given: usize,
    },
    /// No method.
    #[error("`methods` is empty; name at least one, or leave it out for all")]
    NoMethods,
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The definition cannot be made.
    #[error(transparent)]
    Label(#[from] LabelError),
}

/// A header that carries a credential to one endpoint, and what finds it in answers.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
    pub(super) scrubber: Scrubber,
}

/// The credential fields of an entry.
pub(super) struct CredentialFields<'a> {
    pub(super) env: Option<&'a str>,
    pub(super) file: Option<&'a std::path::Path>,
    pub(super) header: Option<&'a str>,
    pub(super) prefix: &'a str,
}

/// Reads the endpoint of an entry.
pub(super) fn endpoint(host: &str, scheme: Scheme) -> Result<Endpoint, HttpError> {
    if !matches!(scheme, Scheme::Https | Scheme::Http) {
        return Err(HttpError::Scheme {
            host: Excerpt::of(host),
        });
    }
    Endpoint::parse(scheme, host).map_err(|source| HttpError::Host {
        host: Excerpt::of(host),
        source,
    })
}

/// Reads the credential of an entry, if it has one.
pub(super) fn credential(
    endpoint: &Endpoint,
    fields: &CredentialFields<'_>,
) -> Result<Option<Credential>, HttpError> {
    let host = || Excerpt::of(&endpoint.to_string());
    let refused = |source| HttpError::Credential {
        host: host(),
        source,
    };
    let Some(source) = Source::of(fields.env, fields.file).map_err(refused)? else {
        return Ok(None);
    };
    if !endpoint.scheme().is_secure() {
        return Err(HttpError::InTheClear { host: host() });
    }
    let header = fields.header.unwrap_or("authorization");
    let unfit = || HttpError::CredentialHeader {
        host: host(),
        header: Excerpt::of(header),
    };
    let name = HeaderName::from_bytes(header.as_bytes()).map_err(|_| unfit())?;
    if super::headers::frames(&name) {
        return Err(unfit());
    }
    let secret = source.read().map_err(refused)?;
    let text = Zeroizing::new(format!("{}{}", fields.prefix, secret.expose()));
    let mut value = HeaderValue::from_str(&text).map_err(|_| unfit())?;
    value.set_sensitive(true);
    Ok(Some(Credential {
        name,
        value,
        scrubber: Scrubber::of(&secret),
    }))
}

/// Checks a cap on bodies.
pub(super) fn cap(name: &'static str, given: usize) -> Result<usize, HttpError> {
    match given {
        1..=MAX_BODY_BYTES => Ok(given),
        _ => Err(HttpError::Cap { name, given }),
    }
}
