//! Host names and addresses, with or without a port.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Endings by which a bare name counts as a host, and so ignores case.
///
/// `Notes.org` could be a file, `main.rs` a host. A name whose ending is not listed is compared as
/// a file name, with case: that is the stricter of the two. Endings that are common for files are
/// left out. Inside URLs and e-mail addresses there is no such doubt, and every domain ignores case.
const HOST_ENDINGS: &[&str] = &[
    "arpa",
    "at",
    "au",
    "be",
    "biz",
    "br",
    "ca",
    "ch",
    "cloud",
    "cn",
    "co",
    "com",
    "cz",
    "de",
    "dev",
    "dk",
    "edu",
    "es",
    "eu",
    "example",
    "fi",
    "fr",
    "gov",
    "ie",
    "info",
    "int",
    "internal",
    "invalid",
    "io",
    "it",
    "jp",
    "kr",
    "lan",
    "local",
    "localhost",
    "mil",
    "net",
    "nl",
    "no",
    "nz",
    "online",
    "org",
    "pt",
    "ru",
    "se",
    "site",
    "test",
    "uk",
    "us",
    "xyz",
];

/// A host, or host and port, that stands alone.
pub(super) fn normal(text: &str) -> Option<String> {
    if !text.contains(['.', ':']) {
        return None;
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(address.to_string());
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    if port.is_some_and(|port| !is_port(port)) {
        return None;
    }
    let lower = host.to_ascii_lowercase();
    let ending = lower.rsplit_once('.').map(|(_, ending)| ending);
    let listed = ending.is_some_and(|ending| HOST_ENDINGS.contains(&ending));
    let is_host = host.parse::<Ipv4Addr>().is_ok() || (listed && is_domain(host));
    is_host.then(|| match port {
        Some(port) => format!("{lower}:{port}"),
        None => lower,
    })
}

/// The host of a URL: a domain in lower case, an IPv4 address, or an IPv6 address in brackets.
pub(super) fn in_url(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    (is_domain(host) || host.parse::<Ipv4Addr>().is_ok()).then(|| host.to_ascii_lowercase())
}

/// Digits, at most five.
pub(super) fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// Letters, digits and inner hyphens between dots.
///
/// A last label that starts with a digit is refused: some clients read `0x7f.1` and `2130706433`
/// as IPv4 addresses.
pub(super) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    text.len() <= 253
        && text.split('.').all(is_label)
        && text
            .rsplit('.')
            .next()
            .is_some_and(|last| last.starts_with(|c: char| c.is_ascii_alphabetic()))
}
