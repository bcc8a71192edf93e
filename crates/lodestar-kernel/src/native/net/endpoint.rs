//! URLs, read strictly: one spelling for each place.
//!
//! The URL standard forgives much (tabs, backslashes, `0x7f.1`, wide digits, userinfo), and what is
//! forgiven is what a person on an approval card misreads. Here a URL says where it goes in the one
//! canonical way, or it is refused.

use std::fmt;
use std::net::IpAddr;

use lodestar_core::name::Excerpt;
use serde::Deserialize;
use thiserror::Error;
use url::{Host, Url};

/// Longest URL in bytes: what common servers accept.
pub const MAX_URL_LEN: usize = 4096;

/// How to talk to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// HTTP over TLS.
    Https,
    /// HTTP in the clear.
    Http,
    /// WebSocket over TLS.
    Wss,
    /// WebSocket in the clear.
    Ws,
}

impl Scheme {
    /// As it stands in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Wss => "wss",
            Self::Ws => "ws",
        }
    }

    /// Whether the connection is encrypted and the server proves who it is.
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Https | Self::Wss)
    }

    fn of(text: &str) -> Option<Self> {
        [Self::Https, Self::Http, Self::Wss, Self::Ws]
            .into_iter()
            .find(|scheme| scheme.as_str() == text)
    }
}

/// A place to connect to: scheme, host and port, all three.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    scheme: Scheme,
    host: Host<String>,
    port: u16,
}

/// A URL that says where it goes in the canonical way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    endpoint: Endpoint,
    url: Url,
}

/// Why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlRefused {
    /// Longer than [`MAX_URL_LEN`].
    #[error("the url is {length} bytes long; at most {MAX_URL_LEN} are taken")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// A character that does not stand in a URL as it is.
    #[error(
        "the url has `{found}` at byte {position}; write it percent-encoded, and hosts in ASCII"
    )]
    Character {
        /// The character, inert.
        found: Excerpt,
        /// Its byte offset.
        position: usize,
    },
    /// No URL.
    #[error("`{shown}` is no url; write `https://host/path`")]
    Malformed {
        /// The text, inert.
        shown: Excerpt,
    },
    /// Another scheme.
    #[error("the scheme of `{shown}` is not taken here; write `https://`")]
    Scheme {
        /// The text, inert.
        shown: Excerpt,
    },
    /// A name or password before the host.
    #[error("`{shown}` has a user before its host; leave out everything up to the `@`")]
    UserInfo {
        /// The text, inert.
        shown: Excerpt,
    },
    /// Another spelling of the host.
    #[error(
        "the host of `{shown}` is another spelling of `{canonical}`; write that, if it is meant"
    )]
    Spelling {
        /// The text, inert.
        shown: Excerpt,
        /// What it stands for.
        canonical: Excerpt,
    },
    /// A part that is never sent.
    #[error("`{shown}` has a fragment, which is never sent; leave out the `#` and what follows")]
    Fragment {
        /// The text, inert.
        shown: Excerpt,
    },
}

impl Endpoint {
    /// Reads `host` or `host:port` of a configuration, in its canonical spelling.
    pub fn parse(scheme: Scheme, text: &str) -> Result<Self, UrlRefused> {
        if text.contains(['/', '?', '#']) {
            return Err(UrlRefused::Malformed {
                shown: without_user(text),
            });
        }
        Ok(Location::parse(&format!("{}://{text}/", scheme.as_str()))?.endpoint)
    }

    /// An endpoint of a protocol that has no URLs: a host without a port, and its port.
    pub(crate) fn of_host(text: &str, port: u16) -> Option<Self> {
        let endpoint = Self::parse(Scheme::Https, text).ok()?;
        (host_of(text) == text).then_some(Self { port, ..endpoint })
    }

    /// How to talk to it.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Its host.
    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, if that is what it is called by.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Ipv4(v4) => Some(v4.into()),
            Host::Ipv6(v6) => Some(v6.into()),
            Host::Domain(_) => None,
        }
    }

    /// The value of a `Host` header: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        let default = match self.scheme {
            Scheme::Https | Scheme::Wss => 443,
            Scheme::Http | Scheme::Ws => 80,
        };
        if self.port == default {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}://{}", self.scheme.as_str(), self.authority()))
    }
}

