//! Checkpoints: the size and root of a log's tree, as the text of a note.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::key::{check_name, cosigned_message};
use super::{Note, NoteError, NoteKey, NoteSignature};
use crate::digest::Digest;
use crate::key::SecretKey;

/// What a log says of itself: that its first `size` leaves have this root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log, which is also the name of its key.
    pub origin: String,
    /// The number of leaves.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Digest,
}

impl Checkpoint {
    /// The text that is signed: three lines.
    pub fn body(&self) -> String {
        let root = BASE64.encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// Reads the text of a checkpoint. Extension lines are refused: nothing here knows their meaning.
    pub fn parse_body(text: &str) -> Result<Self, NoteError> {
        let malformed = NoteError::MalformedCheckpoint;
        let lines = text
            .strip_suffix('\n')
            .ok_or(malformed("it does not end in a newline"))?;
        let mut lines = lines.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(malformed("it has fewer than three lines"));
        };
        if lines.next().is_some() {
            return Err(NoteError::ExtensionLines);
        }
        if origin.is_empty() || origin.contains(|c| c < ' ') {
            return Err(malformed("its first line is not an origin"));
        }
        let size = parse_size(size).ok_or(malformed("its second line is not a size"))?;
        let root = BASE64
            .decode(root)
            .ok()
            .and_then(|root| root.try_into().ok())
            .map(Digest::from_bytes)
            .ok_or(malformed("its third line is not a root hash"))?;
        Ok(Self {
            origin: origin.to_owned(),
            size,
            root,
        })
    }

    /// Signs the checkpoint as its log.
    ///
    /// # Panics
    ///
    /// If the origin cannot name a key: the code that opens a log has to choose one that can.
    pub fn sign(&self, key: &SecretKey) -> Note {
        self.try_sign(key)
            .expect("the origin of a log is a valid key name")
    }

    fn try_sign(&self, key: &SecretKey) -> Result<Note, NoteError> {
        check_name(&self.origin)?;
        let mut note = Note::new(self.body())?;
        note.sign(&self.origin, key)?;
        Ok(note)
    }

    /// Reads a signed checkpoint and verifies that the log of this key signed it.
    pub fn open(note: &[u8], key: &NoteKey) -> Result<(Self, Note), NoteError> {
        let note = Note::parse(note)?;
        key.verify(&note)?;
        let checkpoint = Self::parse_body(note.text())?;
        if checkpoint.origin != key.name() {
            return Err(NoteError::OriginMismatch {
                origin: checkpoint.origin,
                key: key.name().to_owned(),
            });
        }
        Ok((checkpoint, note))
    }

    /// Adds a witness's line to a signed checkpoint, with the time in seconds since the Unix epoch.
    ///
    /// What the line claims, that the log only ever grew, is for the witness to check before.
    pub fn cosign(
        note: &mut Note,
        name: &str,
        key: &SecretKey,
        unix_seconds: u64,
    ) -> Result<(), NoteError> {
        Self::parse_body(note.text())?;
        let message = cosigned_message(note.text(), unix_seconds)
            .ok_or(NoteError::TimeOutOfRange(unix_seconds))?;
        let mut bytes = unix_seconds.to_be_bytes().to_vec();
        bytes.extend_from_slice(&key.sign(message.as_bytes()));
        note.add_signature(NoteSignature {
            name: name.to_owned(),
            key_hash: NoteKey::cosignature(name, &key.public())?.key_hash(),
            bytes,
        })
    }
}

/// Decimal digits without leading zeros.
fn parse_size(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    (plain && !leading_zero)
        .then(|| text.parse().ok())
        .flatten()
}
