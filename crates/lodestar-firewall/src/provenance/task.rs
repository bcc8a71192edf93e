//! Which values a task statement gives.
//!
//! A task is prose, and prose mentions more than it gives. What counts as given is what the operator
//! wrote as a value: something whose form says so (an address, a URL, a path, an account, a word with
//! signs or digits that prose does not have), something set apart (quoted, behind `=`, `#` or `@`, a
//! list item, the whole of a `name: value` line), or a number that is named ("file 13"). A plain word
//! or a short number inside a sentence is only mentioned: an equal argument stays untrusted, and the
//! answer says that the word stands in the task.

mod groups;
mod naming;
mod quotes;

pub(super) use groups::groups;

use std::ops::Range;

use groups::is_attached;
use naming::{is_money, is_naming_word, names};

use super::kind::{ValueKind, classify};
use super::token::{Token, tokens};
use super::trusted::TELLING_DIGITS;

/// Shortest word with a digit that is given without being named, in characters. `Q3` and `A4` are
/// words of prose; `PR-7` is somebody's id.
const TELLING_ID: usize = 4;

/// Shortest sum of money without decimals that is given, in digits: a price of 13 must not make the
/// file id 13 given.
const TELLING_SUM: usize = 3;

/// Names and schemes that stand before an address without a space.
const MAIL_NAMES: &[&str] = &[
    "mailto:", "tel:", "to:", "cc:", "bcc:", "from:", "mail:", "email:", "phone:",
];

/// What a task has to say, as pieces of its text.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// Values that it gives.
    pub(super) values: Vec<&'a str>,
    /// Words that it only mentions.
    pub(super) words: Vec<&'a str>,
}

/// Finds the values of a task statement.
pub(super) fn scan(text: &str) -> Found<'_> {
    let mut found = Found::default();
    found.give(text.trim());
    for line in text.lines() {
        found.line(line);
    }
    let mut at = 0;
    for quotation in quotes::quotations(text) {
        found.prose(text, at..quotation.outer.start);
        found.quoted(&text[quotation.inner]);
        at = quotation.outer.end;
    }
    found.prose(text, at..text.len());
    found
}

impl<'a> Found<'a> {
    fn give(&mut self, value: &'a str) {
        if !value.is_empty() {
            self.values.push(value);
        }
    }

    /// A list item is a value, and so is what stands behind a name on its own line.
    fn line(&mut self, line: &'a str) {
        let item = list_item(line);
        if let Some(item) = item {
            self.give(item);
        }
        if let Some(value) = named_line(item.unwrap_or(line)) {
            self.give(value);
        }
    }

    /// A quotation is one value. Its words are not values of their own (`"My Documents/a.txt"` does
    /// not give `Documents/a.txt`), save those that their own grammar delimits.
    fn quoted(&mut self, inner: &'a str) {
        self.give(inner);
        let words: Vec<_> = tokens(inner).collect();
        let ranges = words.iter().map(|word| word.range.clone());
        let grouped = groups(inner, &words);
        for range in ranges.chain(grouped.into_iter().filter_map(|group| group.range)) {
            let value = &inner[range];
            if classify(value).kind.delimits_itself() {
                self.give(value);
            }
        }
    }

    /// The text between two quotations.
    fn prose(&mut self, whole: &'a str, range: Range<usize>) {
        let text = &whole[range.clone()];
        let words: Vec<_> = tokens(text).collect();
        let mut grouped = vec![false; words.len()];
        for group in groups(text, &words) {
            grouped[group.tokens].fill(true);
            if let Some(range) = group.range {
                self.give(&text[range]);
            }
        }
        // Which words are names by the words before them; a list goes on behind one.
        let mut named = Vec::with_capacity(words.len());
        for at in 0..words.len() {
            let joined = |index: usize| words[index].raw.ends_with('\\');
            let escaped = joined(at) || at.checked_sub(1).is_some_and(joined);
            let quoted_on = at + 1 == words.len()
                && range.end < whole.len()
                && !text.ends_with(char::is_whitespace);
            let quoted_off = at == 0 && range.start > 0 && text.starts_with(is_part_of_word);
            let piece = escaped || quoted_on || quoted_off || is_attached(&words, at);
            let skipped = grouped[at] || piece || words[at].core.is_empty();
            named.push(!skipped && has_digit(words[at].core) && names(&words, at, &named));
            if skipped {
                continue;
            }
            let before = self.values.len();
            self.word(&words, at, named[at]);
            if self.values.len() == before {
                self.words.push(words[at].core);
            }
        }
    }

