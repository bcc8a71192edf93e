//! SHA-256 digests, their hexadecimal text form, and the domain-separated hashes of RFC 6962.
//!
//! Hex is lower case only, so that a digest has exactly one spelling. The codec has no branches:
//! the event log decodes several digests per line and a slow one would dominate verification.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The text is not 64 bytes long.
    #[error("a digest has 64 hexadecimal digits, this text has {0} bytes")]
    Length(usize),
    /// A byte is not one of `0`–`9`, `a`–`f`.
    #[error("a digest is written in lower-case hexadecimal, byte {0} is something else")]
    NotHex(usize),
}

impl Digest {
    /// Wraps bytes that already are a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn from_hex(hex: &[u8]) -> Result<Self, DigestError> {
        match decode_hex(hex) {
            Some(bytes) => Ok(Self(bytes)),
            None if hex.len() != 64 => Err(DigestError::Length(hex.len())),
            None => Err(DigestError::NotHex(
                hex.iter()
                    .position(|&byte| nibble(byte) == NOT_HEX)
                    .unwrap_or_default(),
            )),
        }
    }

    /// The 64 lower-case hexadecimal digits.
    pub fn to_hex(&self) -> [u8; 64] {
        let mut hex = [0; 64];
        for (pair, &byte) in hex.as_chunks_mut().0.iter_mut().zip(&self.0) {
            *pair = HEX_PAIRS[usize::from(byte)];
        }
        hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(hex_str(&self.to_hex()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::from_hex(text.as_bytes())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(hex_str(&self.to_hex()))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Digest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lower-case hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

/// SHA-256 of `data`.
pub fn sha256(data: &[u8]) -> Digest {
    Digest(Sha256::digest(data).into())
}

/// SHA-256 over bytes that arrive piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Nothing hashed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// SHA-256 of the parts, one after another, without copying them together.
pub fn sha256_parts(parts: &[&[u8]]) -> Digest {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finish()
}

/// The RFC 6962 hash of a leaf: SHA-256(0x00 ‖ data).
pub fn leaf_hash(data: &[u8]) -> Digest {
    sha256_parts(&[&[0], data])
}

/// The RFC 6962 hash of an inner node: SHA-256(0x01 ‖ left ‖ right).
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    // One contiguous update is measurably faster than three.
    let mut node = [1; 65];
    node[1..33].copy_from_slice(&left.0);
    node[33..].copy_from_slice(&right.0);
    sha256(&node)
}

/// Appends the lower-case hexadecimal form of `bytes` to `out`.
pub fn encode_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    let (pairs, _) = out[start..].as_chunks_mut::<2>();
    for (pair, &byte) in pairs.iter_mut().zip(bytes) {
        *pair = HEX_PAIRS[usize::from(byte)];
    }
}

/// Reads exactly `2 * N` lower-case hexadecimal digits; anything else is `None`.
pub fn decode_hex<const N: usize>(hex: &[u8]) -> Option<[u8; N]> {
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    // Errors are collected and looked at once: without branches the compiler works on whole
    // vectors. Sixteen bytes at a time, because digests and salts are multiples of that.
    let mut seen = 0;
    let (wide, wide_rest) = hex.as_chunks::<32>();
    let (out, out_rest) = bytes.as_chunks_mut::<16>();
    for (out, digits) in out.iter_mut().zip(wide) {
        seen |= decode_sixteen(digits, out);
    }
    for (byte, &[high, low]) in out_rest.iter_mut().zip(wide_rest.as_chunks::<2>().0) {
        let (high, low) = (nibble(high), nibble(low));
        seen |= high | low;
        *byte = (high << 4) | (low & 0x0f);
    }
    (seen & 0xf0 == 0).then_some(bytes)
}

/// Gives a value with one of its upper four bits set if a digit is none.
fn decode_sixteen(digits: &[u8; 32], out: &mut [u8; 16]) -> u8 {
    let mut nibbles = [0u8; 32];
    for (nibble_out, &digit) in nibbles.iter_mut().zip(digits) {
        *nibble_out = nibble(digit);
    }
    for (byte, pair) in out.iter_mut().zip(nibbles.as_chunks::<2>().0) {
        let pair = u16::from_le_bytes(*pair);
        *byte = ((pair << 4) | (pair >> 8)) as u8;
    }
    nibbles.iter().fold(0, |seen, nibble| seen | nibble)
}

fn hex_str(hex: &[u8]) -> &str {
    str::from_utf8(hex).expect("hexadecimal digits are ASCII")
}

const NOT_HEX: u8 = 0xff;

fn nibble(digit: u8) -> u8 {
    let (number, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
    if number < 10 {
        number
    } else if letter < 6 {
        letter + 10
    } else {
        NOT_HEX
    }
}

static HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hashes_match_the_published_values() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc").to_string(), abc);
        assert_eq!(sha256_parts(&[b"a", b"", b"bc"]).to_string(), abc);
        assert_eq!(
            leaf_hash(b"").to_string(),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
        );
    }

    #[test]
    fn leaf_and_node_hashes_are_separated_by_their_prefix() {
        let (left, right) = (sha256(b"left"), sha256(b"right"));
        let joined = [left.as_bytes().as_slice(), right.as_bytes()].concat();
        assert_eq!(
            node_hash(&left, &right),
            sha256(&[&[1], joined.as_slice()].concat())
        );
        assert_ne!(node_hash(&left, &right), leaf_hash(&joined));
        assert_ne!(node_hash(&left, &right), node_hash(&right, &left));
    }

    #[test]
    fn every_byte_value_decodes_only_from_its_own_two_digits() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = [first, second];
                let expected = str::from_utf8(&text)
                    .ok()
                    .filter(|text| {
                        text.bytes()
                            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
                    })
                    .and_then(|text| u8::from_str_radix(text, 16).ok());
                assert_eq!(decode_hex::<1>(&text).map(|[byte]| byte), expected);
            }
        }
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let hex = sha256(b"").to_string();
        assert_eq!(Digest::from_hex(hex.as_bytes()), Ok(sha256(b"")));
        assert_eq!(
            hex.to_uppercase().parse::<Digest>(),
            Err(DigestError::NotHex(0))
        );
        assert_eq!(
            hex.replace('5', "g").parse::<Digest>(),
            Err(DigestError::NotHex(hex.find('5').unwrap()))
        );
        for wrong in [
            "",
            &hex[1..],
            &hex[2..],
            &format!("{hex}0"),
            &format!("{hex}00"),
        ] {
            assert_eq!(
                wrong.parse::<Digest>(),
                Err(DigestError::Length(wrong.len()))
            );
        }
    }

    #[test]
    fn serde_uses_the_text_form_and_refuses_upper_case() {
        let json = serde_json::to_string(&sha256(b"x")).unwrap();
        assert_eq!(json, format!("\"{}\"", sha256(b"x")));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), sha256(b"x"));
        assert!(serde_json::from_str::<Digest>(&json.to_uppercase()).is_err());
        assert!(serde_json::from_str::<Digest>("[1]").is_err());
    }

    proptest! {
        #[test]
        fn hex_round_trips(bytes: [u8; 32], prefix: Vec<u8>) {
            let digest = Digest::from_bytes(bytes);
            let mut out = prefix.clone();
            encode_hex(&bytes, &mut out);
            prop_assert_eq!(&out[..prefix.len()], &prefix);
            prop_assert_eq!(&out[prefix.len()..], &digest.to_hex());
            prop_assert_eq!(Digest::from_hex(&digest.to_hex()), Ok(digest));
            prop_assert_eq!(decode_hex::<32>(&digest.to_hex()), Some(bytes));
        }
    }
}