impl Location {
    /// Reads a URL as somebody wrote it.
    pub fn parse(text: &str) -> Result<Self, UrlRefused> {
        let shown = || without_user(text);
        check_characters(text)?;
        let malformed = || UrlRefused::Malformed { shown: shown() };
        let (_, rest) = text.split_once("://").ok_or_else(malformed)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(UrlRefused::UserInfo { shown: shown() });
        }
        if text.contains('#') {
            return Err(UrlRefused::Fragment { shown: shown() });
        }
        let location = Self::of_url(Url::parse(text).map_err(|_| malformed())?)?;
        let canonical = location.endpoint.host.to_string();
        if !host_of(authority).eq_ignore_ascii_case(&canonical) || canonical.ends_with('.') {
            return Err(UrlRefused::Spelling {
                shown: shown(),
                canonical: Excerpt::of(canonical.trim_end_matches('.')),
            });
        }
        Ok(location)
    }

    /// Where a redirect from here leads. Its fragment, which is never sent, falls away.
    pub fn join(&self, text: &str) -> Result<Self, UrlRefused> {
        check_characters(text)?;
        let mut url = self.url.join(text).map_err(|_| UrlRefused::Malformed {
            shown: without_user(text),
        })?;
        url.set_fragment(None);
        Self::of_url(url)
    }

    fn of_url(url: Url) -> Result<Self, UrlRefused> {
        let shown = || without_user(url.as_str());
        let scheme =
            Scheme::of(url.scheme()).ok_or_else(|| UrlRefused::Scheme { shown: shown() })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefused::UserInfo { shown: shown() });
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(UrlRefused::Malformed { shown: shown() });
        };
        if let Host::Domain(name) = host
            && !name.bytes().all(is_of_name)
        {
            return Err(UrlRefused::Malformed { shown: shown() });
        }
        let endpoint = Endpoint {
            scheme,
            host: host.to_owned(),
            port,
        };
        Ok(Self { endpoint, url })
    }

    /// Where it connects to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its path, dots resolved.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Whether it has a query, be it an empty one.
    pub fn has_query(&self) -> bool {
        self.url.query().is_some()
    }

    /// The pairs of its query, decoded.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        self.url.query_pairs().into_owned().collect()
    }

    /// Adds pairs to its query.
    pub(crate) fn add_query<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
        self.url.query_pairs_mut().extend_pairs(pairs);
    }

    /// The place below this one that these names lead to; each is one part of its path.
    pub(crate) fn below(&self, names: &[&str]) -> Self {
        let mut below = self.clone();
        if let Ok(mut path) = below.url.path_segments_mut() {
            path.pop_if_empty().extend(names);
        }
        below
    }

    /// Path and query, as they stand in a request.
    pub fn target(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }
}

/// A URL for an error, without what may be a name and a password in it: where a host begins is not sure of a
/// URL that is refused, so everything before its last `@` stays out.
fn without_user(text: &str) -> Excerpt {
    let Some((before, after)) = text.rsplit_once('@') else {
        return Excerpt::of(text);
    };
    match before.split_once("://") {
        Some((scheme, _)) => Excerpt::of(&format!("{scheme}://…@{after}")),
        None => Excerpt::of(&format!("…@{after}")),
    }
}

/// Refuses what the URL standard drops, turns around or maps: controls, spaces, backslashes, and
/// everything outside ASCII.
fn check_characters(text: &str) -> Result<(), UrlRefused> {
    if text.len() > MAX_URL_LEN {
        return Err(UrlRefused::TooLong { length: text.len() });
    }
    match text
        .char_indices()
        .find(|&(_, c)| !c.is_ascii_graphic() || c == '\\')
    {
        Some((position, c)) => Err(UrlRefused::Character {
            found: Excerpt::of_char(c),
            position,
        }),
        None => Ok(()),
    }
}

/// The URL standard lets `*` and others stand in a name; no resolver knows them.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// An authority without its port.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}
