//! Laws of canonical JSON.

use lodestar_core::canonical::{self, MAX_DEPTH};

/// A text that is accepted has one canonical form, which is its own canonical form, means the same,
/// and is JSON to another reader as well.
pub fn canonical_json(data: &[u8]) {
    let Ok(canonical) = canonical::canonicalize(data) else {
        assert!(
            canonical::parse(data).is_err(),
            "what is read can be written"
        );
        assert!(!canonical::is_canonical(data));
        return;
    };
    assert_eq!(canonical::canonicalize(&canonical).as_ref(), Ok(&canonical));
    assert!(canonical::is_canonical(&canonical));
    assert_eq!(canonical::is_canonical(data), data == canonical);
    assert_eq!(canonical::parse(&canonical), canonical::parse(data));
    assert!(canonical.len() <= 6 * data.len(), "no text explodes");
    // The other reader stops one level earlier.
    let deep = data.iter().filter(|b| matches!(b, b'[' | b'{')).count() >= MAX_DEPTH;
    assert!(deep || serde_json::from_slice::<serde_json::Value>(data).is_ok());
}
