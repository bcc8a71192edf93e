//! Words of a running text, without the punctuation around them.
//!
//! The cut is cautious: whitespace ends a word, brackets and sentence marks are taken off its ends,
//! and nothing is ever cut out of its middle. What is left is a whole value or none, never a piece
//! of a longer one: `https://a.example/b(c)` stays whole, and `src/*` does not become `src`.

use std::ops::Range;

use super::kind::is_invisible;

/// Brackets that may stand around a word.
const BRACKETS: &[(char, char)] = &[
    ('(', ')'),
    ('[', ']'),
    ('{', '}'),
    ('<', '>'),
    ('（', '）'),
    ('「', '」'),
    ('『', '』'),
    ('【', '】'),
    ('《', '》'),
];

/// Marks that end a sentence or a part of one.
const SENTENCE_MARKS: &[char] = &[
    '.', ',', ';', ':', '!', '?', '。', '，', '、', '；', '：', '！', '？',
];

/// Longest word that is trimmed, in bytes. What is longer is no address, and looking for brackets
/// in a word of a megabyte would take its square in time.
const MAX_TRIMMED: usize = 4096;

/// Most marks and brackets around a word; a word with more says nothing certain.
const MAX_ROUNDS: usize = 12;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// As it stands between whitespace.
    pub(super) raw: &'a str,
    /// Without the punctuation around it; empty where nothing can be told apart from it.
    pub(super) core: &'a str,
    /// Where the core stands in the text.
    pub(super) range: Range<usize>,
    /// `:` or `=` stood directly before the core: what follows is named by what came before.
    pub(super) assigned: bool,
}

impl Token<'_> {
    /// Whether a sentence mark or a bracket follows the core.
    pub(super) fn closes(&self) -> bool {
        !self.raw.ends_with(self.core) || self.core.is_empty()
    }
}

/// The words of a text, in order.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let start = at + rest.find(|c: char| !c.is_whitespace())?;
        let len = text[start..]
            .find(char::is_whitespace)
            .unwrap_or(text.len() - start);
        at = start + len;
        Some(token(&text[start..at], start))
    })
}

fn token(raw: &str, start: usize) -> Token<'_> {
    let (range, assigned) = trim(raw);
    Token {
        raw,
        core: &raw[range.clone()],
        range: start + range.start..start + range.end,
        assigned,
    }
}

/// Finds what is left of a word without what surrounds it, and whether it is assigned to a name.
fn trim(raw: &str) -> (Range<usize>, bool) {
    let mut range = 0..raw.len();
    let mut assigned = false;
    // Most words of most texts have nothing around them.
    let is_plain = raw.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain || raw.len() > MAX_TRIMMED {
        return (range, assigned);
    }
    let mut rounds = 0;
    loop {
        let core = &raw[range.clone()];
        let (front, back) = [mark, bracket, emphasis, sign]
            .into_iter()
            .map(|surrounds| surrounds(core))
            .find(|&cut| cut != (0, 0))
            .unwrap_or_default();
        if (front, back) == (0, 0) {
            break;
        }
        rounds += 1;
        if rounds > MAX_ROUNDS {
            return (0..0, false);
        }
        assigned |= core.starts_with([':', '=']) && front == 1;
        range = range.start + front..range.end - back;
    }
    // `a/...` may be a pattern, a path and an ellipsis, or a URL that was cut off: nothing certain
    // is left.
    let core = &raw[range.clone()];
    if core.ends_with(['.', '…']) || core.chars().any(is_invisible) {
        range.end = range.start;
    }
    (range, assigned)
}

/// What to take off at the front and at the back, in bytes.
type Cut = (usize, usize);

/// At most one sentence mark at the end: `./...` must not become `./`.
fn mark(core: &str) -> Cut {
    match core.strip_suffix(SENTENCE_MARKS) {
        Some(rest) if !rest.ends_with('.') => (0, core.len() - rest.len()),
        _ => (0, 0),
    }
}

/// A bracket that closes at the other end, or that has no partner inside the word.
fn bracket(core: &str) -> Cut {
    for &(open, close) in BRACKETS {
        if let Some(rest) = core.strip_prefix(open) {
            match rest.find(close) {
                None => return (open.len_utf8(), 0),
                Some(at) if at + close.len_utf8() == rest.len() => {
                    return (open.len_utf8(), close.len_utf8());
                }
                Some(_) => {}
            }
        }
        if let Some(rest) = core.strip_suffix(close)
            && rest.matches(open).count() <= rest.matches(close).count()
        {
            return (0, close.len_utf8());
        }
    }
    (0, 0)
}

/// Markdown's `**bold**`, `*stress*` and `_stress_`, only where both ends have the mark.
fn emphasis(core: &str) -> Cut {
    for mark in ["**", "__", "*", "_"] {
        if let Some(inner) = core.strip_prefix(mark).and_then(|c| c.strip_suffix(mark))
            && !inner.is_empty()
            && !inner.contains(mark)
        {
            return (mark.len(), mark.len());
        }
    }
    (0, 0)
}

/// The sign by which a value follows its name, or the comma of a list. `::1` is an address.
fn sign(core: &str) -> Cut {
    let signed = core.starts_with([':', '=', ',']) && !core.starts_with("::");
    (usize::from(signed), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(text: &str) -> Vec<&str> {
        tokens(text).map(|token| token.core).collect()
    }

    #[test]
    fn punctuation_around_words_is_taken_off() {
        for (text, expected) in [
            ("(see a/b).", vec!["see", "a/b"]),
            ("<anna@corp.example>,", vec!["anna@corp.example"]),
            ("**13**, [x]", vec!["13", "x"]),
            ("id: =13", vec!["id", "13"]),
            ("（anna@corp.example）。", vec!["anna@corp.example"]),
            ("a\u{a0}b\u{3000}c", vec!["a", "b", "c"]),
        ] {
            assert_eq!(cores(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_cut_out_of_the_middle_or_guessed_at() {
        for (text, expected) in [
            ("https://a.example/b(c)", "https://a.example/b(c)"),
            ("(a)/b", "(a)/b"),
            ("src/*", "src/*"),
            ("a/{b,c}", "a/{b,c}"),
            ("./...", ""),
            ("a/b...", ""),
            ("https://a.example/b…", ""),
            ("an\u{200b}na", ""),
            ("a))))))))))))))", ""),
            ("*", "*"),
        ] {
            assert_eq!(cores(text), [expected], "{text}");
        }
    }

    #[test]
    fn ranges_lead_back_to_the_words() {
        let text = "to: (anna@corp.example), then «x» 13.";
        for token in tokens(text) {
            assert_eq!(&text[token.range.clone()], token.core);
        }
    }
}