    fn word(&mut self, words: &[Token<'a>], at: usize, named: bool) {
        let core = words[at].core;
        if !core.contains(char::is_alphanumeric) {
            return;
        }
        let kind = classify(core).kind;
        if kind.is_address() && kind != ValueKind::Path {
            return self.give(core);
        }
        if self.wrapped(core) || self.assigned(core) {
            return;
        }
        if is_number(core) {
            let sum = is_money(words, at) && core.len() >= TELLING_SUM;
            if core.len() >= TELLING_DIGITS || sum || named {
                self.give(core);
            }
        } else if let Some(sum) = sum_of_money(core) {
            self.give(core);
            self.give(sum);
        } else if has_digit(core) {
            if named || core.chars().count() >= TELLING_ID || is_decimal(core) {
                self.give(core);
            }
        } else if !is_prose(core) {
            self.give(core);
        }
    }

    /// An address inside something that cannot be a part of it.
    fn wrapped(&mut self, core: &'a str) -> bool {
        let kind_of = |text: &str| classify(text).kind;
        let link = core
            .split_once("](")
            .and_then(|(_, inner)| inner.strip_suffix(')'))
            .filter(|inner| kind_of(inner).is_address());
        let schemed = MAIL_NAMES
            .iter()
            .find_map(|scheme| core.strip_prefix(scheme))
            .filter(|inner| matches!(kind_of(inner), ValueKind::Email | ValueKind::Phone));
        let owned = ["'s", "’s"]
            .iter()
            .find_map(|genitive| core.strip_suffix(genitive))
            .filter(|inner| matches!(kind_of(inner), ValueKind::Email | ValueKind::Host));
        if let Some(inner) = link.or(schemed).or(owned) {
            self.give(inner);
            return true;
        }
        let list: Vec<&str> = core.split([',', ';']).collect();
        let is_list = list.len() > 1 && list.iter().all(|item| kind_of(item) == ValueKind::Email);
        // What no address has in it stands around whole ones. A URL may be written with any letter
        // and sign outside ASCII, an e-mail address with letters only.
        let kinds = |item: &&str| item.len() < core.len() && kind_of(item).delimits_itself();
        let tagged = core.split(['<', '>', '"']).filter(kinds);
        let dashed = core
            .split(|c: char| !c.is_ascii() && !c.is_alphanumeric())
            .filter(kinds)
            .filter(|item| kind_of(item) != ValueKind::Url);
        let apart = tagged.chain(dashed);
        let found: Vec<&str> = if is_list { list } else { apart.collect() };
        found.iter().for_each(|item| self.give(item));
        !found.is_empty()
    }

    /// `name=value`, `id:13`, `#channel`, `@person`: the sign says that this is a value.
    fn assigned(&mut self, core: &'a str) -> bool {
        let named = core
            .split_once('=')
            .filter(|(name, _)| is_name(name))
            .or_else(|| {
                core.split_once(':')
                    .filter(|(name, _)| is_naming_word(name))
            })
            .map(|(_, value)| value);
        let called = core.strip_prefix(['#', '@']).filter(|rest| is_name(rest));
        let Some(value) = named
            .or(called)
            .filter(|value| value.chars().any(char::is_alphanumeric))
        else {
            return false;
        };
        self.give(core);
        self.give(value);
        true
    }
}

/// Whether a character directly behind a quotation goes on with it, as in `"my dir"/a.txt`.
fn is_part_of_word(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, ':' | ',' | ';' | '=' | '.' | '!' | '?' | ')' | ']' | '}')
}

/// What follows the mark of a list item.
fn list_item(line: &str) -> Option<&str> {
    let line = line.trim();
    let (mark, item) = line.split_once(char::is_whitespace)?;
    let numbered = mark
        .strip_suffix(['.', ')'])
        .is_some_and(|number| is_number(number) && number.len() <= 3);
    (numbered || matches!(mark, "-" | "*" | "+" | "•" | "–")).then(|| item.trim())
}

/// What follows a short name and a colon, to the end of the line.
fn named_line(line: &str) -> Option<&str> {
    let (name, value) = line.trim().split_once(':')?;
    let short = name.split_whitespace().count() <= 3 && name.len() <= 40;
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-'));
    (short && plain && !name.is_empty() && value.starts_with(char::is_whitespace))
        .then(|| value.trim())
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_decimal(text: &str) -> bool {
    text.split_once(['.', ','])
        .is_some_and(|(whole, fraction)| is_number(whole) && is_number(fraction))
}

/// The number of a word such as `$98.70` or `250€`.
fn sum_of_money(core: &str) -> Option<&str> {
    const SIGNS: [char; 5] = ['$', '€', '£', '¥', '₹'];
    let sum = core
        .strip_prefix(SIGNS)
        .or_else(|| core.strip_suffix(SIGNS))?;
    (is_decimal(sum) || (is_number(sum) && sum.len() >= TELLING_SUM)).then_some(sum)
}

/// A name as programs and people write it, without signs.
fn is_name(text: &str) -> bool {
    let text = text.trim_start_matches('-');
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// A word as prose has them: no sign of ASCII but hyphen and apostrophe makes a value of it.
fn is_prose(core: &str) -> bool {
    !core.contains(|c: char| c.is_ascii_punctuation() && !matches!(c, '-' | '\''))
}

#[cfg(test)]
mod tests;
