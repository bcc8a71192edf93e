//! URIs out of a call's arguments, in one spelling per place as far as their text tells.
//!
//! Scheme and host are lower case, a default port is dropped, an empty path is `/`. A `file:` URI of
//! this machine is the path it spells. Nothing else is changed: a server may tell other spellings apart.

use lodestar_core::fingerprint::NormalPath;

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A file of this machine.
    File(NormalPath),
    /// Anything else.
    Resource(String),
}

impl Place {
    pub(super) fn of(uri: &str) -> Self {
        let Some((scheme, rest)) = split_scheme(uri) else {
            return Self::Resource(uri.to_owned());
        };
        let scheme = scheme.to_ascii_lowercase();
        let Some(rest) = rest.strip_prefix("//") else {
            return Self::Resource(format!("{scheme}:{rest}"));
        };
        let path_at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(path_at);
        let is_local = authority.is_empty() || authority.eq_ignore_ascii_case("localhost");
        if scheme == "file"
            && is_local
            && let Some(path) = decode(path).and_then(|path| NormalPath::new(&path).ok())
        {
            return Self::File(path);
        }
        let authority = normal_authority(&scheme, authority);
        let slash = if path.starts_with('/') { "" } else { "/" };
        Self::Resource(format!("{scheme}://{authority}{slash}{path}"))
    }
}

fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let mut bytes = scheme.bytes();
    let fine = bytes.next()?.is_ascii_alphabetic()
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
    fine.then_some((scheme, rest))
}

fn normal_authority(scheme: &str, authority: &str) -> String {
    // Userinfo ends at the last `@`, as every careful client reads it, and keeps its case.
    let (user, host) = match authority.rfind('@') {
        Some(at) => authority.split_at(at + 1),
        None => ("", authority),
    };
    let host = host.to_ascii_lowercase();
    let default_port = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => ":",
    };
    // All of them, so that a malformed host with several comes out in one form too.
    let host = host.trim_end_matches(default_port);
    format!("{user}{host}")
}

/// Percent-decodes the path of a `file:` URI; `None` if it is no plain path.
fn decode(path: &str) -> Option<String> {
    if path.contains(['?', '#']) {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resource(uri: &str) -> String {
        match Place::of(uri) {
            Place::Resource(uri) => uri,
            Place::File(path) => panic!("{path:?}"),
        }
    }

    #[test]
    fn spellings_of_one_address_are_equal() {
        for spelling in [
            "https://example.com/a",
            "HTTPS://Example.COM/a",
            "https://example.com:443/a",
        ] {
            assert_eq!(resource(spelling), "https://example.com/a");
        }
        assert_eq!(resource("http://example.com"), "http://example.com/");
        assert_eq!(resource("http://example.com?q"), "http://example.com/?q");
        assert_eq!(resource("URN:isbn:1"), "urn:isbn:1");
        assert_eq!(resource("not a uri"), "not a uri");
    }

    #[test]
    fn what_may_be_another_place_stays_another() {
        assert_ne!(
            resource("https://a.example/x"),
            resource("https://a.example/X")
        );
        assert_ne!(
            resource("https://a.example/"),
            resource("https://a.example:8443/")
        );
        assert_eq!(
            resource("https://Good.example@EVIL.example/"),
            "https://Good.example@evil.example/"
        );
    }

    #[test]
    fn a_file_uri_of_this_machine_is_its_path() {
        let file = |path| Place::File(NormalPath::new(path).unwrap());
        assert_eq!(Place::of("file:///a/./b%20c"), file("/a/b c"));
        assert_eq!(Place::of("file://localhost/a"), file("/a"));
        for other in [
            "file://host/a",
            "file:///a?b",
            "file:///%ff",
            "file:///%zz",
            "file:///a%00",
            "file:///../a",
        ] {
            assert!(matches!(Place::of(other), Place::Resource(_)), "{other}");
        }
    }

    proptest! {
        #[test]
        fn normal_forms_are_fixed(uri in "([a-zA-Z]{1,5}:(//)?)?.{0,40}") {
            if let Place::Resource(normal) = Place::of(&uri) {
                prop_assert_eq!(Place::of(&normal), Place::Resource(normal));
            }
        }
    }
}
