//! The one list of reasons to refuse a statement.

use super::{MAX_ENVELOPE_LEN, MAX_ENVELOPE_SIGNATURES, StatementKind};
use crate::canonical::CanonicalError;
use crate::key::KeyId;
use crate::time::Timestamp;

/// Why a statement cannot be made, read or believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// The envelope is longer than [`MAX_ENVELOPE_LEN`].
    #[error("an envelope of {0} bytes is longer than {MAX_ENVELOPE_LEN}")]
    TooLong(usize),
    /// The envelope is not strict JSON.
    #[error("the envelope is not acceptable: {0}")]
    Json(CanonicalError),
    /// The envelope is JSON of another shape, or its base64 is not strict.
    #[error("the envelope is malformed: {0}")]
    Malformed(String),
    /// Nobody signed.
    #[error("the envelope has no signature")]
    NoSignatures,
    /// More than [`MAX_ENVELOPE_SIGNATURES`].
    #[error("the envelope has more than {MAX_ENVELOPE_SIGNATURES} signatures")]
    TooManySignatures,
    /// Two signatures by the same key.
    #[error("the envelope is signed twice by `{0}`")]
    DuplicateSignature(KeyId),
    /// Not 32 lower-case hexadecimal digits.
    #[error("a nonce is written as 32 lower-case hexadecimal digits")]
    MalformedNonce,
    /// The statement is of another kind than was asked for.
    #[error("a statement of kind `{expected}` was expected, not payload type `{found}`")]
    WrongKind {
        /// The kind asked for.
        expected: StatementKind,
        /// The payload type of the envelope.
        found: String,
    },
    /// No signature is by a trusted key.
    #[error("the statement is not signed by a trusted key")]
    Untrusted,
    /// A signature that names a trusted key is wrong.
    #[error("the signature by `{0}` does not verify")]
    BadSignature(KeyId),
    /// A key that had to sign did not.
    #[error("the statement is not signed by `{0}`, which has to sign it too")]
    MissingSignature(KeyId),
    /// Two keys that have to differ are one.
    #[error("`{0}` signs in two roles; each needs a key of its own")]
    SameKey(KeyId),
    /// The payload is not the one that was read before signing.
    #[error("the payload is not the one that was read")]
    OtherPayload,
    /// The payload is not canonical JSON.
    #[error("the payload is not canonical JSON")]
    NotCanonical,
    /// The payload is not a statement of this kind.
    #[error("the payload is not a statement of kind `{kind}`: {problem}")]
    WrongPayload {
        /// The kind asked for.
        kind: StatementKind,
        /// What does not fit.
        problem: String,
    },
    /// The payload names another key than the one that signed.
    #[error("the payload names the key `{0}`, which is not the one that signed")]
    KeyMismatch(KeyId),
    /// The statement is from the future.
    #[error("the statement was issued at {0}, which is yet to come")]
    NotYetIssued(Timestamp),
    /// The statement is from too long ago.
    #[error("the statement was issued at {0}, which is too long ago")]
    TooOld(Timestamp),
    /// The statement is no longer valid.
    #[error("the statement expired at {0}")]
    Expired(Timestamp),
    /// The payload has no canonical form.
    #[error("the payload cannot be written: {0}")]
    Unwritable(CanonicalError),
}
