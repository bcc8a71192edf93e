//! When a short number or id in prose names something.
//!
//! `13` in "the 13 newest invoices" counts, in "file 13" it names. Only a name makes a value given.
//! The words below are English and few on purpose: what they miss is not given, and quoting a value,
//! writing `#13` or `id: 13` works in every language.

use super::super::token::Token;

/// Words that are followed by the name of what they mean. Compared without case and plural `s`.
const NAMING_WORDS: &[&str] = &[
    "account",
    "article",
    "booking",
    "branch",
    "build",
    "calendar",
    "card",
    "case",
    "channel",
    "chat",
    "client",
    "commit",
    "contract",
    "conversation",
    "customer",
    "device",
    "document",
    "employee",
    "entry",
    "event",
    "file",
    "flight",
    "folder",
    "group",
    "host",
    "id",
    "identifier",
    "invoice",
    "issue",
    "item",
    "job",
    "key",
    "line",
    "listing",
    "member",
    "merchant",
    "message",
    "mr",
    "node",
    "note",
    "number",
    "object",
    "offer",
    "order",
    "page",
    "patient",
    "payment",
    "pipeline",
    "port",
    "pr",
    "process",
    "product",
    "project",
    "record",
    "ref",
    "reference",
    "release",
    "request",
    "reservation",
    "revision",
    "room",
    "row",
    "run",
    "server",
    "session",
    "shipment",
    "station",
    "step",
    "subscription",
    "table",
    "task",
    "thread",
    "ticket",
    "track",
    "transaction",
    "user",
    "version",
    "volume",
    "zone",
];

/// Words that may follow a name without making a count of it: "file 13 from the archive" names one
/// file, "file 13 reports" asks for thirteen of them.
const FOLLOWING_WORDS: &[&str] = &[
    "after", "again", "and", "are", "as", "at", "because", "before", "belongs", "but", "by", "can",
    "contains", "for", "from", "had", "has", "if", "in", "into", "is", "now", "of", "off", "on",
    "or", "out", "over", "please", "should", "since", "so", "that", "then", "to", "today",
    "tomorrow", "under", "unless", "until", "up", "using", "via", "was", "were", "when", "where",
    "which", "while", "who", "will", "with", "without",
];

/// Signs and abbreviations that stand before a number.
const NAMING_SIGNS: &[&str] = &["#", "no.", "nr.", "№", "id:", "id=", "n°"];

/// Currencies, as codes and words.
const CURRENCIES: &[&str] = &[
    "aud", "brl", "cad", "chf", "cny", "czk", "dkk", "dollar", "dollars", "eur", "euro", "euros",
    "gbp", "huf", "inr", "jpy", "krw", "mxn", "nok", "nzd", "pln", "pound", "pounds", "ron", "rub",
    "sek", "sgd", "try", "usd", "yen", "zar",
];

/// Whether a word says that what follows is named by it.
pub(super) fn is_naming_word(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let singular = word.strip_suffix('s').unwrap_or(&word);
    NAMING_WORDS.contains(&word.as_str()) || NAMING_WORDS.contains(&singular)
}

/// Whether the token at `at` names something. `named` says which earlier tokens do.
pub(super) fn names(tokens: &[Token<'_>], at: usize, named: &[bool]) -> bool {
    is_introduced(tokens, at, named) && is_not_a_count(tokens, at)
}

fn is_introduced(tokens: &[Token<'_>], at: usize, named: &[bool]) -> bool {
    if tokens[at].assigned {
        return true;
    }
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    let previous = &tokens[before];
    let raw = previous.raw.to_ascii_lowercase();
    if NAMING_SIGNS.contains(&raw.as_str()) || raw.ends_with([':', '=']) {
        return true;
    }
    // "files 13, 14 and 15"
    let joins = matches!(raw.as_str(), "and" | "or" | "&");
    let listed = |index: usize| named.get(index).copied().unwrap_or_default();
    if joins {
        return before.checked_sub(1).is_some_and(listed);
    }
    if raw.ends_with(',') {
        return listed(before);
    }
    !previous.closes() && is_naming_word(previous.core)
}

fn is_not_a_count(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(next) = tokens.get(at + 1) else {
        return true;
    };
    let next_is_word = next.raw.starts_with(char::is_alphabetic);
    tokens[at].closes()
        || !next_is_word
        || FOLLOWING_WORDS.contains(&next.core.to_ascii_lowercase().as_str())
}

/// Whether the number at `at` is a sum of money: a currency stands on either side.
pub(super) fn is_money(tokens: &[Token<'_>], at: usize) -> bool {
    let is_currency =
        |token: &Token<'_>| CURRENCIES.contains(&token.core.to_ascii_lowercase().as_str());
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    before.is_some_and(|token| !token.closes() && is_currency(token))
        || (!tokens[at].closes() && tokens.get(at + 1).is_some_and(is_currency))
}

#[cfg(test)]
mod tests {
    use super::super::super::token::tokens;
    use super::*;

    fn named(text: &str) -> Vec<&str> {
        let tokens: Vec<_> = tokens(text).collect();
        let mut given = Vec::new();
        for at in 0..tokens.len() {
            let is_number = tokens[at].core.bytes().all(|b| b.is_ascii_digit());
            let yes = is_number && names(&tokens, at, &given);
            given.push(yes);
        }
        std::iter::zip(&tokens, given)
            .filter_map(|(token, given)| given.then_some(token.core))
            .collect()
    }

    #[test]
    fn numbers_that_name() {
        for (text, expected) in [
            ("delete file 13", vec!["13"]),
            ("delete file 13 from the archive", vec!["13"]),
            ("with ID: 13, please", vec!["13"]),
            ("files 13, 14 and 15.", vec!["13", "14", "15"]),
            ("No. 13 (the old one)", vec!["13"]),
            ("ticket 13 and the rest", vec!["13"]),
            ("(file 13)", vec!["13"]),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_that_count_or_date() {
        for text in [
            "the 13 newest invoices",
            "file 13 reports",
            "run 13 tests",
            "on May 13, 2024",
            "in 13 days",
            "at 13",
            "13 and 14",
            "order 13 pizzas",
            "the last file. 13 of them",
            "13",
        ] {
            assert_eq!(named(text), Vec::<&str>::new(), "{text}");
        }
    }
}
