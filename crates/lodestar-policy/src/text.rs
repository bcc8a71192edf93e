//! Foreign text made safe to show, at full length where that has an end.

use std::fmt::Write as _;

/// Longest text in a message, in bytes, before it is cut with a marker.
const MAX_LEN: usize = 600;

/// The text on one line, with whatever could move a cursor, hide or reorder something made visible.
pub(crate) fn inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MAX_LEN));
    for c in text.chars() {
        if shown.len() >= MAX_LEN {
            let _ = write!(shown, "... ({} bytes)", text.len());
            break;
        }
        push_inert(&mut shown, c);
    }
    shown
}

/// One line of a source, column by column: each character stays one, or becomes an escape.
pub(crate) fn push_inert(shown: &mut String, c: char) {
    match c {
        '\n' | '\t' => shown.push(' '),
        ' '..='~' => shown.push(c),
        _ if c.is_alphanumeric() => shown.push(c),
        _ => shown.extend(c.escape_unicode()),
    }
}
