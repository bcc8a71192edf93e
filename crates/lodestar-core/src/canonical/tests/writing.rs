//! What the serializer writes and refuses.

use std::collections::BTreeMap;

use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::*;

#[derive(Serialize)]
enum Shape {
    Point,
    Circle(u8),
    Segment(i16, i32),
    Square { width: u8, at: (i8, i64) },
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Meters(f64);

#[derive(Serialize)]
struct Pair(bool, char);

/// A map in the order given, with whatever keys.
struct Entries<'a, K>(&'a [(K, u32)]);

impl<K: Serialize> Serialize for Entries<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

fn written<T: Serialize + ?Sized>(value: &T) -> String {
    text(to_vec(value).unwrap())
}

#[test]
fn every_kind_of_value_has_the_form_serde_json_gives_it() {
    fn same<T: Serialize>(value: T) {
        let expected = serde_json::to_value(&value).unwrap();
        assert_eq!(written(&value), canonical(&expected.to_string()));
    }
    same(Shape::Point);
    same(Shape::Circle(7));
    same(Shape::Segment(-3, i32::MIN));
    same(Shape::Square {
        width: 1,
        at: (-1, 5),
    });
    same([Some(1), None]);
    same((Unit, Meters(1.5), Pair(true, '"'), "text", ()));
    same(vec![u64::MAX >> 11, 0]);
    same(0.5f32);
    same((i128::from(-5i8), 5u128));
    same(BTreeMap::from([(12u32, 'x')]));
    same(json!({"b": [1, {"z": null, "a": {}}], "a": 0.1}));
    assert_eq!(written(&Shape::Segment(1, 2)), r#"{"Segment":[1,2]}"#);
    assert_eq!(
        written(&Shape::Square {
            width: 1,
            at: (2, 3)
        }),
        r#"{"Square":{"at":[2,3],"width":1}}"#
    );
}

#[test]
fn bytes_are_an_array_of_numbers() {
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&[0, 255])
        }
    }
    assert_eq!(written(&Bytes), "[0,255]");
}

#[test]
fn raw_json_text_is_refused_rather_than_mistaken_for_an_object() {
    // What serde_json's `RawValue` looks like to a serializer that does not know it.
    #[derive(Serialize)]
    #[serde(rename = "$serde_json::private::RawValue")]
    struct Raw {
        text: &'static str,
    }
    assert!(matches!(
        to_vec(&[Raw { text: "1.0" }]),
        Err(CanonicalError::Value(message)) if message.contains("parse")
    ));
}

#[test]
fn displayed_values_are_escaped_piece_by_piece() {
    struct Shown;
    impl Serialize for Shown {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&format_args!("{}\"{}", "a\n", '\u{1}'))
        }
    }
    assert_eq!(written(&Shown), r#""a\n\"\u0001""#);
}

#[test]
fn only_what_must_be_escaped_is() {
    for code in 0..=0x2fff {
        let Some(character) = char::from_u32(code) else {
            continue;
        };
        let expected = match character {
            '\u{8}' => r"\b".to_owned(),
            '\t' => r"\t".to_owned(),
            '\n' => r"\n".to_owned(),
            '\u{c}' => r"\f".to_owned(),
            '\r' => r"\r".to_owned(),
            '"' => r#"\""#.to_owned(),
            '\\' => r"\\".to_owned(),
            '\0'..' ' => format!("\\u{code:04x}"),
            other => other.to_string(),
        };
        // At every position relative to the eight bytes that are looked at together.
        for padding in 0..9 {
            let before = "-".repeat(padding);
            for after in ["", "0123456789"] {
                assert_eq!(
                    written(&format!("{before}{character}{after}")),
                    format!("\"{before}{expected}{after}\"")
                );
            }
        }
    }
}

