//! Names that others choose: tools, servers, policies, groups.
//!
//! Unlike a project or session they are never a path and keep whatever spelling they came with;
//! they only have to be there and have an end. They have no `Display`, so that whoever writes one
//! says which is meant: the text verbatim, or something that is safe to show.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::{Excerpt, deserialize_str};

/// Longest label in bytes: any real name fits, and a card that shows several stays readable.
pub const MAX_LABEL_LEN: usize = 1024;

/// Why a label was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LabelError {
    /// The label has no characters.
    #[error("the {what} is empty")]
    Empty {
        /// What the label names.
        what: &'static str,
    },
    /// The label is longer than [`MAX_LABEL_LEN`].
    #[error("the {what} `{shown}` is {length} bytes long; at most {MAX_LABEL_LEN} are taken")]
    TooLong {
        /// What the label names.
        what: &'static str,
        /// Length in bytes.
        length: usize,
        /// The refused input, inert.
        shown: Excerpt,
    },
}

fn check(text: &str, what: &'static str) -> Result<(), LabelError> {
    match text.len() {
        0 => Err(LabelError::Empty { what }),
        1..=MAX_LABEL_LEN => Ok(()),
        length => Err(LabelError::TooLong {
            what,
            length,
            shown: Excerpt::of(text),
        }),
    }
}

macro_rules! label_types {
    ($($(#[$doc:meta])* $name:ident: $what:literal;)+) => {$(
        $(#[$doc])*
        ///
        /// Kept verbatim; not empty; cloning shares the text.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is, unless it is empty or overlong.
            pub fn new(text: impl AsRef<str>) -> Result<Self, LabelError> {
                check(text.as_ref(), $what)?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            /// The text, verbatim.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, inert and bounded.
            pub fn shown(&self) -> Excerpt {
                Excerpt::of(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = LabelError;

            fn from_str(text: &str) -> Result<Self, LabelError> {
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
    )+};
}

label_types! {
    /// What a server calls one of its tools.
    ToolName: "tool name";
    /// Which server it is, by what the operator pinned, not by what it says of itself.
    ServerIdentity: "server identity";
    /// One policy of the operator's set.
    PolicyId: "policy id";
    /// Evidence that shares an origin shares a group, and counts once.
    IndependenceGroup: "independence group";
    /// Beliefs whose assigned confidence is compared with how they turned out, together.
    CalibrationClass: "calibration class";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_text_and_show_it_inert() {
        let hostile = "read\u{202e}\u{1b}[31m";
        let tool = ToolName::new(hostile).unwrap();
        assert_eq!(tool.as_str(), hostile);
        assert_eq!(tool.shown().as_str(), "read\\u{202e}\\u{1b}[31m");
        let json = serde_json::to_string(&tool).unwrap();
        assert_eq!(serde_json::from_str::<ToolName>(&json).unwrap(), tool);
    }

    #[test]
    fn labels_are_there_and_have_an_end() {
        assert_eq!(
            ToolName::new("").unwrap_err().to_string(),
            "the tool name is empty"
        );
        assert!(ToolName::new("x".repeat(1024)).is_ok());
        let error = ServerIdentity::new("x".repeat(1 << 20)).unwrap_err();
        assert!(matches!(
            error,
            LabelError::TooLong {
                length: 1_048_576,
                ..
            }
        ));
        assert!(error.to_string().len() < 200);
        assert!(serde_json::from_str::<PolicyId>("\"\"").is_err());
    }
}
