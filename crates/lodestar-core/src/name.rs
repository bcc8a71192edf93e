//! Names that people and configurations choose: projects, sessions, actors.
//!
//! Such a name becomes a path component of the log, a column of the store and a word on an approval
//! card, so it is parsed once, here, into an alphabet that is inert in all three. What every parser
//! of names and words shares is here too: inert excerpts for errors, closed vocabularies. Ids that
//! Lodestar makes itself are in [`crate::id`].

mod excerpt;
mod label;
mod words;

pub use excerpt::Excerpt;
pub use label::{
    CalibrationClass, IndependenceGroup, LabelError, MAX_LABEL_LEN, PolicyId, ServerIdentity,
    ToolName,
};
pub use words::UnknownWord;
pub(crate) use words::{deserialize_str, words};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Longest name in bytes: with a suffix such as `.checkpoint` it stays below the 255 bytes that
/// common file systems allow for a path component.
pub const MAX_NAME_LEN: usize = 128;

/// What a project or session may not be called: its files would stand where the ledger's do.
///
/// Compared without case, because some file systems do not tell `Ledger.x` from `ledger.x`.
const RESERVED_PREFIX: &[u8] = b"ledger.";

/// Why a name was refused.
///
/// The offending input is shown escaped and bounded, so the message is safe to print as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The name has no characters.
    #[error("the name is empty; {ALLOWED}")]
    Empty,
    /// The name is longer than [`MAX_NAME_LEN`].
    #[error("the name `{shown}` is {length} bytes long; {ALLOWED}")]
    TooLong {
        /// Length in bytes.
        length: usize,
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// The first character is neither a letter nor a digit.
    #[error("the name `{shown}` starts with `{found}`; {ALLOWED}")]
    BadFirst {
        /// The first character, inert.
        found: Excerpt,
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// A later character is outside the alphabet.
    #[error("the name `{shown}` has `{found}` at byte {position}; {ALLOWED}")]
    BadCharacter {
        /// Byte offset of the character, from 0.
        position: usize,
        /// The character, inert.
        found: Excerpt,
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// Two dots in a row, which could climb out of a directory.
    #[error("the name `{shown}` contains `..`; {ALLOWED}")]
    DotDot {
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// The name belongs to the ledger's own files.
    #[error(
        "the name `{shown}` is reserved: names that start with `ledger.` belong to the ledger's files"
    )]
    Reserved {
        /// The refused input, inert.
        shown: Excerpt,
    },
}

const ALLOWED: &str =
    "a name is 1 to 128 of `A-Z a-z 0-9 . _ -`, starts with a letter or digit, and has no `..`";

fn is_first(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_later(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// Whether the bytes are a well-formed name: the rule shared by all name types.
///
/// For scanners that look at a raw line and have no use for a reason. Projects and sessions refuse
/// more than this: see [`SessionId::is_valid`].
pub fn is_valid_name(bytes: &[u8]) -> bool {
    if bytes.len() > MAX_NAME_LEN || !bytes.first().copied().is_some_and(is_first) {
        return false;
    }
    let mut previous = 0;
    for &byte in bytes {
        if !is_later(byte) || (byte == b'.' && previous == b'.') {
            return false;
        }
        previous = byte;
    }
    true
}

fn is_reserved(bytes: &[u8]) -> bool {
    bytes
        .get(..RESERVED_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(RESERVED_PREFIX))
}

/// Finds the reason; called only once a name is known to be malformed.
fn explain(text: &str) -> NameError {
    let shown = Excerpt::of(text);
    if text.is_empty() {
        return NameError::Empty;
    }
    if text.len() > MAX_NAME_LEN {
        return NameError::TooLong {
            length: text.len(),
            shown,
        };
    }
    let bad = text
        .char_indices()
        .find(|&(at, c)| !u8::try_from(c).is_ok_and(if at == 0 { is_first } else { is_later }));
    match bad {
        Some((0, c)) => NameError::BadFirst {
            found: Excerpt::of_char(c),
            shown,
        },
        Some((position, c)) => NameError::BadCharacter {
            position,
            found: Excerpt::of_char(c),
            shown,
        },
        None => NameError::DotDot { shown },
    }
}

/// Whether a name type keeps clear of the ledger's files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reservation {
    /// The name becomes a file or directory beside the ledger.
    BesideLedger,
    /// The name is never a path.
    None,
}

fn check(text: &str, reservation: Reservation) -> Result<(), NameError> {
    if !is_valid_name(text.as_bytes()) {
        return Err(explain(text));
    }
    if reservation == Reservation::BesideLedger && is_reserved(text.as_bytes()) {
        return Err(NameError::Reserved {
            shown: Excerpt::of(text),
        });
    }
    Ok(())
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $reservation:expr) => {
        $(#[$doc])*
        ///
        /// Cloning shares the text.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and takes it as a name.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let text = text.as_ref();
                check(text, $reservation)?;
                Ok(Self(Arc::from(text)))
            }

            /// Whether the bytes would be accepted by [`Self::new`].
            pub fn is_valid(bytes: &[u8]) -> bool {
                is_valid_name(bytes)
                    && ($reservation == Reservation::None || !is_reserved(bytes))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize_str(deserializer)
            }
        }
    };
}

name_type! {
    /// The project that a session's log belongs to.
    ProjectId, Reservation::BesideLedger
}

name_type! {
    /// One governed session: one log.
    SessionId, Reservation::BesideLedger
}

name_type! {
    /// Who acted: an agent, a person, a component.
    ActorId, Reservation::None
}

name_type! {
    /// What one level of a [`Scope`](crate::scope::Scope) is called.
    ScopeName, Reservation::None
}

impl From<&ProjectId> for ScopeName {
    fn from(project: &ProjectId) -> Self {
        Self(Arc::clone(&project.0))
    }
}

impl From<&SessionId> for ScopeName {
    fn from(session: &SessionId) -> Self {
        Self(Arc::clone(&session.0))
    }
}

impl From<&ActorId> for ScopeName {
    fn from(actor: &ActorId) -> Self {
        Self(Arc::clone(&actor.0))
    }
}

#[cfg(test)]
mod tests;
