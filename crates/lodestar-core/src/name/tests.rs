use proptest::prelude::*;

use super::*;

fn refusal(text: &str) -> NameError {
    SessionId::new(text).expect_err("the name must be refused")
}

#[test]
fn ordinary_names_are_kept_as_they_are() {
    for text in [
        "a",
        "0",
        "web-shop",
        "2025-01-31.run_7",
        "A.b.C",
        &"x".repeat(128),
    ] {
        let name = SessionId::new(text).unwrap();
        assert_eq!(name.as_str(), text);
        assert_eq!(name.to_string(), text);
        assert_eq!(text.parse::<SessionId>().unwrap(), name);
    }
}

#[test]
fn every_refusal_names_its_reason() {
    assert_eq!(refusal(""), NameError::Empty);
    assert!(matches!(
        refusal(&"x".repeat(129)),
        NameError::TooLong { length: 129, .. }
    ));
    for first in [".a", "-a", "_a", "/a", "é"] {
        assert!(
            matches!(refusal(first), NameError::BadFirst { .. }),
            "{first}"
        );
    }
    assert!(matches!(
        refusal("ab/c"),
        NameError::BadCharacter { position: 2, .. }
    ));
    assert!(matches!(
        refusal("ab\0"),
        NameError::BadCharacter { position: 2, .. }
    ));
    assert!(matches!(
        refusal("aé"),
        NameError::BadCharacter { position: 1, .. }
    ));
    assert!(matches!(refusal("a..b"), NameError::DotDot { .. }));
    assert!(matches!(refusal("a.."), NameError::DotDot { .. }));
    assert!(matches!(
        refusal("ledger.jsonl"),
        NameError::Reserved { .. }
    ));
    assert!(matches!(refusal("Ledger.x"), NameError::Reserved { .. }));
}

#[test]
fn only_names_that_become_files_are_reserved() {
    assert!(ProjectId::new("ledger.a").is_err());
    assert!(SessionId::new("ledger.a").is_err());
    assert!(ActorId::new("ledger.a").is_ok());
    for fine in ["ledger", "ledger-a", "ledgers.a", "my.ledger.a"] {
        assert!(SessionId::new(fine).is_ok(), "{fine}");
    }
}

#[test]
fn messages_say_what_is_allowed() {
    assert_eq!(
        refusal("ab/c").to_string(),
        "the name `ab/c` has `/` at byte 2; a name is 1 to 128 of `A-Z a-z 0-9 . _ -`, \
         starts with a letter or digit, and has no `..`"
    );
}

#[test]
fn hostile_names_render_inert_and_short() {
    let huge = "A".repeat(1 << 20);
    let escapes = "\u{1b}[31m".repeat(4096);
    for text in [
        "a\0b",
        "a\nb",
        "\u{1b}[2J",
        "a\u{202e}b",
        "a`b",
        "a\u{7f}",
        "a\u{200b}",
        &huge,
        &escapes,
    ] {
        let message = refusal(text).to_string();
        assert!(message.len() < 300, "{} bytes", message.len());
        assert!(
            message.chars().all(|c| c.is_ascii_graphic() || c == ' '),
            "{message}"
        );
    }
    assert!(refusal(&huge).to_string().contains("1048576 bytes"));
}

#[test]
fn names_travel_through_json_checked() {
    let name: ActorId = serde_json::from_str(r#""ann""#).unwrap();
    assert_eq!(serde_json::to_string(&name).unwrap(), r#""ann""#);
    let escaped: ActorId = serde_json::from_str(r#""\u0061nn""#).unwrap();
    assert_eq!(escaped, name);
    assert!(serde_json::from_str::<ActorId>(r#""a/b""#).is_err());
    assert!(serde_json::from_str::<SessionId>(r#""ledger.a""#).is_err());
    assert!(serde_json::from_str::<ActorId>("7").is_err());
}

proptest! {
    #[test]
    fn the_scanner_agrees_with_the_constructor(text in "[A-Za-z0-9._\\-/é]{0,6}|ledger\\.?[a-z]{0,2}|.{0,140}") {
        prop_assert_eq!(SessionId::is_valid(text.as_bytes()), SessionId::new(&text).is_ok());
        prop_assert_eq!(is_valid_name(text.as_bytes()), ActorId::new(&text).is_ok());
    }

    #[test]
    fn the_alphabet_is_exactly_the_documented_one(text in "[A-Za-z0-9][A-Za-z0-9._-]{0,127}") {
        prop_assert_eq!(is_valid_name(text.as_bytes()), !text.contains(".."));
    }

    #[test]
    fn an_accepted_name_is_one_plain_path_component(text in ".{0,12}") {
        if SessionId::new(&text).is_ok() {
            let components: Vec<_> = std::path::Path::new(&text).components().collect();
            prop_assert!(matches!(components.as_slice(), [std::path::Component::Normal(c)] if *c == text.as_str()));
        }
    }
}
