//! Closed vocabularies of the store: enums whose values are words in a column.

/// Defines an enum of words with `ALL`, `as_str`, `Display`, `FromStr` and serde as that word.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word, as it stands in the database and in answers.
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
            type Err = ::lodestar_core::name::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(::lodestar_core::name::UnknownWord {
                        what: $what,
                        expected: &[$($word),+],
                        shown: ::lodestar_core::name::Excerpt::of(text),
                    }),
                }
            }
        }
    };
}

pub(super) use words;
