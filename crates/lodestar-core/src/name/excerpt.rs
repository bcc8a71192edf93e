//! A piece of untrusted text made safe to show: printable ASCII only, and short.
//!
//! Errors carry excerpts instead of the input itself, so that no message can move a cursor, reorder
//! a line or fill a terminal, wherever it ends up being printed.

use std::fmt;

/// Longest excerpt in characters, before the marker that says how much there was.
const MAX_SHOWN: usize = 48;

/// Untrusted text, escaped and bounded.
///
/// Printable ASCII stands as it is, except `` ` `` and `\`; everything else is written as an escape.
/// A longer input ends in a marker with its full length.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Excerpt(Box<str>);

impl Excerpt {
    /// Makes an excerpt of any text.
    pub fn of(text: &str) -> Self {
        let mut shown = String::new();
        for c in text.chars() {
            let before = shown.len();
            push_inert(&mut shown, c);
            if shown.len() > MAX_SHOWN {
                shown.truncate(before);
                shown.push_str(&format!("... ({} bytes)", text.len()));
                break;
            }
        }
        Self(shown.into_boxed_str())
    }

    /// Makes an excerpt of one character.
    pub fn of_char(c: char) -> Self {
        let mut shown = String::new();
        push_inert(&mut shown, c);
        Self(shown.into_boxed_str())
    }

    /// The inert text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_inert(shown: &mut String, c: char) {
    match c {
        // A backtick would end the quotation that messages put around an excerpt.
        '`' => shown.push_str("\\u{60}"),
        '\'' | '"' => shown.push(c),
        _ => shown.extend(c.escape_default()),
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}
