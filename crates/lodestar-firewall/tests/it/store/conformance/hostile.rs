//! Text that breaks what is not careful with it.

use lodestar_core::chain::Confidence;
use lodestar_core::id::BeliefId;
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::store::{ListQuery, Store};
use lodestar_firewall::text;

use super::super::rows::{Sketch, keys, rows};
use super::{NONE, ask, found, insert, numbers, query};

const TEXTS: [&str; 16] = [
    "",
    " ",
    "\0",
    "before\0after",
    "\0\0\u{1}\0\u{1}0\u{1}1",
    "\u{1}",
    "\u{1}0",
    "'; DROP TABLE beliefs; --",
    "\"quoted\" AND (NOT near) * ^ : - +",
    "back\\slash \\000 \\x00 %s $1 ?1",
    "line\nfeed\r\ttab\u{b}\u{7f}",
    "日本語 ελληνικά עברית हिन्दी",
    "e\u{301} \u{feff} \u{202e}reversed \u{fffd}",
    "\u{10ffff}\u{e000}\u{fdd0}",
    "🦀👩‍👩‍👧‍👦",
    "NULL",
];

fn is_genuine(row: &StoredRow) -> bool {
    keys(1).standing(row) == Standing::Genuine
}

pub(super) fn text_of_any_kind_comes_back(store: &mut dyn Store) {
    let of = |(n, text): (u64, &&str)| {
        let sketch = Sketch::new(n).says(*text).about(format!("s{text}"));
        Sketch {
            relation: (*text).to_owned(),
            ..sketch
        }
    };
    let sketches: Vec<_> = (0..).zip(&TEXTS).map(of).collect();
    let wanted: Vec<_> = sketches.iter().map(Sketch::row).collect();
    insert(store, &wanted);
    let there = store.scan(None, 99).unwrap();
    assert_eq!(there, wanted);
    assert!(there.iter().all(is_genuine));
    for (sketch, row) in sketches.iter().zip(&wanted) {
        let with_key = ask(store, |writing| writing.settled(&sketch.key(), 9));
        assert_eq!(
            with_key,
            std::slice::from_ref(row),
            "{:?}",
            sketch.statement
        );
    }
    let containing = ListQuery {
        containing: Some("E\0A".to_owned()),
        limit: 9,
        ..ListQuery::default()
    };
    assert_eq!(numbers(&store.list(&containing).unwrap()), [3]);
}

pub(super) fn huge_text_comes_back(store: &mut dyn Store) {
    // More different words than a PostgreSQL text search vector has room for.
    let words: Vec<_> = (0..160_000).map(|n| format!("word{n:x}")).collect();
    let statement = words.join(" ") + &"x".repeat(1 << 20);
    let wanted = Sketch::new(1).says(statement).row();
    insert(store, &[wanted.clone(), Sketch::new(2).row()]);
    assert_eq!(store.scan(None, 9).unwrap()[0], wanted);
    assert!(is_genuine(&wanted));
    assert_eq!(found(store, &["word0", "word1ffff"]), [1]);
    let long = "x".repeat(text::MAX_WORD);
    assert_eq!(found(store, &["stands"]), [2]);
    insert(store, &[Sketch::new(3).says("x".repeat(1_000)).row()]);
    assert_eq!(found(store, &[&long]), [3]);
}

pub(super) fn words_of_every_script_are_found(store: &mut dyn Store) {
    // Every letter and digit there is, in rows of a few hundred, each a word of its own.
    let letters: Vec<char> = ('\0'..=char::MAX).filter(|c| c.is_alphanumeric()).collect();
    let samples: Vec<char> = letters.iter().copied().step_by(97).collect();
    let ring = keys(1);
    let sketches: Vec<_> = (0..)
        .zip(samples.chunks(200))
        .map(|(n, some)| {
            let words: Vec<_> = some.iter().map(|c| format!("q{c}q {c}")).collect();
            Sketch::new(n)
                .about("file:x")
                .says(words.join(" "))
                .row_by(&ring)
        })
        .collect();
    insert(store, &sketches);
    for (n, row) in (0..).zip(&sketches) {
        let words: Vec<_> = text::indexed_words(row).into_iter().collect();
        for some in words.chunks(40) {
            let some: Vec<&str> = some.iter().map(String::as_str).collect();
            let given = found(store, &some);
            assert!(given.contains(&n), "{some:?} of {n} in {given:?}");
        }
    }
}

pub(super) fn what_is_no_word_finds_nothing(store: &mut dyn Store) {
    insert(store, &rows([1]));
    assert_eq!(found(store, &["statement"]), [1]);
    let long = "s".repeat(text::MAX_WORD + 1);
    for word in [
        "",
        " ",
        "\"",
        "'",
        "*",
        "state*",
        "\"statement\"",
        "Statement",
        "statement 1",
        "NOT x",
        "\0",
        "statement\0",
        "^statement",
        "words:statement",
        "§",
        &long,
    ] {
        assert_eq!(found(store, &[word]), NONE, "{word:?}");
        assert_eq!(found(store, &["statement", word]), NONE, "{word:?}");
    }
    let scope: Vec<String> = store.context(&query(&[])).unwrap()[0]
        .scope
        .split(':')
        .map(str::to_owned)
        .collect();
    assert_eq!(found(store, &[&scope[0]]), NONE);
}

pub(super) fn a_word_that_looks_like_syntax_is_a_word(store: &mut dyn Store) {
    insert(store, &[Sketch::new(1).says("AND or Not NEAR null").row()]);
    assert_eq!(found(store, &["and", "or", "not", "near", "null"]), [1]);
}

pub(super) fn prefixes_of_any_kind_are_harmless(store: &mut dyn Store) {
    insert(store, &rows([1, 2]));
    for text in TEXTS.iter().filter(|text| !text.is_empty()) {
        assert_eq!(store.rows_starting(text, 9).unwrap(), [], "{text:?}");
    }
    let kind = BeliefId::PREFIX;
    for end in ["%", "\\", "_*", "_%", "-"] {
        let prefix = format!("{kind}{end}");
        assert_eq!(store.rows_starting(&prefix, 9).unwrap(), [], "{prefix}");
    }
    // As bytes compare: what is below letters is before all ids.
    let inside = format!("{kind}_\0");
    let past = format!("{kind}a");
    for (text, behind) in [("\0", 2), ("a\u{1}", 2), (&inside, 2), (&past, 0), ("é", 0)] {
        assert_eq!(store.scan(Some(text), 9).unwrap().len(), behind, "{text:?}");
    }
}

pub(super) fn numbers_at_their_limits_come_back(store: &mut dyn Store) {
    let mut low = Sketch::new(1).row();
    low.key = Some(i64::MIN);
    low.confidence = 0.0;
    low.observed_at = i64::MIN;
    low.seq = 0;
    let mut high = Sketch::new(2).row();
    high.key = Some(i64::MAX);
    high.confidence = 1.0;
    high.due_at = Some(i64::MAX);
    high.changed_seq = i64::MAX;
    high.signature = vec![255; 4_096];
    high.seal = [255; 32];
    let mut odd = Sketch::new(3).row();
    odd.key = Some(0);
    odd.confidence = Confidence::new(0.1 + 0.2).unwrap().get();
    odd.signature = Vec::new();
    let mut tiny = Sketch::new(4).row();
    tiny.confidence = f64::MIN_POSITIVE / 4.0;
    let wanted = [low, high, odd, tiny];
    insert(store, &wanted);
    assert_eq!(store.scan(None, 9).unwrap(), wanted);
}
