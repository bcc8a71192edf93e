//! From where requests may come: by the host they name, and by the page that sends them.
//!
//! A page in a browser can have its own name lead to this machine. What it then sends still names that
//! name as host, and that page as origin; neither is let in.

use std::net::{IpAddr, SocketAddr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use lodestar_core::name::Excerpt;
use lodestar_guard::config::Http;
use thiserror::Error;

/// What is let in.
#[derive(Debug)]
pub(super) struct Admission {
    address: SocketAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a request is not.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum NotAdmitted {
    #[error("name one host in `Host`")]
    NoHost,
    #[error("`{0}` is no name of this machine; list it in `allowed_hosts`, if it is meant")]
    Host(Excerpt),
    #[error("pages of `{0}` may not call here; list it in `allowed_origins`, if it is meant")]
    Origin(Excerpt),
}

impl Admission {
    /// For a face at this address.
    pub(super) fn new(address: SocketAddr, http: &Http) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self {
            address,
            hosts: lower(&http.allowed_hosts),
            origins: lower(&http.allowed_origins),
        }
    }

    /// Looks at where a request comes from.
    pub(super) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), NotAdmitted> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(NotAdmitted::NoHost);
        };
        let text = host.to_str().map_err(|_| NotAdmitted::NoHost)?;
        let host: Authority = text.parse().map_err(|_| NotAdmitted::NoHost)?;
        if !self.is_own(&host) {
            return Err(NotAdmitted::Host(Excerpt::of(text)));
        }
        if let Some(other) = uri.authority()
            && !self.is_own(other)
        {
            return Err(NotAdmitted::Host(Excerpt::of(other.as_str())));
        }
        for origin in headers.get_all(header::ORIGIN) {
            let text = String::from_utf8_lossy(origin.as_bytes()).to_ascii_lowercase();
            // Whatever is served under this very name is served here.
            let is_same = text.strip_prefix("http://") == Some(host.as_str());
            if !is_same && !self.origins.contains(&text) {
                return Err(NotAdmitted::Origin(Excerpt::of(&text)));
            }
        }
        Ok(())
    }

    /// An address cannot be made to lead elsewhere; a name can, unless somebody answers for it.
    fn is_own(&self, host: &Authority) -> bool {
        let name = host.host().to_ascii_lowercase();
        let whole = host.as_str().to_ascii_lowercase();
        if self.hosts.contains(&name) || self.hosts.contains(&whole) {
            return true;
        }
        if whole.contains('@') || host.port_u16().unwrap_or(80) != self.address.port() {
            return false;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let is_open = !self.address.ip().is_loopback();
        match bare.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || is_open,
            Err(_) => name == "localhost",
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn admission(address: &str) -> Admission {
        Admission {
            address: address.parse().unwrap(),
            hosts: vec!["proxy.example".to_owned()],
            origins: vec!["https://page.example".to_owned()],
        }
    }

    fn admit(address: &str, host: &str, origin: Option<&str>) -> Result<(), NotAdmitted> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        admission(address).admit(&Uri::from_static("/mcp"), &headers)
    }

    #[test]
    fn a_name_that_somebody_else_owns_is_not_let_in() {
        let here = "127.0.0.1:8080";
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "[::1]:8080",
            "proxy.example",
        ] {
            assert_eq!(admit(here, host, None), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1:81",
            "127.0.0.1",
            "localhost.evil.example:8080",
            "192.168.0.7:8080",
            "localhost@evil.example:8080",
        ] {
            let refused = admit(here, host, None).unwrap_err();
            assert!(matches!(refused, NotAdmitted::Host(_)), "{host}");
        }
        assert_eq!(admit("0.0.0.0:8080", "192.168.0.7:8080", None), Ok(()));
        assert!(admit("0.0.0.0:8080", "evil.example:8080", None).is_err());
    }

    #[test]
    fn a_page_is_let_in_by_name_alone() {
        let here = "127.0.0.1:8080";
        let with = |origin| admit(here, "localhost:8080", Some(origin));
        assert_eq!(with("http://localhost:8080"), Ok(()));
        assert_eq!(with("https://page.example"), Ok(()));
        for origin in [
            "null",
            "https://localhost:8080",
            "http://localhost:8081",
            "http://evil.example",
        ] {
            assert!(
                matches!(with(origin), Err(NotAdmitted::Origin(_))),
                "{origin}"
            );
        }
    }
}
