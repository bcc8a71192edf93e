//! Quotations in a text: what someone set apart as one value.

use std::ops::Range;

/// Quotation marks. The straight ones are their own partners.
const MARKS: &[(char, char)] = &[
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('“', '”'),
    ('„', '“'),
    ('‘', '’'),
    ('‚', '‘'),
    ('«', '»'),
    ('»', '«'),
    ('‹', '›'),
    ('「', '」'),
    ('『', '』'),
];

/// Longest quotation in bytes; a closing mark further away is more likely a stray one.
const MAX_LEN: usize = 1024;

/// A quoted text.
pub(super) struct Quotation {
    /// With its marks.
    pub(super) outer: Range<usize>,
    /// Without them.
    pub(super) inner: Range<usize>,
}

/// The quotations of a text, in order and apart from each other.
///
/// A mark opens only at the beginning of a word and closes only at the end of one, so that the
/// apostrophes of `don't … can't` quote nothing. A quotation ends on the line it began on.
pub(super) fn quotations(text: &str) -> Vec<Quotation> {
    let mut found = Vec::new();
    let mut previous = ' ';
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let start = at + c.len_utf8();
        let quoted = (!previous.is_alphanumeric())
            .then(|| closing(&text[start..], c))
            .flatten();
        previous = c;
        at = match quoted {
            Some((len, mark)) => {
                let end = start + len;
                let outer = at..end + mark.len_utf8();
                let resume = outer.end;
                found.push(Quotation {
                    outer,
                    inner: start..end,
                });
                resume
            }
            None => start,
        };
    }
    found
}

/// How long the quotation is that the mark `open` begins, and the mark that ends it.
fn closing(rest: &str, open: char) -> Option<(usize, char)> {
    let &(_, close) = MARKS.iter().find(|(mark, _)| *mark == open)?;
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        if c == '\n' || at > MAX_LEN {
            return None;
        }
        let after = rest[at + c.len_utf8()..].chars().next();
        let word_ends = !before.is_whitespace() && !after.is_some_and(char::is_alphanumeric);
        if c == close && word_ends && at > 0 {
            let spaced = rest.starts_with(char::is_whitespace);
            return (!spaced).then_some((at, close));
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> Vec<&str> {
        quotations(text)
            .into_iter()
            .map(|quotation| &text[quotation.inner])
            .collect()
    }

    #[test]
    fn marks_of_many_tongues_set_a_value_apart() {
        for text in [
            r#"delete "Q3 report" now"#,
            "delete 'Q3 report'.",
            "delete `Q3 report`",
            "delete “Q3 report”",
            "lösche „Q3 report“ jetzt",
            "« x » «Q3 report»",
            "(\"Q3 report\")",
            "name=\"Q3 report\"",
        ] {
            assert_eq!(quoted(text), ["Q3 report"], "{text}");
        }
        assert_eq!(quoted(r#"{"to":"anna","n":"#), ["to", "anna", "n"]);
    }

    #[test]
    fn apostrophes_inches_and_stray_marks_quote_nothing() {
        for text in [
            "don't say it can't",
            "the users' files and the teams' files",
            "a 5\" and a 6\" pipe",
            "\"open",
            "\"a\nb\"",
            "\" spaced \"",
            "''",
            "a\"b\"c",
        ] {
            assert_eq!(quoted(text), Vec::<&str>::new(), "{text}");
        }
        assert_eq!(quoted("'don't touch it'"), ["don't touch it"]);
    }
}
