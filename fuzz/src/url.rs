//! Laws of addresses.

use lodestar_kernel::native::net::endpoint::{Endpoint, Location, Scheme};

const SCHEMES: [Scheme; 4] = [Scheme::Https, Scheme::Http, Scheme::Wss, Scheme::Ws];

/// An address that is accepted is pure ASCII, names no user, and leads to the host that it shows; it
/// reads the same again. Where a redirect leads can be read as well.
pub fn url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(location) = Location::parse(&text) {
        let endpoint = location.endpoint();
        let host = endpoint.host().to_string();
        assert!(text.is_ascii() && !text.contains(['@', '\\', '#']) || after_authority(&text));
        assert!(authority(&text).to_ascii_lowercase().starts_with(&host));
        let again = Location::parse(location.as_str()).expect("its own spelling is one");
        assert_eq!(again.as_str(), location.as_str());
        assert_eq!(again.endpoint(), endpoint);
        assert!(location.path().starts_with('/'));
        assert!(location.query_pairs().len() <= text.len());
    }
    let from = Location::parse("https://corp.example/a/b?c=d").expect("an address");
    if let Ok(there) = from.join(&text) {
        assert!(!there.as_str().contains('#'), "fragments are never sent");
        match Location::parse(there.as_str()) {
            Ok(again) => assert_eq!(again.endpoint(), there.endpoint()),
            // The one spelling that nobody may write down: it is another host than any that is allowed.
            Err(_) => assert!(there.endpoint().host().to_string().ends_with('.')),
        }
    }
    for scheme in SCHEMES {
        if let Ok(endpoint) = Endpoint::parse(scheme, &text) {
            assert_eq!(endpoint.scheme(), scheme);
            let again = Location::parse(&endpoint.to_string()).expect("an endpoint is an address");
            assert_eq!(again.endpoint(), &endpoint);
        }
    }
}

fn authority(text: &str) -> &str {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Whether an odd character stands where it only is part of a path or a query.
fn after_authority(text: &str) -> bool {
    text.is_ascii() && !text.contains(['\\', '#']) && !authority(text).contains('@')
}
