//! Every small edit of a given value, and a second opinion on which of them keep its meaning.

use lodestar_core::provenance::{GivenSource, Label};
use serde_json::json;

use super::small_index;

/// Characters to put in: signs that mean something somewhere, look-alikes, invisible ones.
const INSERTED: &[char] = &[
    'a', 'A', 'x', '0', '1', '.', ',', '-', '_', '/', '\\', '@', ':', '?', '#', '%', '+', '&', '=',
    '~', '*', '(', ')', '[', ']', '<', '>', '"', '\'', '`', ' ', '\t', '\n', '\0', '\u{a0}',
    '\u{ad}', '\u{200b}', '\u{202e}', '\u{301}', '\u{feff}', 'а', 'е', 'о', '＠', '．', 'ａ', '０',
    '\u{2044}', '。',
];

/// All texts that are one insertion, deletion, replacement or swap away.
fn edits(value: &str) -> Vec<String> {
    let chars: Vec<char> = value.chars().collect();
    let mut edits = Vec::new();
    for at in 0..=chars.len() {
        for &c in INSERTED {
            let mut longer = chars.clone();
            longer.insert(at, c);
            edits.push(longer);
        }
        if at == chars.len() {
            continue;
        }
        let mut shorter = chars.clone();
        shorter.remove(at);
        edits.push(shorter);
        for &c in INSERTED {
            let mut other = chars.clone();
            other[at] = c;
            edits.push(other);
        }
        let mut flipped = chars.clone();
        flipped[at] = match chars[at].is_ascii_lowercase() {
            true => chars[at].to_ascii_uppercase(),
            false => chars[at].to_ascii_lowercase(),
        };
        edits.push(flipped);
        if at + 1 < chars.len() {
            let mut swapped = chars.clone();
            swapped.swap(at, at + 1);
            edits.push(swapped);
        }
    }
    edits.into_iter().map(String::from_iter).collect()
}

/// Holds every edit of a value against what `same` says about it; returns how many there were.
fn hold(value: &str, same: impl Fn(&str) -> bool) -> usize {
    let mut index = small_index();
    index
        .give_task(&format!("Take \"{value}\" now"), GivenSource::Task)
        .unwrap();
    let edits = edits(value);
    for edit in &edits {
        let label = index.explain(&json!(edit)).remove(0).label;
        let given = matches!(label, Label::Given { .. });
        assert_eq!(given, same(edit), "{value:?} edited to {edit:?}: {label:?}");
    }
    edits.len()
}

/// Equal but for the case of what follows `prefix`.
fn same_after(prefix: &str, value: &str) -> impl Fn(&str) -> bool {
    let (prefix, rest) = (
        prefix.to_owned(),
        value.strip_prefix(prefix).unwrap().to_owned(),
    );
    move |edit| {
        edit.strip_prefix(prefix.as_str())
            .is_some_and(|other| other.eq_ignore_ascii_case(&rest))
    }
}

#[test]
fn no_edit_of_a_given_value_is_given_unless_it_means_the_same() {
    let email = "anna.b@corp.example";
    let mut edited = hold(email, same_after("anna.b@", email));
    edited += hold("corp-1.example", |edit| {
        edit.eq_ignore_ascii_case("corp-1.example")
    });
    let path = "src/auth/a.rs";
    edited += hold(path, |edit| {
        let spellings = ["src//auth/a.rs", "src/auth//a.rs", "src/auth/a.rs/", path];
        spellings.contains(&edit)
    });
    edited += hold("/etc/x.conf", |edit| {
        ["/etc/x.conf", "/etc//x.conf", "/etc/x.conf/"].contains(&edit)
    });
    let iban = "DE89370400440532013000";
    edited += hold(iban, |edit| edit.eq_ignore_ascii_case(iban));
    for exact in [
        "INV-2024-0013",
        "13",
        "4711081",
        "98.70",
        "2024-05-13",
        "mark",
        "Q3 plan",
        "9f86d081884c7d65",
        "jürgen@corp.example",
        "C:\\a\\b.txt",
        "../up/a.txt",
        "git@corp.example:a.git",
    ] {
        // `a.txt/` names what `a.txt` does, and the last but one is its own only spelling.
        let slashes = |edit: &str| exact.contains('@') && edit.contains('/');
        edited += hold(exact, |edit| edit == exact && !slashes(edit));
    }
    println!("{edited} edits");
}

#[test]
fn no_edit_of_a_given_url_is_given_unless_it_means_the_same() {
    let url = "https://corp.example/a~b/c";
    let host_end = "https://corp.example".len();
    let edited = hold(url, |edit| {
        let Some((head, tail)) = edit.split_at_checked(host_end) else {
            return false;
        };
        let same_head = head.eq_ignore_ascii_case("https://corp.example");
        same_head && matches!(tail, "/a~b/c" | "/a~b/c/")
    });
    println!("{edited} edits");
}

#[test]
fn a_given_telephone_number_keeps_its_digits() {
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    let number = "+49 170 1234567";
    let mut index = small_index();
    index.give_value(number, GivenSource::Task).unwrap();
    for edit in edits(number) {
        let label = index.explain(&json!(edit)).remove(0).label;
        let plausible = edit.starts_with('+') && edit.is_ascii() && digits(&edit) == digits(number);
        assert!(plausible || !label.is_trusted(), "{edit:?}");
    }
}
