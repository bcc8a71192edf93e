//! The one list of reasons to refuse a note.

use super::{MAX_NOTE_LEN, MAX_NOTE_SIGNATURES};
use crate::key::KeyError;

/// Why a note, its key or a checkpoint is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// Longer than [`MAX_NOTE_LEN`].
    #[error("a note of {0} bytes is longer than {MAX_NOTE_LEN}")]
    TooLong(usize),
    /// The bytes are not UTF-8.
    #[error("the note is not UTF-8")]
    NotUtf8,
    /// A control character other than the newline.
    #[error("the note contains a control character")]
    ControlCharacter,
    /// The text does not end in a newline.
    #[error("the text of the note does not end in a newline")]
    UnfinishedText,
    /// No empty line with whole signature lines after it.
    #[error("the note has no signature lines")]
    NoSignatures,
    /// A line where a signature line is due.
    #[error("`{0}` is not a signature line")]
    MalformedSignature(String),
    /// More than [`MAX_NOTE_SIGNATURES`].
    #[error("the note has more than {MAX_NOTE_SIGNATURES} signatures")]
    TooManySignatures,
    /// Two signatures by the same key.
    #[error("the note is signed twice by the same key of `{0}`")]
    DuplicateSignature(String),
    /// Empty, or with a space, a plus or a control character.
    #[error("`{0}` cannot name a key: it is empty or has a space, a plus or a control character")]
    BadName(String),
    /// Not of the form `name+hash+key`.
    #[error("a note key is written as `name+hash+key`")]
    MalformedKey,
    /// A secret key not of the form `PRIVATE+KEY+name+hash+key`. The text is not repeated here.
    #[error("a secret note key is written as `PRIVATE+KEY+name+hash+key`")]
    MalformedSecret,
    /// The hash in a key's text is not that of the key.
    #[error("the key of `{0}` does not have the hash written beside it")]
    KeyHashMismatch(String),
    /// A signature algorithm that is not supported.
    #[error("the key of `{name}` is for the unknown algorithm {algorithm:#04x}")]
    UnknownAlgorithm {
        /// The name of the key.
        name: String,
        /// The algorithm's identifier.
        algorithm: u8,
    },
    /// The public key itself is refused.
    #[error("the key of `{name}` is refused: {error}")]
    Key {
        /// The name of the key.
        name: String,
        /// Why.
        error: KeyError,
    },
    /// The note has no signature by this key.
    #[error("the note is not signed by this key of `{0}`")]
    NotSigned(String),
    /// The note has a signature by this key, and it is wrong.
    #[error("the signature by `{0}` does not verify")]
    BadSignature(String),
    /// A time that a cosignature cannot carry.
    #[error("the time {0} is out of range for a cosignature")]
    TimeOutOfRange(u64),
    /// The text is not a checkpoint.
    #[error("not a checkpoint: {0}")]
    MalformedCheckpoint(&'static str),
    /// The checkpoint has lines after the root, which nothing here could check.
    #[error("the checkpoint has extension lines")]
    ExtensionLines,
    /// The checkpoint is of another log than the key.
    #[error("the checkpoint is of `{origin}`, the key of `{key}`")]
    OriginMismatch {
        /// The log the checkpoint names.
        origin: String,
        /// The name of the key.
        key: String,
    },
}
