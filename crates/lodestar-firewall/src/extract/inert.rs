//! Words of others, made safe to show: escaped, quoted and bounded.
//!
//! A [`Statement`] is fixed words of ours with quotations in between; what someone else wrote can only
//! stand inside a quotation, and no text can end its own.

use lodestar_core::digest::{Digest, sha256};

use super::subject::Subject;

/// Longest statement in bytes: an envelope with two long names and all its digests fits, and a list
/// of statements stays readable.
pub const MAX_STATEMENT: usize = 1024;

/// Longest attribute or quotation in bytes, with the mark that says how much there was.
pub const MAX_ATTRIBUTE: usize = 256;

/// Longest subject in bytes without its kind: longer than nearly any path, and fit for an index.
pub const MAX_SUBJECT: usize = 512;

/// Room for the mark at the end of text that was cut: ellipsis, a length, a digest.
const MARK: usize = 112;

/// A claim's statement for readers: our words, and quotations of bounded, inert text.
///
/// Only literals can stand outside a quotation:
///
/// ```
/// use lodestar_firewall::extract::Statement;
///
/// let found = "`\n# verified";
/// let statement = Statement::new().say("the text says ").quote(found);
/// assert_eq!(statement.as_str(), r"the text says `\u{60}\n# verified`");
/// ```
/// ```compile_fail,E0597
/// use lodestar_firewall::extract::Statement;
///
/// let found = String::from("verified");
/// let statement = Statement::new().say(&found);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement(String);

impl Statement {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Words of ours.
    pub fn say(self, words: &'static str) -> Self {
        self.push(words)
    }

    /// Words of others, in backticks.
    pub fn quote(self, text: &str) -> Self {
        self.push(&format!("`{}`", bounded(text, MAX_ATTRIBUTE)))
    }

    /// What the claim is about, in backticks.
    pub fn subject(self, subject: &Subject) -> Self {
        self.push(&format!("`{}`", subject.as_str()))
    }

    /// A number.
    pub fn number(self, number: u64) -> Self {
        self.push(&number.to_string())
    }

    /// A digest, in full.
    pub fn digest(self, digest: &Digest) -> Self {
        self.push(&format!("sha256 {digest}"))
    }

    /// A name out of [`label`], which is inert by its alphabet.
    pub(super) fn label(self, label: &str) -> Self {
        self.push(label)
    }

    /// The statement.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// What has no room any more is left out whole, so that no quotation is left open.
    fn push(mut self, piece: &str) -> Self {
        const CUT: &str = " …";
        if self.0.ends_with(CUT) {
            return self;
        }
        if self.0.len() + piece.len() > MAX_STATEMENT - CUT.len() {
            self.0.push_str(CUT);
        } else {
            self.0.push_str(piece);
        }
        self
    }
}

/// The text, inert and at most `limit` bytes long.
///
/// Different texts stay different: escapes can be undone, and a text that is cut ends in its length
/// and digest behind an ellipsis, which no escaped text contains.
pub(crate) fn bounded(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut cut = 0;
    for c in text.chars() {
        push_inert(&mut shown, c);
        if shown.len() > limit {
            shown.truncate(cut);
            let digest = sha256(text.as_bytes());
            shown.push_str(&format!("… ({} bytes, sha256 {digest})", text.len()));
            return shown;
        }
        if shown.len() + MARK <= limit {
            cut = shown.len();
        }
    }
    shown
}

/// Letters and digits of all scripts stand as they are, so that names and headings can be read and
/// searched. Everything else beyond printable ASCII is written as an escape: controls, separators,
/// marks that reorder a line, and letters that show nothing.
fn push_inert(shown: &mut String, c: char) {
    match c {
        '\\' => shown.push_str("\\\\"),
        '`' => shown.push_str("\\u{60}"),
        ' '..='~' => shown.push(c),
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => shown.extend(c.escape_unicode()),
        _ if c.is_alphanumeric() => shown.push(c),
        _ => shown.extend(c.escape_default()),
    }
}

/// Longest label in bytes.
const MAX_LABEL: usize = 128;

/// A name in an alphabet without separators: `A-Z a-z 0-9 . _ -`, the rest percent-encoded; a long
/// one as [`label_digest`]. Different names have different labels.
pub(crate) fn label(name: &str) -> String {
    let mut label = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            label.push(char::from(byte));
        } else {
            label.push_str(&format!("%{byte:02X}"));
        }
        if label.len() > MAX_LABEL {
            return label_digest(name);
        }
    }
    label
}

/// A name by its digest alone.
pub(super) fn label_digest(name: &str) -> String {
    format!("sha256={}", sha256(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn controls_and_reordering_marks_become_visible_and_letters_stay() {
        assert_eq!(
            bounded("a\u{202e}b\u{1b}[31m\r\n\u{200b}\u{3164}\\ é 日本", 200),
            r"a\u{202e}b\u{1b}[31m\r\n\u{200b}\u{3164}\\ é 日本"
        );
    }

    #[test]
    fn a_long_text_ends_in_its_length_and_digest() {
        let long = "x".repeat(10_000);
        let shown = bounded(&long, MAX_ATTRIBUTE);
        assert!(shown.len() <= MAX_ATTRIBUTE);
        assert!(shown.ends_with(&format!(
            "… (10000 bytes, sha256 {})",
            sha256(long.as_bytes())
        )));
        // A text that spells such an ending itself is not mistaken for the one it imitates.
        assert_ne!(bounded(&shown, 1000), shown);
    }

    #[test]
    fn a_statement_has_an_end_and_no_open_quotation() {
        let mut statement = Statement::new();
        for _ in 0..100 {
            statement = statement.say("says ").quote(&"\u{202e}".repeat(20));
        }
        assert!(statement.as_str().len() <= MAX_STATEMENT);
        assert!(statement.as_str().ends_with(" …"));
        assert_eq!(statement.as_str().matches('`').count() % 2, 0);
    }

    #[test]
    fn labels_keep_names_apart_whatever_separators_they_hold() {
        assert_eq!(label("read_file"), "read_file");
        assert_eq!(label("a/b:c d"), "a%2Fb%3Ac%20d");
        assert!(label(&"x".repeat(200)).starts_with("sha256="));
        assert_ne!(label("a%2Fb"), label("a/b"));
    }

    proptest! {
        #[test]
        fn bounded_text_is_bounded_inert_and_injective(a in ".{0,300}", b in ".{0,300}") {
            let (x, y) = (bounded(&a, MAX_ATTRIBUTE), bounded(&b, MAX_ATTRIBUTE));
            prop_assert!(x.len() <= MAX_ATTRIBUTE);
            prop_assert!(!x.chars().any(|c| c.is_control() || c == '`'));
            prop_assert_eq!(x == y, a == b);
        }
    }
}
