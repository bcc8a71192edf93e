//! Text as PostgreSQL takes it: any character but NUL.
//!
//! NUL and the escape itself become two characters each. Bytes compare after as they did before, so
//! orders and beginnings stay what they are, and text without either character is not touched.

use std::borrow::Cow;

const ESCAPE: char = '\u{1}';

/// What goes in.
pub fn to_database(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// What came out. Text that was not written here stays as it is.
pub fn from_database(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ESCAPE) {
        plain.push_str(&rest[..at]);
        rest = &rest[at + ESCAPE.len_utf8()..];
        let (c, length) = match rest.as_bytes().first() {
            Some(b'0') => ('\0', 1),
            Some(b'1') => (ESCAPE, 1),
            _ => (ESCAPE, 0),
        };
        plain.push(c);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_nul_is_left(text in "[\0\u{1}\u{2}01aé]{0,12}") {
            let escaped = to_database(&text);
            prop_assert!(!escaped.contains('\0'));
            prop_assert_eq!(from_database(&escaped), text);
        }

        #[test]
        fn orders_and_beginnings_stay(one in "[\0\u{1}\u{2}01a]{0,5}", other in "[\0\u{1}\u{2}01a]{0,5}") {
            let (a, b) = (to_database(&one), to_database(&other));
            prop_assert_eq!(one.cmp(&other), a.cmp(&b));
            prop_assert_eq!(one.starts_with(&other), a.starts_with(b.as_ref()));
        }
    }
}
