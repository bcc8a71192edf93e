//! Canonical JSON (RFC 8785): one byte sequence per value, so that it can be hashed and signed.
//!
//! Writing is a serde serializer that emits the canonical bytes directly. Reading is stricter than
//! JSON asks: duplicate keys, lone surrogates and numbers that a double cannot hold exactly are
//! refused, since two readers could disagree on them. What one side refuses the other does too:
//! whatever [`to_vec`] writes, [`parse`] reads.
//!
//! Numbers: an integer beyond ±2^53 is refused, and so is any other number whose canonical spelling
//! would be such an integer (doubles from 2^53 up to 10^21). From 10^21 on the spelling has an
//! exponent and says what it is: an approximation.

mod normal;
mod number;
mod parse;
mod serializer;
mod string;
mod write;

#[cfg(test)]
mod tests;

use serde::Serialize;

/// How deep arrays and objects may nest. Far beyond any real payload, and safe for the stack.
pub const MAX_DEPTH: usize = 128;

/// The largest integer up to which every integer is a double of its own.
pub const MAX_INTEGER: u64 = 1 << 53;

/// Why a value has no canonical form, or a text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// NaN and the infinities do not exist in JSON.
    #[error("a number is not finite")]
    NotFinite,
    /// An integer beyond ±2^53; write it as a string.
    #[error("an integer lies beyond 2^53, where doubles skip integers")]
    UnsafeInteger,
    /// An object has the same key twice.
    #[error("the key `{0}` appears twice in one object")]
    DuplicateKey(String),
    /// A map's key is neither a string nor a number.
    #[error("the key of a map is neither a string nor a number")]
    KeyNotString,
    /// More than [`MAX_DEPTH`] levels.
    #[error("arrays and objects nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The value's own `Serialize` gave up.
    #[error("the value cannot be serialised: {0}")]
    Value(String),
    /// The text is refused at this byte.
    #[error("invalid JSON at byte {offset}: {problem}")]
    Parse {
        /// Where in the text, counted in bytes from 0.
        offset: usize,
        /// What is wrong there.
        problem: ParseProblem,
    },
}

/// What is wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProblem {
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// The text ends inside a value.
    #[error("the text ends too early")]
    UnexpectedEnd,
    /// Something else was to come here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A backslash with something unknown after it.
    #[error("unknown escape in a string")]
    UnknownEscape,
    /// Half of a surrogate pair: no Unicode character.
    #[error("lone surrogate in a string")]
    LoneSurrogate,
    /// A control character that has to be escaped.
    #[error("bare control character in a string")]
    ControlCharacter,
    /// Not a number by JSON's grammar.
    #[error("malformed number")]
    MalformedNumber,
    /// Larger than any double.
    #[error("the number is too large for a double")]
    NumberTooLarge,
    /// An integer beyond ±2^53.
    #[error("the integer lies beyond 2^53, where doubles skip integers")]
    UnsafeInteger,
    /// An object has the same key twice, however it is spelt.
    #[error("the key `{0}` appears twice in one object")]
    DuplicateKey(String),
    /// More than [`MAX_DEPTH`] levels.
    #[error("arrays and objects nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Something follows the value.
    #[error("something follows the value")]
    TrailingData,
}

/// What an ordinary record takes: most are written without growing.
const ORDINARY: usize = 2048;

/// The canonical JSON of a value.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::with_capacity(ORDINARY);
    to_writer(&mut out, value)?;
    Ok(out)
}

/// Appends the canonical JSON of a value to `out`; on failure `out` is as before.
pub fn to_writer<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    value: &T,
) -> Result<(), CanonicalError> {
    let before = out.len();
    let written = value.serialize(&mut write::Writer::new(out));
    if written.is_err() {
        out.truncate(before);
    }
    written
}

/// Whether reading an object back from its canonical form would give the same object, its keys in the
/// same order. Much cheaper than doing it, and no where in doubt.
pub fn is_normal(object: &serde_json::Map<String, serde_json::Value>) -> bool {
    normal::object(object, 0)
}

/// Reads a JSON text that has one meaning only.
///
/// Numbers come out in one form: whole ones as integers, however they were spelt (`1.0`, `10e-1`),
/// and `-0` as `0`. Texts with the same canonical form therefore give equal values.
pub fn parse(bytes: &[u8]) -> Result<serde_json::Value, CanonicalError> {
    parse::parse(bytes)
}

/// The canonical form of a JSON text.
pub fn canonicalize(bytes: &[u8]) -> Result<Vec<u8>, CanonicalError> {
    to_vec(&parse(bytes)?)
}

/// Whether a text is acceptable JSON already in canonical form.
pub fn is_canonical(bytes: &[u8]) -> bool {
    canonicalize(bytes).is_ok_and(|canonical| canonical == bytes)
}
