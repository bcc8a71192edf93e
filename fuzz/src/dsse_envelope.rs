//! Laws of signed statements.

use lodestar_core::canonical;
use lodestar_core::statement::{Envelope, MAX_ENVELOPE_SIGNATURES, Redaction};
use lodestar_core::time::Timestamp;

use crate::sample;

/// An envelope that is accepted keeps everything through its canonical JSON. It verifies with a key
/// only if that key's owner signed this very payload.
pub fn dsse_envelope(data: &[u8]) {
    let Ok(envelope) = Envelope::from_json(data) else {
        return;
    };
    let json = envelope.to_json();
    assert_eq!(canonical::canonicalize(data).as_ref(), Ok(&json));
    assert_eq!(Envelope::from_json(&json).as_ref(), Ok(&envelope));
    assert!((1..=MAX_ENVELOPE_SIGNATURES).contains(&envelope.signatures().len()));
    let verify = |key| envelope.verify::<Redaction>(&[key], Timestamp::MAX);
    assert!(verify(sample::stranger_key().public()).is_err());
    if let Ok(verified) = verify(sample::operator_key().public()) {
        assert_eq!(
            envelope.unverified_payload(),
            sample::redaction().unverified_payload(),
            "nobody signed this"
        );
        assert_eq!(verified.issued().key_id, verified.key().key_id());
    }
}
