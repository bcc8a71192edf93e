//! The loose form of a text: its letters and digits, nothing else, look-alikes made equal.
//!
//! Case, spacing, punctuation, invisible characters and letters borrowed from another script all
//! vanish, so the loose form finds a value again that was changed in small ways. It serves only to
//! explain where a value may have come from; nothing is trusted for having the same loose form.

use super::kind::is_invisible;

/// Letters of other scripts beside the Latin letter they look like.
const LOOK_ALIKES: &[(char, char)] = &[
    ('а', 'a'),
    ('в', 'b'),
    ('с', 'c'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('һ', 'h'),
    ('н', 'h'),
    ('і', 'i'),
    ('ј', 'j'),
    ('к', 'k'),
    ('ӏ', 'l'),
    ('м', 'm'),
    ('о', 'o'),
    ('р', 'p'),
    ('ԛ', 'q'),
    ('ѕ', 's'),
    ('т', 't'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('у', 'y'),
    ('α', 'a'),
    ('β', 'b'),
    ('ε', 'e'),
    ('η', 'n'),
    ('ι', 'i'),
    ('κ', 'k'),
    ('ν', 'v'),
    ('ο', 'o'),
    ('ρ', 'p'),
    ('τ', 't'),
    ('υ', 'u'),
    ('χ', 'x'),
    ('ı', 'i'),
    ('ɑ', 'a'),
    ('ɡ', 'g'),
    ('ⅼ', 'l'),
];

/// The letters and digits of a text, folded.
pub(super) fn loose_chars(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(fold)
}

/// The loose form of a text.
pub(super) fn loose(text: &str) -> String {
    loose_chars(text).collect()
}

/// Whether a loose form is long enough that finding it again means something.
///
/// `1.5` and `15` have the same digits and nothing to do with each other.
pub(super) fn is_telling(loose: &str) -> bool {
    let chars = loose.chars().take(6).count();
    match loose.bytes().all(|b| b.is_ascii_digit()) {
        true => chars >= 6,
        false => chars >= 3,
    }
}

fn fold(c: char) -> Folded {
    if c.is_ascii() {
        let kept = c.is_ascii_alphanumeric().then(|| c.to_ascii_lowercase());
        return Folded::One(kept);
    }
    // Full-width forms stand in the order of ASCII.
    if let '\u{ff01}'..='\u{ff5e}' = c {
        return fold(char::from_u32(u32::from(c) - 0xff01 + 0x21).unwrap_or(c));
    }
    if is_invisible(c) || matches!(c, '\u{300}'..='\u{36f}') || !c.is_alphanumeric() {
        return Folded::One(None);
    }
    Folded::Lower(c.to_lowercase())
}

enum Folded {
    One(Option<char>),
    Lower(std::char::ToLowercase),
}

impl Iterator for Folded {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::One(c) => c.take(),
            Self::Lower(chars) => chars.next().map(latin),
        }
    }
}

fn latin(c: char) -> char {
    LOOK_ALIKES
        .iter()
        .find_map(|&(other, latin)| (other == c).then_some(latin))
        .unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_vanish() {
        for text in [
            "Anna@Corp.example",
            "a n n a @ c o r p . e x a m p l e",
            "аnna@cоrp.example",
            "ａｎｎａ＠corp.example",
            "an\u{200b}na@corp\u{ad}.example",
            "a\u{301}nna@corp.example",
            "ANNA\u{202e}@CORP.EXAMPLE",
        ] {
            assert_eq!(loose(text), "annacorpexample", "{text:?}");
        }
    }

    #[test]
    fn short_forms_tell_nothing() {
        for (text, telling) in [
            ("", false),
            ("ab", false),
            ("abc", true),
            ("13", false),
            ("20240", false),
            ("202405", true),
            ("a1", false),
            ("äöü", true),
        ] {
            assert_eq!(is_telling(text), telling, "{text}");
        }
    }
}
