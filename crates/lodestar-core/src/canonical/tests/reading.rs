//! What the strict reader accepts and refuses, and where it says the fault is.

use serde_json::json;

use super::ParseProblem::*;
use super::*;

#[test]
fn other_spellings_of_the_same_value_are_accepted() {
    for (json, expected) in [
        ("1.0", "1"),
        ("4.50", "4.5"),
        ("1E30", "1e+30"),
        ("1e+30", "1e+30"),
        ("10e-1", "1"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("-0e5", "0"),
        ("1e-400", "0"),
        ("9007199254740992", "9007199254740992"),
        ("-9007199254740992", "-9007199254740992"),
        ("9.007199254740992e15", "9007199254740992"),
        ("1e21", "1e+21"),
        (" \t\r\n{ } \n", "{}"),
        (r#""\/""#, r#""/""#),
        (r#""\u00E9\uD83D\uDE00""#, "\"é😀\""),
    ] {
        assert_eq!(canonical(json), expected);
    }
}

#[test]
fn numbers_that_a_double_cannot_hold_are_refused() {
    for json in [
        "9007199254740993",
        "-9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "100000000000000000000000000000000000000000000000",
        "1e16",
        "1.0e20",
        "123456789012345678.5",
    ] {
        assert_eq!(problem(json), (0, UnsafeInteger), "{json}");
    }
    for json in ["1e400", "-1e400", "1.8e308", "1e99999999999999999999"] {
        assert_eq!(problem(json), (0, NumberTooLarge), "{json}");
    }
    assert_eq!(problem("[1, 9007199254740993]"), (4, UnsafeInteger));
}

#[test]
fn numbers_follow_the_grammar() {
    for json in [
        "-", "01", "-01", "00", "1.", "1.e1", "1e", "1e+", "1E-x", "-a", "-.5",
    ] {
        assert_eq!(problem(json), (0, MalformedNumber), "{json}");
    }
    for json in [".5", "+1", "NaN", "Infinity", "nul", "tru", "True", "", " "] {
        assert!(parse(json.as_bytes()).is_err(), "{json}");
    }
    assert_eq!(problem("0x10"), (1, TrailingData));
    assert_eq!(problem("1 2"), (2, TrailingData));
}

#[test]
fn duplicate_keys_are_found_behind_their_escapes() {
    assert_eq!(
        problem(r#"{"a":1,"a":2}"#),
        (7, DuplicateKey("a".to_owned()))
    );
    assert_eq!(
        problem(r#"{"a":1,"b":{"c":1},"\u0061":2}"#),
        (19, DuplicateKey("a".to_owned()))
    );
    assert_eq!(
        problem(r#"[{"\ud83d\ude00":1,"😀":2}]"#),
        (19, DuplicateKey("😀".to_owned()))
    );
    assert_eq!(
        canonical(r#"{"a":{"a":1},"b":{"a":1}}"#),
        r#"{"a":{"a":1},"b":{"a":1}}"#
    );
}

#[test]
fn lone_surrogates_are_refused() {
    for json in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\udfff\ud800""#,
        r#""\ud800\ud800""#,
        r#""\ud83dx""#,
        r#""\ud83d\n""#,
        r#""\uD83D\u0041""#,
    ] {
        assert_eq!(problem(json), (1, LoneSurrogate), "{json}");
    }
}

#[test]
fn strings_follow_the_grammar() {
    assert_eq!(problem(r#""\x""#), (1, UnknownEscape));
    assert_eq!(problem(r#""a\u00g0""#), (2, UnknownEscape));
    assert_eq!(problem(r#""\u+123""#), (1, UnknownEscape));
    assert_eq!(problem(r#""\u12é""#), (1, UnknownEscape));
    assert_eq!(problem(r#""\u12""#), (1, UnknownEscape));
    assert_eq!(problem(r#""\ud83d\u""#), (7, UnknownEscape));
    assert_eq!(problem("\"a\nb\""), (2, ControlCharacter));
    assert_eq!(problem("\"\0\""), (1, ControlCharacter));
    assert_eq!(problem("\"abc"), (4, UnexpectedEnd));
    assert_eq!(problem("\"abc\\"), (5, UnexpectedEnd));
    assert_eq!(problem("'a'"), (0, Expected("a value")));
    assert_eq!(parse(b"\"\x7f\""), Ok(json!("\u{7f}")));
}

#[test]
fn bytes_that_are_not_utf8_are_refused_where_they_stand() {
    assert_eq!(problem(b"\"ab\xff\""), (3, NotUtf8));
    assert_eq!(problem(b"\"\xc0\xaf\""), (1, NotUtf8));
    assert_eq!(problem(b"\"\xed\xa0\x80\""), (1, NotUtf8));
    assert_eq!(problem("\u{feff}1"), (0, Expected("a value")));
}

#[test]
fn structure_follows_the_grammar() {
    for (json, offset) in [
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1}", 2),
        ("{\"a\" 1}", 5),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("{\"a\":}", 5),
        ("{1:2}", 1),
        ("// no\n1", 0),
    ] {
        let (at, problem) = problem(json);
        assert_eq!(at, offset, "{json}");
        assert!(matches!(problem, Expected(_)), "{json}");
    }
    for json in [
        "[",
        "[1",
        "[1,",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
    ] {
        assert_eq!(problem(json), (json.len(), UnexpectedEnd), "{json}");
    }
}

#[test]
fn nesting_is_limited_before_the_stack_is() {
    let open = "[".repeat(100_000);
    assert_eq!(problem(&open), (MAX_DEPTH, TooDeep));
    let open = "{\"a\":".repeat(100_000);
    assert_eq!(problem(&open), (MAX_DEPTH * 5, TooDeep));
}

#[test]
fn messages_say_where_and_what() {
    assert_eq!(
        parse(br#"{"k":1,"k":2}"#).unwrap_err().to_string(),
        "invalid JSON at byte 7: the key `k` appears twice in one object"
    );
}
