//! Whatever a value of the task is glued to, no piece of it is given.

use lodestar_core::provenance::GivenSource;
use lodestar_firewall::provenance::ProvenanceIndex;
use proptest::prelude::*;
use serde_json::json;

use super::small_index;
use super::spelling::{Dice, Sort, fresh};

/// What may stand directly before and behind a value.
const BEFORE: &[&str] = &[
    "", "(", "[", "{", "<", "\"", "'", "`", "“", "x", "X", "7", "x=", "id:", "tel:", "iban=", "#",
    "@", "/", "./", "\\", "—", "<b>", "](", "](x ", "**", "_", "$", "+", "-", ".", ",", ":", "=",
    "12 ", "A4 ", "AB12 ", "x\\ ", "file ", "file 7, ", "no. ", "EUR ",
];
const BEHIND: &[&str] = &[
    "", ")", "]", "}", ">", "\"", "'", "`", "”", "x", "X", "7", "=x", ":x", "'s", "’s", "/", "/*",
    "*", "\\", "—", "</b>", "](x)", "**", "_", "%", "?", "!", "...", "…", ".", ",", ";", ":",
    " 12", " 34's", " AB", " EUR 5", "\\ x", ", 8", " and 9", "@x", "(x)", "[1]", "|x",
];

const SORTS: &[Sort] = &[
    Sort::Email,
    Sort::Url,
    Sort::Host,
    Sort::Path,
    Sort::Iban,
    Sort::Card,
    Sort::Phone,
    Sort::Uuid,
    Sort::Id,
    Sort::LongNumber,
];

fn is_given(index: &ProvenanceIndex, text: &str) -> bool {
    index.explain(&json!(text)).remove(0).label.is_trusted()
}

/// The letters and digits of a text, by which a piece differs from the whole.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Beginnings and ends of a value that lack at least one letter or digit of it: cut at every sign
/// and at some places between two letters.
fn pieces(value: &str) -> Vec<&str> {
    let is_sign = |at: usize| !value.as_bytes()[at].is_ascii_alphanumeric();
    let cuts = (1..value.len()).filter(|&at| is_sign(at) || is_sign(at - 1) || at % 5 == 0);
    cuts.flat_map(|at| [&value[..at], &value[at..]])
        .filter(|piece| letters(piece).len() < letters(value).len())
        .filter(|piece| letters(piece).len() > 1)
        .collect()
}

fn in_fours(text: &str) -> String {
    let groups: Vec<&[u8]> = text.as_bytes().chunks(4).collect();
    let groups: Vec<&str> = groups.iter().map(|g| str::from_utf8(g).unwrap()).collect();
    groups.join(" ")
}

#[test]
fn no_piece_of_a_value_is_given_whatever_it_is_glued_to() {
    let dice = &mut Dice(1);
    let mut values: Vec<String> = SORTS.iter().map(|&sort| fresh(dice, sort)).collect();
    values.push(in_fours(&fresh(dice, Sort::Iban)));
    values.push(in_fours(&fresh(dice, Sort::Card)));
    values.push("GB29 NWBK 6016 1331 9268 19".to_owned());
    values.push("US13 NWBK 6016 1331 92".to_owned());
    values.push("(555) 123-4567".to_owned());
    values.push("+33 1 23 45 67 89".to_owned());
    values.push("1234 5678 9012".to_owned());
    let mut asked = 0;
    let mut found = Vec::new();
    for value in &values {
        for before in BEFORE {
            for behind in BEHIND {
                let task = format!("Take care of {before}{value}{behind} as soon as possible");
                let mut index = small_index();
                index.give_task(&task, GivenSource::Task).unwrap();
                for piece in pieces(value) {
                    asked += 1;
                    if is_given(&index, piece) {
                        found.push(format!("{piece:?} of {before:?} {value:?} {behind:?}"));
                    }
                }
            }
        }
    }
    println!("{asked} pieces, {} given", found.len());
    found.truncate(60);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether a piece of a text stands somewhere in it with nothing joined to either side.
fn stands_alone(text: &str, piece: &str) -> bool {
    let begins = |c: char| c.is_whitespace() || "([{<>\"'`:=,#@*_—".contains(c);
    let ends = |c: char| c.is_whitespace() || ")]}<>\"'`.,;:!?*_—".contains(c);
    let starts = (0..text.len()).filter(|&at| text.is_char_boundary(at));
    starts
        .filter(|&at| text[at..].starts_with(piece))
        .any(|at| {
            let before = text[..at].chars().next_back();
            let behind = text[at + piece.len()..].chars().next();
            before.is_none_or(begins) && behind.is_none_or(ends)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Whatever the task looks like, what it gives stands in it apart from other words.
    #[test]
    fn what_is_given_stands_apart_in_the_task(
        task in "([a-c1-3]{1,4}[-@.:=#+&%'\"(),;—]{0,2} ?){1,8}",
    ) {
        let mut index = small_index();
        index.give_task(&task, GivenSource::Task).unwrap();
        let ends: Vec<usize> = task.char_indices().map(|(at, _)| at).chain([task.len()]).collect();
        for (n, &start) in ends.iter().enumerate() {
            for &end in ends[n + 1..].iter().take(12) {
                let piece = &task[start..end];
                let alone = stands_alone(&task, piece);
                prop_assert!(alone || !is_given(&index, piece), "{piece:?} of {task:?}");
            }
        }
    }
}
