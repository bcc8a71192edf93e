//! Paths in a normal form, by their text alone.
//!
//! `./a/b`, `a//b` and `a/x/../b/` become `a/b` or what they mean; `..` never climbs out of the root
//! that the path starts from. Links are not followed, since nothing here looks at a disk: whoever
//! opens the path resolves them and checks again. The separator is `/`.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::name::{Excerpt, deserialize_str};

/// Longest path in bytes: what systems call `PATH_MAX`.
pub const MAX_PATH_LEN: usize = 4096;

/// A path in normal form: no `.`, no `..`, no empty component, no slash at the end.
///
/// Relative (`a/b`, or `.` for the root it starts from) or absolute (`/a/b`, or `/`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NormalPath(String);

/// Why text is not a path that can be normalised.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathError {
    /// The text has no characters.
    #[error("the path is empty")]
    Empty,
    /// No system opens a longer one.
    #[error("the path `{shown}` is {length} bytes long; at most {MAX_PATH_LEN} are taken")]
    TooLong {
        /// The path, inert.
        shown: Excerpt,
        /// Its length in bytes.
        length: usize,
    },
    /// `..` would leave the root.
    #[error("the path `{shown}` climbs out of its root")]
    ClimbsOut {
        /// The path, inert.
        shown: Excerpt,
    },
    /// A NUL ends the path for the system, but not for us.
    #[error("the path `{shown}` contains a NUL byte")]
    Nul {
        /// The path, inert.
        shown: Excerpt,
    },
}

impl NormalPath {
    /// Brings a path into normal form.
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() > MAX_PATH_LEN {
            return Err(PathError::TooLong {
                shown: Excerpt::of(text),
                length: text.len(),
            });
        }
        if text.contains('\0') {
            return Err(PathError::Nul {
                shown: Excerpt::of(text),
            });
        }
        let mut components = Vec::new();
        for component in text.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    components.pop().ok_or_else(|| PathError::ClimbsOut {
                        shown: Excerpt::of(text),
                    })?;
                }
                name => components.push(name),
            }
        }
        let path = components.join("/");
        Ok(Self(match (text.starts_with('/'), path.is_empty()) {
            (true, _) => format!("/{path}"),
            (false, true) => ".".to_owned(),
            (false, false) => path,
        }))
    }

    /// The path below a root, if it lies there: one place has one spelling, absolute or not.
    #[must_use]
    pub fn below(self, root: &Self) -> Self {
        let inside = self.0.strip_prefix(&root.0);
        match inside {
            Some("") => Self(".".to_owned()),
            Some(rest) if root.0 == "/" && self.0.starts_with('/') => Self(rest.to_owned()),
            Some(rest) => match rest.strip_prefix('/') {
                Some(rest) => Self(rest.to_owned()),
                None => self,
            },
            None => self,
        }
    }

    /// The normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NormalPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl Serialize for NormalPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for NormalPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_str(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_place_are_equal() {
        for (text, normal) in [
            ("a/b", "a/b"),
            ("./a/b", "a/b"),
            ("a//b", "a/b"),
            ("a/./b/", "a/b"),
            ("a/x/../b", "a/b"),
            (".", "."),
            ("./", "."),
            ("a/..", "."),
            ("/", "/"),
            ("//a", "/a"),
            ("/a/../b", "/b"),
            ("...", "..."),
            ("a/..b", "a/..b"),
            ("a\\..\\b", "a\\..\\b"),
        ] {
            assert_eq!(NormalPath::new(text).unwrap().as_str(), normal, "{text}");
        }
    }

    #[test]
    fn a_place_below_a_root_has_one_spelling() {
        let root = NormalPath::new("/work/project").unwrap();
        for (text, expected) in [
            ("/work/project/a.md", "a.md"),
            ("/work/project", "."),
            ("/work/projects/a.md", "/work/projects/a.md"),
            ("a.md", "a.md"),
            ("/etc/passwd", "/etc/passwd"),
        ] {
            let below = NormalPath::new(text).unwrap().below(&root);
            assert_eq!(below.as_str(), expected, "{text}");
        }
        let top = NormalPath::new("/").unwrap();
        assert_eq!(NormalPath::new("/a").unwrap().below(&top).as_str(), "a");
        assert!(NormalPath::new(&"./".repeat(3000)).is_err());
        assert!(NormalPath::new(&"a".repeat(MAX_PATH_LEN)).is_ok());
        assert!(NormalPath::new(&"a".repeat(MAX_PATH_LEN + 1)).is_err());
    }

    #[test]
    fn nothing_climbs_out_of_its_root() {
        for text in [
            "..",
            "../a",
            "a/../..",
            "a/../../a",
            "/..",
            "/a/../../b",
            "./..",
        ] {
            assert!(
                matches!(NormalPath::new(text), Err(PathError::ClimbsOut { .. })),
                "{text}"
            );
        }
        assert_eq!(NormalPath::new(""), Err(PathError::Empty));
        assert!(matches!(
            NormalPath::new("a\0b"),
            Err(PathError::Nul { .. })
        ));
    }

    /// Depth of each prefix, counted naively, as a second opinion.
    fn climbs_out(text: &str) -> bool {
        text.split('/')
            .scan(0_i32, |depth, component| {
                *depth += match component {
                    "" | "." => 0,
                    ".." => -1,
                    _ => 1,
                };
                Some(*depth)
            })
            .any(|depth| depth < 0)
    }

    proptest! {
        #[test]
        fn normal_form_is_clean_and_stays(text in "(/?(\\.|\\.\\.|a|b|c\\.d|\\.e)?){1,10}") {
            match NormalPath::new(&text) {
                Ok(normal) => {
                    prop_assert!(!climbs_out(&text));
                    prop_assert_eq!(&NormalPath::new(normal.as_str()).unwrap(), &normal);
                    prop_assert_eq!(normal.as_str().starts_with('/'), text.starts_with('/'));
                    let inner = normal.as_str().strip_prefix('/').unwrap_or(normal.as_str());
                    let clean = |c: &str| !matches!(c, "" | "." | "..");
                    prop_assert!(matches!(inner, "" | ".") || inner.split('/').all(clean), "{}", normal.as_str());
                }
                Err(PathError::Empty) => prop_assert!(text.is_empty()),
                Err(error) => {
                    let climbed = matches!(error, PathError::ClimbsOut { .. });
                    prop_assert!(climbed && climbs_out(&text));
                }
            }
        }

        #[test]
        fn detours_do_not_change_the_place(parts in prop::collection::vec("[a-c]{1,2}", 1..6), detour in "[a-c]{1,2}", at in 0..6_usize) {
            let plain = NormalPath::new(&parts.join("/")).unwrap();
            let at = at.min(parts.len());
            for insert in [vec!["."], vec![""], vec![detour.as_str(), ".."]] {
                let mut longer: Vec<&str> = parts.iter().map(String::as_str).collect();
                // An empty component at the very start would make the path absolute.
                let at = if insert == [""] { at.max(1) } else { at };
                longer.splice(at..at, insert);
                prop_assert_eq!(&NormalPath::new(&longer.join("/")).unwrap(), &plain);
            }
        }
    }
}
