//! Values that are written in several words: accounts, telephone numbers, long numbers.
//!
//! A group is one value. Its words are taken out of the text, so that the last four digits of a card
//! number do not become a value of their own.

use std::ops::Range;

use super::super::kind::{ValueKind, classify, iban_length};
use super::super::token::Token;

/// Letters and digits per word of a grouped IBAN.
const IBAN_GROUP: usize = 4;

/// Tokens that are one value together, and where that value stands in the text.
pub(in super::super) struct Group {
    pub(in super::super) tokens: Range<usize>,
    /// `None` where something is attached to the group, so that its ends are not certain.
    pub(in super::super) range: Option<Range<usize>>,
}

/// The groups among the words of a text, in order.
pub(in super::super) fn groups(text: &str, tokens: &[Token<'_>]) -> Vec<Group> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(Extent { end, whole }) = extent(text, tokens, at) else {
            at += 1;
            continue;
        };
        found.push(Group {
            tokens: at..end,
            range: whole.then(|| span(tokens, at..end)),
        });
        at = end;
    }
    found
}

/// How far a group goes, and whether it is certain that it is whole.
struct Extent {
    end: usize,
    whole: bool,
}

fn extent(text: &str, tokens: &[Token<'_>], at: usize) -> Option<Extent> {
    if let Some(end) = iban(text, tokens, at) {
        return Some(Extent { end, whole: true });
    }
    let end = code(tokens, at)
        .or_else(|| phone(tokens, at))
        .or_else(|| digits(tokens, at))?;
    // With a number directly before or behind them, the words are a piece of something written in
    // more words than can be told, and a piece is no value.
    if goes_on(tokens, at, end) {
        let end = end + 1;
        return Some(Extent { end, whole: false });
    }
    let whole = !began_before(tokens, at);
    (end > at + 1 || !whole).then_some(Extent { end, whole })
}

/// Whether a word goes on in the next one or began in the one before, so that it may be a piece of
/// a number that is written in several words.
pub(super) fn is_attached(tokens: &[Token<'_>], at: usize) -> bool {
    let delimited = matches!(
        classify(tokens[at].core).kind,
        ValueKind::Email | ValueKind::Url | ValueKind::Host | ValueKind::Account
    );
    let ends_open = ends_in_digit(&tokens[at]) && !is_complete(&tokens[at]);
    let begins_open = tokens[at].raw.starts_with(|c: char| c.is_ascii_digit());
    let goes_on = ends_open && goes_on(tokens, at, at + 1);
    !delimited && (goes_on || (begins_open && began_before(tokens, at)))
}

/// With or without the bracket of `(555) 123-4567`.
fn ends_in_digit(token: &Token<'_>) -> bool {
    let raw = token.raw.trim_end_matches(')');
    raw.ends_with(|c: char| c.is_ascii_digit())
}

fn began_before(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    let token = &tokens[before];
    // The bank of an IBAN is letters alone.
    let is_bank =
        token.raw.len() == IBAN_GROUP && token.raw.bytes().all(|b| b.is_ascii_uppercase());
    (ends_in_digit(token) && !is_complete(token)) || (is_bank && began_before(tokens, before))
}

/// Whether the next word may belong to the words up to `end`.
fn goes_on(tokens: &[Token<'_>], at: usize, end: usize) -> bool {
    let last = &tokens[end - 1];
    let Some(next) = tokens.get(end).filter(|_| !last.closes()) else {
        return false;
    };
    let is_code = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
    let begins_code = |token: &Token<'_>| {
        let tail = token.raw.len().saturating_sub(IBAN_GROUP);
        token.raw.get(tail..).is_some_and(is_iban_head)
    };
    let fits = match begins_code(&tokens[at]) {
        true => next.raw.chars().take(2).all(is_code),
        false => next.raw.starts_with(|c: char| c.is_ascii_digit()),
    };
    fits && !is_complete(next)
}

/// Country and check digits.
fn is_iban_head(text: &str) -> bool {
    text.len() == IBAN_GROUP
        && text.bytes().take(2).all(|b| b.is_ascii_uppercase())
        && text.bytes().skip(2).all(|b| b.is_ascii_digit())
}

/// A number with signs of its own: a date, a time, a decimal.
fn is_complete(token: &Token<'_>) -> bool {
    const SIGNS: [char; 4] = ['-', '.', '/', ':'];
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let signs = token.core.matches(SIGNS).count();
    token.core.split(SIGNS).all(is_number)
        && (signs >= 2 || (signs == 1 && token.core.contains([':', '.'])))
}

/// From the first word to the last, with the brackets of `(555) 123-4567`.
fn span(tokens: &[Token<'_>], group: Range<usize>) -> Range<usize> {
    let (first, last) = (&tokens[group.start], &tokens[group.end - 1]);
    let bracketed = first.raw.len() == first.core.len() + 2 && first.raw.starts_with('(');
    first.range.start - usize::from(bracketed)..last.range.end
}

/// How far the words from `at` on all satisfy `fits`, with nothing but space between them.
fn run(tokens: &[Token<'_>], at: usize, fits: impl Fn(&Token<'_>) -> bool) -> usize {
    let mut end = at;
    while tokens.get(end).is_some_and(&fits) {
        end += 1;
        if tokens[end - 1].closes() && !is_area_code(&tokens[end - 1]) {
            break;
        }
    }
    end
}

fn is_area_code(token: &Token<'_>) -> bool {
    token
        .raw
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .is_some_and(|inner| inner == token.core)
}

/// An IBAN in fours; its country says how many, its check digits that it is whole.
fn iban(text: &str, tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let end = code(tokens, at)?;
    let country = tokens[at].core.get(..2)?;
    let words = iban_length(country)?.div_ceil(IBAN_GROUP);
    let range = (at + words <= end).then(|| span(tokens, at..at + words))?;
    let is_account = classify(&text[range]).kind == ValueKind::Account;
    is_account.then_some(at + words)
}

/// A code in fours that begins as an IBAN does. Without check digits: all of it or nothing.
fn code(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let begins = is_iban_head(tokens[at].core);
    let is_code = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
    let end = begins.then(|| {
        run(tokens, at, |token| {
            let core = token.core;
            (1..=IBAN_GROUP).contains(&core.len()) && core.bytes().all(is_code)
        })
    })?;
    (end > at + 1).then_some(end)
}

fn phone(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let is_dialled = |b: u8| b.is_ascii_digit() || b"()-./".contains(&b);
    let rest = tokens[at].core.strip_prefix('+')?;
    let begins = rest.starts_with(|c: char| c.is_ascii_digit()) && rest.bytes().all(is_dialled);
    if !begins || tokens[at].closes() {
        return None;
    }
    Some(run(tokens, at + 1, |token| {
        let core = token.core;
        core.bytes().any(|b| b.is_ascii_digit()) && core.bytes().all(is_dialled)
    }))
}

fn digits(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    // Two hyphens make a date, or a number that needs no further words.
    let fits = |token: &Token<'_>| {
        let core = token.core;
        core.starts_with(|c: char| c.is_ascii_digit())
            && core.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            && core.matches('-').count() < 2
    };
    let end = run(tokens, at, fits);
    (end > at).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::super::super::token::tokens;
    use super::*;

    fn grouped(text: &str) -> Vec<&str> {
        let tokens: Vec<_> = tokens(text).collect();
        groups(text, &tokens)
            .into_iter()
            .filter_map(|group| Some(&text[group.range?]))
            .collect()
    }

    #[test]
    fn a_group_with_something_attached_is_no_value_and_neither_are_its_words() {
        for text in [
            "call +49 170 1234567... now",
            "call +49 170 1234567's owner",
            "call tel:+49 170 1234567",
            "<b>+49 170 1234567</b>",
            "pay DE89 3704 0044 0532 0130 00's owner",
            "pay US13 3000 0001 2121</b>",
            "card 4111 1111 1111 1111—now",
            "file 13 14's",
        ] {
            let words: Vec<_> = tokens(text).collect();
            let groups = groups(text, &words);
            assert!(groups.iter().all(|group| group.range.is_none()), "{text}");
            let taken: usize = groups.iter().map(|group| group.tokens.len()).sum();
            assert!(taken > 1, "{text}");
        }
    }

    #[test]
    fn a_value_in_several_words_is_one_value() {
        for (text, expected) in [
            (
                "to DE89 3704 0044 0532 0130 00 EUR 50",
                "DE89 3704 0044 0532 0130 00",
            ),
            ("BE68 5390 0754 7034 FOR lunch", "BE68 5390 0754 7034"),
            ("US13 3000 0001 2121, now", "US13 3000 0001 2121"),
            ("card 4111 1111 1111 1111.", "4111 1111 1111 1111"),
            ("call +49 170 1234567, now", "+49 170 1234567"),
            ("call +49 (170) 1234567", "+49 (170) 1234567"),
            ("call (555) 123-4567", "(555) 123-4567"),
            ("account 1234 5678 9012", "1234 5678 9012"),
        ] {
            assert_eq!(grouped(text), [expected], "{text}");
        }
    }

    #[test]
    fn what_follows_a_piece_is_left_alone() {
        let text = "in Q3 2024 see a.txt";
        let words: Vec<_> = tokens(text).collect();
        let taken = groups(text, &words).into_iter().flat_map(|g| g.tokens);
        assert_eq!(taken.collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn numbers_in_a_row_are_no_group_when_something_stands_between() {
        for text in [
            "files 13, 14 and 15",
            "2024-05-13 2024-05-14",
            "on 2024-05-13 10:00",
            "call +491701234567",
            "13 files",
        ] {
            assert_eq!(grouped(text), Vec::<&str>::new(), "{text}");
        }
    }
}
