//! Ed25519 keys: signing, strict verification, and the ids by which statements name keys.
//!
//! Verification accepts one encoding of one signature per nonce and nothing malleable: public keys
//! are canonical points outside the small subgroup, S is below the group order, R is canonical and
//! not of small order. Randomness comes from the caller, as a seed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

use crate::digest::{self, decode_hex, encode_hex};

/// Why a key, a key id or a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes do not encode a point of the curve.
    #[error("the public key is not a point of the curve")]
    NotAPoint,
    /// The bytes encode a point, but not in its one canonical form.
    #[error("the public key is not canonically encoded")]
    NonCanonical,
    /// The point lies in the small subgroup: signatures by it prove nothing.
    #[error("the public key is a point of low order")]
    LowOrder,
    /// The signature is not one by this key over this message.
    #[error("the signature does not verify")]
    BadSignature,
    /// Not `ed25519:` and 64 lower-case hexadecimal digits.
    #[error("a key id is `ed25519:` and 64 lower-case hexadecimal digits")]
    MalformedId,
    /// Not 64 lower-case hexadecimal digits.
    #[error("a public key is written as 64 lower-case hexadecimal digits")]
    MalformedText,
}

/// A signing key; erased from memory on drop and never serialised or printed.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key that follows from 32 random bytes. The caller erases its own copy of them.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        Self(SigningKey::from_bytes(&seed))
    }

    /// The seed, to be stored; copies belong in a [`Zeroizing`].
    pub fn seed(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The key that verifies what this one signs.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message; the same message always gets the same signature.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public().key_id())
    }
}

/// A verifying key; in text, 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads the 32-byte encoding, refusing what could make signatures ambiguous or worthless.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        if !is_canonical(bytes) {
            return Err(KeyError::NonCanonical);
        }
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotAPoint)?;
        if key.is_weak() {
            return Err(KeyError::LowOrder);
        }
        Ok(Self(key))
    }

    /// The 32-byte encoding.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Checks that `signature` was made over `message` with this key's secret half.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), KeyError> {
        self.0
            .verify_strict(message, &Signature::from_bytes(signature))
            .map_err(|_| KeyError::BadSignature)
    }

    /// The name of this key in statements.
    pub fn key_id(&self) -> KeyId {
        let mut id = KeyId::PREFIX.as_bytes().to_vec();
        encode_hex(digest::sha256(self.as_bytes()).as_bytes(), &mut id);
        KeyId(String::from_utf8(id).expect("prefix and digits are ASCII"))
    }
}

/// Whether the encoding is the one of RFC 8032: y below p = 2^255 − 19, and no sign for x = 0.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let negative_x = bytes[31] & 0x80 != 0;
    let mut y = *bytes;
    y[31] &= 0x7f;
    let middle_is = |value| y[1..31].iter().all(|&byte| byte == value);
    let below_p = !(y[31] == 0x7f && middle_is(0xff) && y[0] >= 0xed);
    // x is 0 only for y = 1 and y = −1.
    let y_is_one = y[31] == 0 && middle_is(0) && y[0] == 1;
    let y_is_minus_one = y[31] == 0x7f && middle_is(0xff) && y[0] == 0xec;
    below_p && !(negative_x && (y_is_one || y_is_minus_one))
}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The digest type is the crate's 32 bytes in hexadecimal, whatever they mean.
        fmt::Display::fmt(&digest::Digest::from_bytes(*self.as_bytes()), f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = decode_hex(text.as_bytes()).ok_or(KeyError::MalformedText)?;
        Self::from_bytes(&bytes)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// The name of a public key: `ed25519:` and the SHA-256 of its 32 bytes in hexadecimal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct KeyId(String);

impl KeyId {
    const PREFIX: &str = "ed25519:";

    /// Reads a key id, in its one spelling.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        text.strip_prefix(Self::PREFIX)
            .and_then(|hex| decode_hex::<32>(hex.as_bytes()))
            .map(|_| Self(text.to_owned()))
            .ok_or(KeyError::MalformedId)
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
