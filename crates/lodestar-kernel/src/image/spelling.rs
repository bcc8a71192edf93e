//! Paths as text, one spelling for each: most are UTF-8 and stand as they are; of the others, the bytes that
//! are not are written as `%` and two digits.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A path, as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Spelling(PathBuf);

/// This is no path's spelling, or not the only one it has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` does not spell a path in the one way that there is")]
pub struct NotASpelling {
    text: Excerpt,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Text(String),
    Escaped { escaped: String },
}

impl Spelling {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Inert, for people.
    pub fn shown(&self) -> Excerpt {
        Excerpt::of(&self.to_string())
    }
}

impl From<&Path> for Spelling {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl From<OsString> for Spelling {
    fn from(path: OsString) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str() {
            Some(text) => f.write_str(text),
            None => f.write_str(&escape(self.0.as_os_str())),
        }
    }
}

impl fmt::Debug for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spelling").field(&self.0).finish()
    }
}

impl From<Spelling> for Wire {
    fn from(spelling: Spelling) -> Self {
        match spelling.0.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(other) => Self::Escaped {
                escaped: escape(&other),
            },
        }
    }
}

impl TryFrom<Wire> for Spelling {
    type Error = NotASpelling;

    fn try_from(wire: Wire) -> Result<Self, NotASpelling> {
        match wire {
            Wire::Text(text) => Ok(Self(text.into())),
            Wire::Escaped { escaped } => {
                // INVARIANT: what reads as a name in the text is that name: nothing but bytes that no text has is
                // hidden behind an escape, so whoever looks for protected names finds them.
                let path = unescape(&escaped).filter(|path| path.to_str().is_none());
                let path = path.filter(|path| escape(path) == escaped);
                path.map(|path| Self(path.into()))
                    .ok_or_else(|| NotASpelling {
                        text: Excerpt::of(&escaped),
                    })
            }
        }
    }
}

fn escape(path: &OsStr) -> String {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn unescape(text: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn spelt(bytes: &[u8]) -> Value {
        serde_json::to_value(Spelling::from(Path::new(OsStr::from_bytes(bytes)))).unwrap()
    }

    #[test]
    fn text_stands_as_it_is_and_other_bytes_are_escaped() {
        assert_eq!(spelt("a/100%/é".as_bytes()), json!("a/100%/é"));
        let odd = spelt(b"a/%\xff/.lodestar");
        assert_eq!(odd, json!({"escaped": "a/%25%FF/.lodestar"}));
    }

    #[test]
    fn no_name_hides_behind_an_escape() {
        for hidden in [
            "%2Elodestar/%FF",
            ".lodesta%72/%FF",
            "plain",
            "%25",
            "%ff",
            "%F",
            "%",
            "%+F",
            "%C3%A9",
        ] {
            let read: Result<Spelling, _> = serde_json::from_value(json!({"escaped": hidden}));
            assert!(read.is_err(), "{hidden}");
        }
    }

    proptest! {
        #[test]
        fn every_path_is_read_back(bytes in proptest::collection::vec(1u8.., 0..40)) {
            let path = Spelling(OsString::from_vec(bytes).into());
            let wire = serde_json::to_value(&path).unwrap();
            prop_assert_eq!(serde_json::from_value::<Spelling>(wire).unwrap(), path);
        }
    }
}
