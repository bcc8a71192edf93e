//! Input that means harm: huge, deep, broken, invisible.

use std::time::{Duration, Instant};

use lodestar_core::provenance::{GivenSource, Label};
use serde_json::{Value, json};

use super::{observation, small_index};

/// Far more than any of this takes, and far less than anything that grows with the square.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn megabytes_are_labelled_in_time_and_never_trusted() {
    let size = 1 << 20;
    let texts = [
        "a".repeat(size),
        "a ".repeat(size / 2),
        "@".repeat(size),
        "a@b.c,".repeat(size / 6),
        "https://".repeat(size / 8),
        "(".repeat(size),
        "\"".repeat(size),
        "'a".repeat(size / 2),
        "«(".repeat(size / 3),
        "%41".repeat(size / 3),
        "\\u0041".repeat(size / 6),
        "1".repeat(size),
        "1 ".repeat(size / 2),
        "+1 ".repeat(size / 3),
        "DE89 ".repeat(size / 5),
        "../".repeat(size / 3),
        "\u{301}".repeat(size / 2),
        "\u{200b}".repeat(size / 3),
        "\u{202e}a".repeat(size / 4),
        "\0".repeat(size),
        "- a\n".repeat(size / 4),
        "a: b\n".repeat(size / 5),
        "\n".repeat(size),
        "](".repeat(size / 2),
        "=".repeat(size),
        "...".repeat(size / 3),
        "QUFB".repeat(size / 4),
        "é".repeat(size / 2),
    ];
    for text in texts {
        let shown: String = text.chars().take(8).collect();
        let start = Instant::now();
        let mut index = small_index();
        index
            .give_task("Write to anna@corp.example", GivenSource::Task)
            .unwrap();
        index.read(observation(1), &text);
        let labelled = index.explain(&json!({ "x": text }));
        assert!(!labelled[0].label.is_trusted(), "{shown:?}");
        assert!(labelled[0].inside.len() <= 64);
        // A task of this size may be refused for want of room; it must not hang.
        let _ = index.give_task(&text, GivenSource::Task);
        assert!(
            start.elapsed() < PATIENCE,
            "{shown:?}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn deep_arguments_do_not_exhaust_the_stack() {
    let mut deep = json!("anna@corp.example");
    for level in 0..1_000 {
        deep = match level % 2 {
            0 => json!([deep]),
            _ => json!({ "a": deep }),
        };
    }
    let mut index = small_index();
    index
        .give_task("Write to anna@corp.example", GivenSource::Task)
        .unwrap();
    let labelled = index.explain(&deep);
    assert_eq!(labelled.len(), 1);
    assert!(labelled[0].label.is_trusted());
    assert_eq!(
        deep.pointer(&labelled[0].pointer).unwrap(),
        "anna@corp.example"
    );
    index.measure(&deep, "depth").unwrap();
}

#[test]
fn strange_characters_neither_break_nor_match() {
    let mut index = small_index();
    let task = "Write to anna@corp.example and read https://corp.example/a";
    index.give_task(task, GivenSource::Task).unwrap();
    for argument in [
        "\0",
        "\u{202e}",
        "\u{feff}",
        "\u{301}",
        "%",
        "%%",
        "%0",
        "%zz",
        "\\",
        "\\u",
        "\\u12",
        "\\ud800",
        "@",
        "@@",
        "a@",
        "@a",
        "://",
        "https://",
        "https:///",
        "https://@",
        "https://:",
        "https://[",
        "https://[]",
        "https://[::1",
        "http://%41",
        "+",
        "++1",
        "+()",
        "(",
        ")",
        "<>",
        "<@>",
        "[]()",
        "](",
        "](a)",
        "=",
        "==",
        "a=",
        "=a",
        ":",
        "::",
        ":::",
        "#",
        "##",
        "-",
        "--",
        ".",
        "..",
        "...",
        "/",
        "//",
        "./",
        "../",
        "\"",
        "\"\"",
        "'",
        "``",
        "𝒶𝓃𝓃𝒶@corp.example",
        "ANNA@corp.example",
        "anna@corp.example\u{0}",
        "\u{2066}anna@corp.example\u{2069}",
        "\u{e0061}nna@corp.example",
        "https://corp.example/a\r\nHost: evil.example",
        "https://corp.example/a\u{85}",
        "-0",
        "1e999",
        "٠١٢٣٤٥٦٧٨٩",
    ] {
        index.read(observation(1), argument);
        let label = index.explain(&json!(argument)).remove(0).label;
        assert!(!label.is_trusted(), "{argument:?}");
    }
}

#[test]
fn numbers_at_the_edges_are_labelled() {
    let mut index = small_index();
    index
        .give_value("9007199254740993", GivenSource::Task)
        .unwrap();
    index.give_value("1.0", GivenSource::Task).unwrap();
    let trusted = |argument: Value| index.explain(&argument).remove(0).label.is_trusted();
    // One more than the doubles can tell from its neighbour: only the text is given.
    assert!(trusted(json!("9007199254740993")));
    assert!(!trusted(json!(9_007_199_254_740_993_u64)));
    assert!(!trusted(json!(9_007_199_254_740_992_u64)));
    assert!(trusted(json!(1)));
    assert!(!trusted(json!(u64::MAX)));
    assert!(!trusted(json!(f64::MIN_POSITIVE)));
    assert!(!trusted(json!(-0.0)));
}

#[test]
fn a_text_full_of_addresses_is_listed_up_to_a_limit_and_counted() {
    let index = small_index();
    let body: String = (0..100).map(|n| format!("a{n}@evil.example ")).collect();
    let labelled = index.explain(&json!(body)).remove(0);
    assert_eq!((labelled.inside.len(), labelled.inside_omitted), (64, 36));
    assert_eq!(labelled.label, Label::Unknown);
}
