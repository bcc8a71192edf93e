//! Bearer tokens: 256 random bits behind a word that says what they are, shown once and kept as a hash.

use std::fmt;

use lodestar_core::digest::{Digest, sha256};

/// What a token starts with, so that whoever finds one knows what it opens.
pub const PREFIX: &str = "lsgw_";

/// A token, in the clear. Printing it says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl TokenText {
    /// A token of these random bytes.
    pub fn from_bytes(random: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", Digest::from_bytes(random)))
    }

    /// Reads a token as it is shown; what has another form is none, whoever made it.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        let _: Digest = digits.parse().ok()?;
        Some(Self(text.to_owned()))
    }

    /// What is kept of it.
    pub fn hash(&self) -> Digest {
        sha256(self.0.as_bytes())
    }

    /// The token itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_never_prints() {
        let token = TokenText::from_bytes([7; 32]);
        assert_eq!(TokenText::parse(token.expose()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "TokenText(…)");
        assert_eq!(token.expose().len(), PREFIX.len() + 64);
    }

    #[test]
    fn what_has_another_form_is_no_token() {
        for text in [
            "",
            "lsgw_",
            &"a".repeat(64),
            &format!("lsgw_{}", "A".repeat(64)),
            &format!("lsgw_{} ", "a".repeat(64)),
            &format!("lsgw_{}", "a".repeat(63)),
        ] {
            assert_eq!(TokenText::parse(text), None, "{text}");
        }
    }
}