#[test]
fn integers_end_at_two_to_the_53() {
    let limit = 1i64 << 53;
    assert_eq!(written(&limit), "9007199254740992");
    assert_eq!(written(&-limit), "-9007199254740992");
    assert_eq!(written(&(limit as f64)), "9007199254740992");
    let refused = Err(CanonicalError::UnsafeInteger);
    assert_eq!(to_vec(&(limit + 1)), refused);
    assert_eq!(to_vec(&(-limit - 1)), refused);
    assert_eq!(to_vec(&(limit as u64 + 1)), refused);
    assert_eq!(to_vec(&u64::MAX), refused);
    assert_eq!(to_vec(&i64::MIN), refused);
    assert_eq!(to_vec(&i128::MIN), refused);
    assert_eq!(to_vec(&u128::MAX), refused);
    assert_eq!(to_vec(&json!({"n": limit + 1})), refused);
    assert_eq!(to_vec(&(limit as f64).next_up()), refused);
    assert_eq!(to_vec(&-1e20), refused);
    assert_eq!(written(&1e21), "1e+21");
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    for value in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(to_vec(&value), Err(CanonicalError::NotFinite));
        assert_eq!(to_vec(&(value as f32)), Err(CanonicalError::NotFinite));
        assert_eq!(to_vec(&[Some(value)]), Err(CanonicalError::NotFinite));
    }
    assert_eq!(written(&-0.0), "0");
}

#[test]
fn duplicate_keys_are_refused_wherever_they_stand() {
    for (twice, keys) in [
        ("a", ["a", "a", "b"]),
        ("b", ["b", "a", "b"]),
        ("a", ["a", "b", "a"]),
        ("\u{1f600}", ["\u{1f600}", "\u{fb33}", "\u{1f600}"]),
        ("\n", ["\n", "a", "\n"]),
    ] {
        assert_eq!(
            to_vec(&Entries(&keys.map(|key| (key, 1)))),
            Err(CanonicalError::DuplicateKey(twice.to_owned()))
        );
    }
}

#[test]
fn keys_of_maps_are_strings_or_numbers() {
    assert_eq!(
        written(&Entries(&[(10, 1), (9, 2), (-1, 3)])),
        r#"{"-1":3,"10":1,"9":2}"#
    );
    assert_eq!(written(&Entries(&[('b', 1), ('a', 2)])), r#"{"a":2,"b":1}"#);
    assert_eq!(written(&Entries(&[(Shape::Point, 1)])), r#"{"Point":1}"#);
    assert_eq!(
        to_vec(&Entries(&[((), 1)])),
        Err(CanonicalError::KeyNotString)
    );
    assert_eq!(
        to_vec(&Entries(&[([1], 1)])),
        Err(CanonicalError::KeyNotString)
    );
    assert_eq!(
        to_vec(&Entries(&[(true, 1)])),
        Err(CanonicalError::KeyNotString)
    );
}

fn nested(depth: usize) -> serde_json::Value {
    (0..depth).fold(json!(1), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({"x": inner})
        }
    })
}

#[test]
fn nesting_ends_at_the_limit() {
    let deepest = to_vec(&nested(MAX_DEPTH)).unwrap();
    assert_eq!(parse(&deepest), Ok(nested(MAX_DEPTH)));
    assert_eq!(to_vec(&nested(MAX_DEPTH + 1)), Err(CanonicalError::TooDeep));
    // Breadth is not depth.
    assert!(to_vec(&vec![nested(MAX_DEPTH - 1); 3]).is_ok());
}

#[test]
fn a_failure_leaves_the_output_as_it_was() {
    struct Refusing;
    impl Serialize for Refusing {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("no"))
        }
    }
    let mut out = b"before".to_vec();
    assert_eq!(
        to_writer(&mut out, &("written", Refusing)),
        Err(CanonicalError::Value("no".to_owned()))
    );
    assert_eq!(out, b"before");
    to_writer(&mut out, &1).unwrap();
    assert_eq!(out, b"before1");
}
