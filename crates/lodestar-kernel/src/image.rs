//! Before-images: what stood where an act of L3 or above writes, kept so that the act can be undone.
//!
//! A tool names the paths of a call ([`Tool::writes`](crate::tool::Tool::writes)); the kernel keeps what stands
//! there ([`take`]) and records it with the clearance, on disk before the tool is called. When the
//! call is over it looks once more, so that whoever undoes it later can tell whether somebody changed a file
//! since. An image names real places below a root: links are kept as links, and what they lead to beside them.

mod keep;
mod spelling;

pub(crate) use keep::look_in;
pub use keep::{Sight, Taken, look, take};
pub use spelling::{NotASpelling, Spelling};

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::{ActionId, ClearanceId};
use serde::{Deserialize, Serialize};

/// Largest file that is kept: what people write by hand or generate is far below, and every byte of it is
/// read, packed and synchronised before the tool may begin.
pub const MAX_IMAGE_BYTES: u64 = 16 << 20;

/// Most that is kept for one act. In base64 it still is less than a reader of the log puts together in
/// memory.
pub const MAX_ACT_BYTES: u64 = 32 << 20;

/// Most paths that are kept for one act: an edit of many files, and few enough to be named in the arguments
/// of the call that undoes it.
pub const MAX_IMAGES: usize = 256;

/// The bits of a mode that are kept: who may read, write and run. Content that comes back does not bring
/// setuid, setgid or sticky with it.
pub const MODE_BITS: u32 = 0o777;

/// `action.imaged@1`: what stood at the paths that an act is about to write. The last one of an act counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imaged {
    /// The action.
    pub action: ActionId,
    /// Its clearance.
    pub clearance: ClearanceId,
    /// The folder that the paths lie below.
    pub root: Spelling,
    /// What stood where.
    pub images: Vec<Image>,
}

impl Imaged {
    /// Whether everything that the act writes can be put back.
    pub fn is_whole(&self) -> bool {
        self.unkept().next().is_none()
    }

    /// What cannot be put back.
    pub fn unkept(&self) -> impl Iterator<Item = (&Spelling, &Unkept)> {
        self.images.iter().filter_map(|image| match &image.stood {
            Stood::Unkept { because } => Some((&image.path, because)),
            _ => None,
        })
    }
}

/// What stood at one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The path, below the root; without links on the way.
    pub path: Spelling,
    /// What stood there.
    pub stood: Stood,
}

/// What stood at a path, with all that it takes to put it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stood {
    /// A regular file.
    File {
        /// Who may do what with it.
        mode: u32,
        /// How long it was.
        bytes: u64,
        /// SHA-256 of what it held.
        sha256: Digest,
        /// What it held.
        content: Content,
    },
    /// Nothing.
    Nothing {
        /// How many of the folders on the way were not there either, counted from the path upwards.
        #[serde(default, skip_serializing_if = "is_zero")]
        missing_folders: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it led, as it was written.
        to: Spelling,
    },
    /// A folder: no act replaces one by writing to it.
    Folder,
    /// Something of which nothing is kept.
    Unkept {
        /// Why.
        because: Unkept,
    },
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Stood {
    /// The same, as it is seen and compared.
    pub fn state(&self) -> Option<State> {
        Some(match self {
            Self::File { mode, sha256, .. } => State::File {
                mode: *mode,
                sha256: *sha256,
            },
            Self::Nothing { missing_folders } => State::Nothing {
                missing_folders: *missing_folders,
            },
            Self::Link { to } => State::Link { to: to.clone() },
            Self::Folder => State::Folder,
            Self::Unkept { .. } => return None,
        })
    }
}

/// What a file held: as text where it is UTF-8, so that whoever reads the log can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Base64(String),
}

impl Content {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(other) => Self::Base64(STANDARD.encode(other.as_bytes())),
        }
    }

    /// The bytes, if they are those of the digest.
    pub fn bytes(&self, expected: &Digest) -> Option<Vec<u8>> {
        let bytes = match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Base64(text) => STANDARD.decode(text).ok()?,
        };
        (sha256(&bytes) == *expected).then_some(bytes)
    }
}

/// Why nothing is kept of what stood at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unkept {
    /// It is larger than what is kept.
    TooLarge {
        /// How large it is.
        bytes: u64,
    },
    /// The act writes more than is kept of one act.
    TooMuch,
    /// It lies outside the root, or a link leads there.
    Outside,
    /// It is a device, a pipe or a socket.
    Special,
    /// It cannot be read, or changes while it is read.
    Unreadable {
        /// In words.
        problem: String,
    },
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(f, "it has {bytes} bytes, and {MAX_IMAGE_BYTES} are kept")
            }
            Self::TooMuch => write!(
                f,
                "the act writes more than the {MAX_ACT_BYTES} bytes or {MAX_IMAGES} paths that are kept of one"
            ),
            Self::Outside => f.write_str("it lies outside the root"),
            Self::Special => f.write_str("it is no regular file"),
            Self::Unreadable { problem } => write!(f, "it cannot be read: {problem}"),
        }
    }
}

/// What stands at a path, by digest: enough to tell whether it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum State {
    /// A regular file.
    File {
        /// Who may do what with it.
        mode: u32,
        /// SHA-256 of what it holds.
        sha256: Digest,
    },
    /// Nothing.
    Nothing {
        /// How many of the folders on the way are not there either.
        #[serde(default, skip_serializing_if = "is_zero")]
        missing_folders: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as it is written.
        to: Spelling,
    },
    /// A folder.
    Folder,
    /// What it is could not be seen.
    Unseen {
        /// Why, in words.
        problem: String,
    },
}

impl State {
    /// Whether the same stands at the path. How many folders are missing on the way to nothing does not count;
    /// and what nobody saw is like nothing else.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unseen { .. }, _) | (_, Self::Unseen { .. }) => false,
            (Self::Nothing { .. }, Self::Nothing { .. }) => true,
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests;
