//! URLs with an authority: `scheme://host…`.
//!
//! Only spellings that every client reads alike become one. Userinfo, another port, another scheme,
//! a query or a fragment keep URLs apart, and so does anything the grammar of RFC 3986 does not
//! have, such as a backslash.

use std::ops::Range;

use super::host;

/// Ports that a scheme implies.
const DEFAULT_PORTS: &[(&str, &str)] = &[
    ("http", "80"),
    ("https", "443"),
    ("ws", "80"),
    ("wss", "443"),
    ("ftp", "21"),
    ("ssh", "22"),
];

/// Schemes for which an empty path is the path `/`, and a slash at the end does not count.
const WEB: &[&str] = &["http", "https", "ws", "wss", "ftp"];

struct Parts<'a> {
    scheme: String,
    userinfo: Option<&'a str>,
    host: &'a str,
    host_start: usize,
    port: Option<&'a str>,
    path: &'a str,
    /// Query and fragment, with their signs.
    rest: &'a str,
}

/// Scheme and host in lower case, no default port, no slash at the end, no needless escapes.
pub(super) fn normal(text: &str) -> Option<String> {
    let parts = split(text)?;
    let host = match parts.host {
        "" if parts.scheme == "file" => String::new(),
        host => host::in_url(host)?,
    };
    let mut normal = format!("{}://", parts.scheme);
    if let Some(userinfo) = parts.userinfo {
        normal.push_str(userinfo);
        normal.push('@');
    }
    normal.push_str(&host);
    if let Some(port) = parts.port
        && !DEFAULT_PORTS.contains(&(parts.scheme.as_str(), port))
    {
        normal.push(':');
        normal.push_str(port);
    }
    normal.push_str(&path(&parts)?);
    normal.push_str(&unescape_unreserved(parts.rest)?);
    Some(normal)
}

/// Where the host stands in a URL.
pub(in super::super) fn host_range(url: &str) -> Option<Range<usize>> {
    let parts = split(url)?;
    Some(parts.host_start..parts.host_start + parts.host.len())
}

fn split(text: &str) -> Option<Parts<'_>> {
    let (scheme, after) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
    if !is_scheme || !after.bytes().all(is_url_byte) {
        return None;
    }
    let authority_len = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, tail) = after.split_at(authority_len);
    let (path, rest) = tail.split_at(tail.find(['?', '#']).unwrap_or(tail.len()));
    let (userinfo, host_port) = match authority.rsplit_once('@') {
        Some((userinfo, host_port)) => (Some(userinfo), host_port),
        None => (None, authority),
    };
    let (host, port) = match host_port.rsplit_once(':') {
        Some((host, port)) if host::is_port(port) => (host, Some(port)),
        _ => (host_port, None),
    };
    let before_host = userinfo.map_or(0, |userinfo| userinfo.len() + "@".len());
    Some(Parts {
        scheme: scheme.to_ascii_lowercase(),
        userinfo,
        host,
        host_start: scheme.len() + "://".len() + before_host,
        port,
        path,
        rest,
    })
}

fn is_url_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

fn path(parts: &Parts<'_>) -> Option<String> {
    let decoded = unescape_unreserved(parts.path)?;
    // Clients disagree on where `..` leads. Such a path keeps its spelling, and no path without one
    // has that spelling.
    if decoded
        .split('/')
        .any(|segment| matches!(segment, "." | ".."))
    {
        return Some(parts.path.to_owned());
    }
    // To a store of objects, `a/` and `a` are two keys; only the web takes them for one.
    let of_the_web = WEB.contains(&parts.scheme.as_str());
    Some(match decoded.strip_suffix('/') {
        None if decoded.is_empty() && of_the_web => "/".to_owned(),
        Some(shorter) if of_the_web && parts.rest.is_empty() && is_trimmed(shorter) => {
            shorter.to_owned()
        }
        _ => decoded,
    })
}

/// Neither the root, whose slash is all it has, nor a path with a doubled slash at its end.
fn is_trimmed(shorter: &str) -> bool {
    !shorter.is_empty() && !shorter.ends_with('/')
}

/// Writes escapes of unreserved characters as the character, all others in upper case; `None` where
/// a `%` begins no escape.
fn unescape_unreserved(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3)?;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| hex)?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&digits.to_ascii_uppercase());
        }
        rest = &rest[at + 3..];
    }
    out.push_str(rest);
    Some(out)
}
