//! Signed notes: a text with signature lines under it, as C2SP's `signed-note` defines them.
//!
//! Checkpoints of the log are such notes ([`Checkpoint`], C2SP `tlog-checkpoint`), and a witness
//! adds its line to them (C2SP `tlog-cosignature`). Parsing is strict to the byte: a note prints
//! exactly as it was read. [`NoteKey`] says whose signature counts.

mod checkpoint;
mod error;
mod key;

#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::key::SecretKey;

pub use checkpoint::Checkpoint;
pub use error::NoteError;
pub use key::{NoteAlgorithm, NoteKey, NoteVerified, encode_secret, parse_secret};

/// The longest note that is read or made. A checkpoint takes a few hundred bytes.
pub const MAX_NOTE_LEN: usize = 1 << 20;

/// The most signatures a note may have: a log's, and more witnesses than anyone runs.
pub const MAX_NOTE_SIGNATURES: usize = 64;

/// The em dash and space that start a signature line.
const SIGNATURE_START: &str = "\u{2014} ";

/// A text and its signatures. Having a note proves nothing yet: [`NoteKey::verify`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// INVARIANT: ends in a newline, no other control characters.
    text: String,
    /// INVARIANT: no two with the same name and key hash.
    signatures: Vec<NoteSignature>,
}

/// One signature line of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    /// The name of the key.
    pub name: String,
    /// The first four bytes of the key's hash, which tell keys of one name apart.
    pub key_hash: [u8; 4],
    /// The signature itself, in the form of its algorithm; never empty.
    pub bytes: Vec<u8>,
}

impl Note {
    /// A note without signatures.
    pub fn new(text: impl Into<String>) -> Result<Self, NoteError> {
        let text = text.into();
        if text.len() > MAX_NOTE_LEN {
            return Err(NoteError::TooLong(text.len()));
        }
        if has_control_characters(&text) {
            return Err(NoteError::ControlCharacter);
        }
        if !text.ends_with('\n') {
            return Err(NoteError::UnfinishedText);
        }
        Ok(Self {
            text,
            signatures: Vec::new(),
        })
    }

    /// Reads a signed note; one without signatures is refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE_LEN {
            return Err(NoteError::TooLong(bytes.len()));
        }
        let whole = str::from_utf8(bytes).map_err(|_| NoteError::NotUtf8)?;
        if has_control_characters(whole) {
            return Err(NoteError::ControlCharacter);
        }
        // The text may itself have empty lines: the last one separates it from the signatures.
        let separator = whole.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let (text, signatures) = whole.split_at(separator + 1);
        let mut note = Self::new(text)?;
        let lines = signatures[1..]
            .strip_suffix('\n')
            .ok_or(NoteError::NoSignatures)?;
        for line in lines.split('\n') {
            let signature = parse_signature(line)
                .ok_or_else(|| NoteError::MalformedSignature(line.to_owned()))?;
            note.push_signature(signature)?;
        }
        Ok(note)
    }

    /// What is signed; ends in a newline.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures in the order of their lines, verified or not.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds the signature line of a key under a name.
    pub fn sign(&mut self, name: &str, key: &SecretKey) -> Result<(), NoteError> {
        self.add_signature(NoteSignature {
            name: name.to_owned(),
            key_hash: NoteKey::ed25519(name, &key.public())?.key_hash(),
            bytes: key.sign(self.text.as_bytes()).to_vec(),
        })
    }

    /// Adds a signature line at the end; nothing is verified.
    pub fn add_signature(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        self.push_signature(signature)?;
        let len = self.to_string().len();
        if len > MAX_NOTE_LEN {
            self.signatures.pop();
            return Err(NoteError::TooLong(len));
        }
        Ok(())
    }

    /// Adds a signature whose length is already known to fit.
    fn push_signature(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        key::check_name(&signature.name)?;
        if signature.bytes.is_empty() {
            return Err(NoteError::MalformedSignature(signature.to_string()));
        }
        if self.signatures.len() == MAX_NOTE_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        if self.find(&signature.name, signature.key_hash).is_some() {
            return Err(NoteError::DuplicateSignature(signature.name));
        }
        self.signatures.push(signature);
        Ok(())
    }

    fn find(&self, name: &str, key_hash: [u8; 4]) -> Option<&NoteSignature> {
        self.signatures
            .iter()
            .find(|signature| signature.name == name && signature.key_hash == key_hash)
    }
}

/// The signed note as text, byte for byte as it was read.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures
            .iter()
            .try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

/// The signature line, without the newline.
impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoded = BASE64.encode([self.key_hash.as_slice(), &self.bytes].concat());
        write!(f, "{SIGNATURE_START}{} {encoded}", self.name)
    }
}

fn parse_signature(line: &str) -> Option<NoteSignature> {
    let (name, encoded) = line.strip_prefix(SIGNATURE_START)?.split_once(' ')?;
    let decoded = BASE64.decode(encoded).ok()?;
    let (key_hash, bytes) = decoded.split_first_chunk()?;
    key::check_name(name).ok()?;
    (!bytes.is_empty()).then(|| NoteSignature {
        name: name.to_owned(),
        key_hash: *key_hash,
        bytes: bytes.to_vec(),
    })
}

fn has_control_characters(text: &str) -> bool {
    text.bytes().any(|byte| byte < 0x20 && byte != b'\n')
}
