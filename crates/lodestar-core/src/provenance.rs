//! Where the value of an argument came from, in words that gate, cards and reports share.
//!
//! How it is found out is the firewall's; here is only what can be said. An answer names places (JSON pointers, byte ranges, observations), not the values themselves, so
//! that recording it beside an action keeps nothing that redacting the action would have to find.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::ObservationId;

/// What sort of value an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// An e-mail address. The domain ignores case, the local part does not.
    Email,
    /// A URL with scheme and host. Scheme and host ignore case; default port, a slash at the end
    /// and the percent-encoding of unreserved characters do not count.
    Url,
    /// A host name or address with or without a port. Ignores case.
    Host,
    /// A file name with an ending, or anything with a `/`. `./`, doubled and final slashes do not
    /// count; case does, and so does `..`, since a link may stand before it.
    Path,
    /// An IBAN or a card number whose check digits are right. Grouping does not count.
    Account,
    /// A telephone number: international with `+`, or grouped 3-3-4. Grouping does not count.
    Phone,
    /// One word with a digit in it. Compared exactly, save that a UUID ignores case.
    Id,
    /// A JSON number. Compared in canonical JSON.
    Number,
    /// `true` or `false`, which have no origin worth the name.
    Boolean,
    /// Anything else. Compared exactly.
    Text,
}

impl ValueKind {
    /// Whether a value of this kind says where something goes or whose it is, by its form alone.
    pub fn is_address(self) -> bool {
        matches!(
            self,
            Self::Email | Self::Url | Self::Host | Self::Path | Self::Account | Self::Phone
        )
    }

    /// Whether the kind's own grammar ends the value, whatever surrounds it.
    pub fn delimits_itself(self) -> bool {
        matches!(self, Self::Email | Self::Url | Self::Account | Self::Phone)
    }
}

/// Who gave a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum GivenSource {
    /// It stands in the operator's task statement.
    Task,
    /// It stands in an assertion that a known person signed.
    Assertion {
        /// Digest of the signed statement.
        statement: Digest,
    },
    /// It stands in a list of known values that the operator keeps.
    KnownValue {
        /// The list's name, such as `contacts`.
        list: String,
    },
}

/// Where a value came from.
///
/// Only [`Given`](Self::Given) and [`Measured`](Self::Measured) are trusted. The other two differ in
/// what can be explained, not in trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "label", rename_all = "snake_case")]
pub enum Label {
    /// The operator gave exactly this value.
    Given {
        /// Where he did.
        source: GivenSource,
    },
    /// Lodestar measured exactly this value itself.
    Measured {
        /// What was measured, such as `git_remote_url`.
        what: String,
    },
    /// Found in content that was read.
    Read {
        /// The observations it was found in, oldest first; at least one, and not necessarily all.
        observations: Vec<ObservationId>,
        /// How the value and what was read are alike.
        how: Likeness,
    },
    /// Found nowhere: made up, decoded, or read so long ago that it is forgotten.
    Unknown,
}

impl Label {
    /// Whether the value comes from the operator or from Lodestar itself.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Given { .. } | Self::Measured { .. } => true,
            Self::Read { .. } | Self::Unknown => false,
        }
    }
}

/// How a value resembles what was read, from the closest likeness to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// The same text, as a whole value.
    Copy,
    /// Another spelling of the same value.
    NormalForm,
    /// The same letters and digits; case, spacing, punctuation or script differ.
    Loose,
    /// Part of what was read, such as some words of a sentence or the middle of a name.
    Part,
    /// Put together from pieces of what was read, or a piece with something added.
    Pieces,
    /// Any of the above, once percent-encoding, base64 or hexadecimal is undone.
    Decoded,
}

/// Whether a value or the name of a member is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The value that the pointer leads to.
    Value,
    /// The name of the member that the pointer leads to. Listed only where a name is an address, a
    /// URL, a path or an account: names are otherwise the tool's own words.
    Name,
}

/// What is known about one value of an action's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentProvenance {
    /// JSON pointer (RFC 6901) into the arguments.
    pub pointer: String,
    /// Whether the value there or its name is meant.
    pub place: Place,
    /// What sort of value it is: the rule by which it was compared.
    pub kind: ValueKind,
    /// Where it came from, as a whole.
    #[serde(flatten)]
    pub label: Label,
    /// A trusted value, or a word of the task, that this untrusted one is easily taken for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resembles: Option<Resemblance>,
    /// Addresses, URLs, paths and accounts that stand inside the value, in order.
    ///
    /// What is not listed is not thereby harmless: a text can spell an address in ways that no
    /// scanner sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<InsideValue>,
    /// How many more there are than `inside` lists.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inside_omitted: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// An address, URL, path or account inside a longer value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideValue {
    /// Where in the value, in bytes.
    pub range: Range<usize>,
    /// What sort of value it is.
    pub kind: ValueKind,
    /// Where it came from.
    #[serde(flatten)]
    pub label: Label,
}

/// A hint for whoever looks at a card: the same letters and digits as something trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resemblance {
    /// What it is like.
    pub to: Resembled,
    /// That value or word, as the operator wrote it or Lodestar measured it.
    pub text: String,
}

/// What an untrusted value may resemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resembled {
    /// A given or measured value: the difference may be an attack, such as a look-alike letter.
    TrustedValue,
    /// A word or number in the prose of the task. Quoting it there would make it given.
    WordOfTask,
}
