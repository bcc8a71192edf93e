//! Closed vocabularies: enums whose values are words of the specification.
//!
//! One macro writes what each of them needs, so that the word in the log, on the command line, in an
//! error and in a document is the same word, defined beside its variant.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::Visitor;
use thiserror::Error;

use super::Excerpt;

/// A word that the vocabulary does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {what} `{shown}`; expected one of {}", quoted(.expected))]
pub struct UnknownWord {
    /// What the word was meant to name, such as `rung`.
    pub what: &'static str,
    /// The words there are.
    pub expected: &'static [&'static str],
    /// The refused input, inert.
    pub shown: Excerpt,
}

fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Reads any type that parses from text out of a JSON string, without copying the text first.
pub(crate) fn deserialize_str<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    struct Text<T>(PhantomData<T>);

    impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(PhantomData))
}

/// Defines an enum of words with `ALL`, `as_str`, `Display`, `FromStr` and serde as that word.
///
/// Order is not derived: where the order means something, the enum asks for it.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word, as it stands in logs and documents.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::name::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::name::UnknownWord {
                        what: $what,
                        expected: &[$($word),+],
                        shown: $crate::name::Excerpt::of(text),
                    }),
                }
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                $crate::name::deserialize_str(deserializer)
            }
        }
    };
}

pub(crate) use words;
