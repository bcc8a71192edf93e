//! Keys of notes: their names, hashes and text forms.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

use super::{Note, NoteError};
use crate::digest::{decode_hex, encode_hex, sha256_parts};
use crate::key::{PublicKey, SecretKey};

const SECRET_START: &str = "PRIVATE+KEY+";

/// How a key of a note signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteAlgorithm {
    /// Ed25519 over the text.
    Ed25519,
    /// Ed25519 over the text and the time at which a witness saw it.
    Cosignature,
}

impl NoteAlgorithm {
    /// The identifier that C2SP assigns.
    pub const fn id(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::Cosignature => 0x04,
        }
    }
}

/// A key that verifies signatures of notes; in text, `name+hash+key`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NoteKey {
    name: String,
    algorithm: NoteAlgorithm,
    key: PublicKey,
}

/// That a note is signed by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteVerified {
    /// When the witness says it signed, in seconds since the Unix epoch; only for cosignatures.
    pub time: Option<u64>,
}

impl NoteKey {
    /// A key that signs the text alone.
    pub fn ed25519(name: &str, key: &PublicKey) -> Result<Self, NoteError> {
        Self::new(name, NoteAlgorithm::Ed25519, key)
    }

    /// A witness's key.
    pub fn cosignature(name: &str, key: &PublicKey) -> Result<Self, NoteError> {
        Self::new(name, NoteAlgorithm::Cosignature, key)
    }

    fn new(name: &str, algorithm: NoteAlgorithm, key: &PublicKey) -> Result<Self, NoteError> {
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            algorithm,
            key: *key,
        })
    }

    /// The name, which for a log's key is the origin of its checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the key signs.
    pub const fn algorithm(&self) -> NoteAlgorithm {
        self.algorithm
    }

    /// The key itself.
    pub const fn public_key(&self) -> &PublicKey {
        &self.key
    }

    /// The four bytes by which signature lines refer to the key.
    pub fn key_hash(&self) -> [u8; 4] {
        let digest = sha256_parts(&[
            self.name.as_bytes(),
            b"\n",
            &[self.algorithm.id()],
            self.key.as_bytes(),
        ]);
        let [a, b, c, d, ..] = *digest.as_bytes();
        [a, b, c, d]
    }

    /// Checks that the note carries this key's signature. Signatures by others do not matter.
    pub fn verify(&self, note: &Note) -> Result<NoteVerified, NoteError> {
        let signature = note
            .find(&self.name, self.key_hash())
            .ok_or_else(|| NoteError::NotSigned(self.name.clone()))?;
        self.verify_bytes(note.text(), &signature.bytes)
            .ok_or_else(|| NoteError::BadSignature(self.name.clone()))
    }

    fn verify_bytes(&self, text: &str, bytes: &[u8]) -> Option<NoteVerified> {
        match self.algorithm {
            NoteAlgorithm::Ed25519 => {
                let signature = bytes.try_into().ok()?;
                self.key.verify(text.as_bytes(), signature).ok()?;
                Some(NoteVerified { time: None })
            }
            NoteAlgorithm::Cosignature => {
                let (time, signature) = bytes.split_first_chunk()?;
                let time = u64::from_be_bytes(*time);
                let message = cosigned_message(text, time)?;
                let signature = signature.try_into().ok()?;
                self.key.verify(message.as_bytes(), signature).ok()?;
                Some(NoteVerified { time: Some(time) })
            }
        }
    }
}

/// What a witness signs; `None` if the time is beyond what the specification allows.
pub(super) fn cosigned_message(text: &str, time: u64) -> Option<String> {
    i64::try_from(time).ok()?;
    Some(format!("cosignature/v1\ntime {time}\n{text}"))
}

impl fmt::Display for NoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = BASE64.encode([&[self.algorithm.id()], self.key.as_bytes().as_slice()].concat());
        write!(f, "{}+{}+{key}", self.name, hash_text(self.key_hash()))
    }
}

impl FromStr for NoteKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let KeyText { name, hash, key } = KeyText::split(text).ok_or(NoteError::MalformedKey)?;
        check_name(name)?;
        let (&id, key) = key.split_first().ok_or(NoteError::MalformedKey)?;
        let algorithm = [NoteAlgorithm::Ed25519, NoteAlgorithm::Cosignature]
            .into_iter()
            .find(|algorithm| algorithm.id() == id)
            .ok_or_else(|| NoteError::UnknownAlgorithm {
                name: name.to_owned(),
                algorithm: id,
            })?;
        let key = key.try_into().map_err(|_| NoteError::MalformedKey)?;
        let key = PublicKey::from_bytes(key).map_err(|error| NoteError::Key {
            name: name.to_owned(),
            error,
        })?;
        let key = Self::new(name, algorithm, &key)?;
        if key.key_hash() != hash {
            return Err(NoteError::KeyHashMismatch(key.name));
        }
        Ok(key)
    }
}

impl Serialize for NoteKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NoteKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// The text form of a secret key, to be stored: `PRIVATE+KEY+name+hash+key`.
pub fn encode_secret(name: &str, key: &SecretKey) -> Result<Zeroizing<String>, NoteError> {
    let hash = hash_text(NoteKey::ed25519(name, &key.public())?.key_hash());
    let mut seed = Zeroizing::new([NoteAlgorithm::Ed25519.id(); 33]);
    seed[1..].copy_from_slice(key.seed());
    let seed = Zeroizing::new(BASE64.encode(seed.as_slice()));
    Ok(Zeroizing::new(
        [SECRET_START, name, "+", &hash, "+", &seed].concat(),
    ))
}

/// Reads what [`encode_secret`] wrote: the name and the key.
pub fn parse_secret(text: &str) -> Result<(String, SecretKey), NoteError> {
    let KeyText { name, hash, key } = text
        .strip_prefix(SECRET_START)
        .and_then(KeyText::split)
        .ok_or(NoteError::MalformedSecret)?;
    let seed = match key.split_first() {
        Some((&id, seed)) if id == NoteAlgorithm::Ed25519.id() => seed,
        _ => return Err(NoteError::MalformedSecret),
    };
    let seed: Zeroizing<[u8; 32]> =
        Zeroizing::new(seed.try_into().map_err(|_| NoteError::MalformedSecret)?);
    let secret = SecretKey::from_seed(*seed);
    if NoteKey::ed25519(name, &secret.public())?.key_hash() != hash {
        return Err(NoteError::KeyHashMismatch(name.to_owned()));
    }
    Ok((name.to_owned(), secret))
}

/// The three parts of `name+hash+key`, the last decoded.
struct KeyText<'t> {
    name: &'t str,
    hash: [u8; 4],
    /// Possibly secret.
    key: Zeroizing<Vec<u8>>,
}

impl<'t> KeyText<'t> {
    /// The key may contain a plus, the name may not.
    fn split(text: &'t str) -> Option<Self> {
        let (name, rest) = text.split_once('+')?;
        let (hash, key) = rest.split_once('+')?;
        Some(Self {
            name,
            hash: decode_hex(hash.as_bytes())?,
            key: Zeroizing::new(BASE64.decode(key).ok()?),
        })
    }
}

fn hash_text(hash: [u8; 4]) -> String {
    let mut hex = Vec::new();
    encode_hex(&hash, &mut hex);
    String::from_utf8(hex).expect("hexadecimal digits are ASCII")
}

pub(super) fn check_name(name: &str) -> Result<(), NoteError> {
    let forbidden = |c: char| c.is_whitespace() || c == '+' || c < ' ';
    if name.is_empty() || name.contains(forbidden) {
        return Err(NoteError::BadName(name.to_owned()));
    }
    Ok(())
}
