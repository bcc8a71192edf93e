//! Events and the key that signs them: NIP-01 over BIP-340.

use std::fmt;

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use k256::schnorr::SigningKey;
use lodestar_core::digest::{decode_hex, encode_hex, sha256};
use serde::Serialize;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::native::net::credential::Secret;

/// A signed event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// SHA-256 of the canonical form, in hex.
    pub id: String,
    /// The public key, in hex.
    pub pubkey: String,
    /// When it was made, in seconds since 1970.
    pub created_at: u64,
    /// What kind of event it is.
    pub kind: u16,
    /// What it refers to.
    pub tags: Vec<Vec<String>>,
    /// What it says.
    pub content: String,
    /// The signature of the id, in hex.
    pub sig: String,
}

/// Why there is no key, or no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Neither form.
    #[error("the key is neither 64 hex digits nor `nsec1…`; a public key (`npub1…`) cannot sign")]
    Malformed,
    /// Zero, or not below the order of the curve.
    #[error("the key is not a number that can be a key; make a new one")]
    OutOfRange,
    /// The system gave no random numbers.
    #[error("the system gave no random numbers, so nothing was signed")]
    NoRandomness,
    /// The event could not be written or signed.
    #[error("the event could not be signed")]
    Unsigned,
}

/// A private key; never shown.
pub struct Key(SigningKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.public())
    }
}

impl Key {
    /// Reads a key in hex or as `nsec1…`.
    pub fn parse(secret: &Secret) -> Result<Self, KeyError> {
        let text = secret.expose();
        let bytes: Zeroizing<[u8; 32]> = match of_nsec(text) {
            Some(bytes) => bytes,
            None => Zeroizing::new(
                decode_hex(text.to_ascii_lowercase().as_bytes()).ok_or(KeyError::Malformed)?,
            ),
        };
        SigningKey::from_slice(bytes.as_slice())
            .map(Self)
            .map_err(|_| KeyError::OutOfRange)
    }

    /// The public key, in hex.
    pub fn public(&self) -> String {
        hex(&self.0.verifying_key().to_bytes())
    }

    /// BIP-340, with the auxiliary randomness that it asks for.
    pub(super) fn signature(
        &self,
        message: &[u8],
        random: &[u8; 32],
    ) -> Result<[u8; 64], KeyError> {
        self.0
            .sign_raw(message, random)
            .map(|signature| signature.to_bytes())
            .map_err(|_| KeyError::Unsigned)
    }

    /// Makes and signs an event.
    pub fn sign(
        &self,
        created_at: u64,
        kind: u16,
        tags: Vec<Vec<String>>,
        content: String,
    ) -> Result<Event, KeyError> {
        let pubkey = self.public();
        // serde_json escapes exactly what NIP-01 says, once other control characters are refused.
        let canonical = serde_json::to_vec(&(0, &pubkey, created_at, kind, &tags, &content))
            .map_err(|_| KeyError::Unsigned)?;
        let id = sha256(&canonical);
        let mut random = Zeroizing::new([0; 32]);
        getrandom::fill(random.as_mut_slice()).map_err(|_| KeyError::NoRandomness)?;
        let sig = self.signature(id.as_bytes(), &random)?;
        Ok(Event {
            id: id.to_string(),
            pubkey,
            created_at,
            kind,
            tags,
            content,
            sig: hex(&sig),
        })
    }
}

fn of_nsec(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
    if !checked.hrp().as_str().eq_ignore_ascii_case("nsec") {
        return None;
    }
    let mut key = Zeroizing::new([0; 32]);
    let mut bytes = checked.byte_iter();
    for place in key.iter_mut() {
        *place = bytes.next()?;
    }
    bytes.next().is_none().then_some(key)
}

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(2 * bytes.len());
    encode_hex(bytes, &mut out);
    String::from_utf8(out).expect("hex digits are ASCII")
}
