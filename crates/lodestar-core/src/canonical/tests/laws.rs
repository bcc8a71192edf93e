//! Laws that hold for all values and all texts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::*;

/// Numbers in the form [`parse`] gives them.
fn number() -> impl Strategy<Value = Number> {
    let limit = MAX_INTEGER as i64;
    prop_oneof![
        (-limit..=limit).prop_map(Number::from),
        (-9i64..=9).prop_map(Number::from),
        any::<f64>().prop_filter_map("normal form", |value| {
            let whole = value.fract() == 0.0 && value.abs() < 1e21;
            (!whole).then(|| Number::from_f64(value)).flatten()
        }),
    ]
}

/// Strings with characters on both sides of every boundary that matters.
fn string() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        prop::sample::select(vec![
            '\0',
            '\u{1f}',
            ' ',
            '"',
            '\\',
            '/',
            'a',
            'b',
            '\u{7f}',
            '\u{80}',
            '\u{7ff}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{fb33}',
            '\u{ffff}',
            '\u{10000}',
            '\u{1f600}',
            '\u{10ffff}',
        ]),
    ];
    prop::collection::vec(character, 0..12).prop_map(String::from_iter)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        string().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(string(), inner, 0..6)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

/// Texts that are often JSON and often nearly so.
fn json_like() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\"",
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "\\ud83d",
        "\\ude00",
        "\\n",
        "1",
        "-",
        "0",
        ".5",
        "e1",
        "E+30",
        "400",
        "9007199254740993",
        "null",
        "true",
        "false",
        "é",
        "\n",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// Equal up to the spelling of numbers.
fn same_value(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        (a, b) => a == b,
    }
}

struct InOrder(Vec<(String, Value)>);

impl Serialize for InOrder {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Objects with their entries in the order of UTF-16 code units, written the slow, obvious way.
fn reference(value: &Value) -> String {
    match value {
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(reference).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Object(object) => {
            let sorted: BTreeMap<Vec<u16>, (&String, &Value)> = object
                .iter()
                .map(|(key, value)| (key.encode_utf16().collect(), (key, value)))
                .collect();
            let entries: Vec<_> = sorted
                .values()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), reference(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Number(number) if number.is_f64() => {
            super::super::number::ecmascript(&mut ryu_js::Buffer::new(), number.as_f64().unwrap())
                .to_owned()
        }
        other => other.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_normal_is_read_back_as_it_is(value in value(), also in any::<f64>()) {
        let mut members = match value {
            Value::Object(members) => members,
            value => Map::from_iter([("key".to_owned(), value)]),
        };
        for _ in 0..2 {
            if is_normal(&members) {
                let read = parse(&to_vec(&members).unwrap()).unwrap();
                prop_assert_eq!(read.to_string(), Value::Object(members.clone()).to_string());
            }
            members.insert("also".to_owned(), also.into());
        }
    }

    #[test]
    fn what_is_written_reads_back_and_is_canonical(value in value()) {
        let bytes = to_vec(&value).unwrap();
        prop_assert_eq!(parse(&bytes).unwrap(), value);
        prop_assert_eq!(canonicalize(&bytes).unwrap(), bytes.clone());
        prop_assert!(is_canonical(&bytes));
    }

    #[test]
    fn the_bytes_are_those_of_the_obvious_implementation(value in value()) {
        prop_assert_eq!(text(to_vec(&value).unwrap()), reference(&value));
    }

    #[test]
    fn the_order_of_keys_does_not_matter(
        map in prop::collection::btree_map(string(), value(), 0..8),
        seed: u64,
    ) {
        let expected = to_vec(&map).unwrap();
        let mut entries: Vec<_> = map.into_iter().collect();
        let mut state = seed;
        for at in (1..entries.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            entries.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(to_vec(&InOrder(entries)).unwrap(), expected);
    }

    #[test]
    fn a_pretty_printed_text_has_the_same_canonical_form(value in value()) {
        let pretty = serde_json::to_vec_pretty(&value).unwrap();
        prop_assert_eq!(parse(&pretty).unwrap(), value.clone());
        prop_assert_eq!(canonicalize(&pretty).unwrap(), to_vec(&value).unwrap());
    }

    #[test]
    fn canonicalizing_twice_changes_nothing(json in json_like()) {
        if let Ok(once) = canonicalize(json.as_bytes()) {
            prop_assert_eq!(canonicalize(&once), Ok(once.clone()));
            prop_assert_eq!(is_canonical(json.as_bytes()), once == json.as_bytes());
        } else {
            prop_assert!(!is_canonical(json.as_bytes()));
        }
    }

    #[test]
    fn what_is_accepted_is_json_with_the_same_meaning(json in json_like()) {
        match (parse(json.as_bytes()), serde_json::from_str::<Value>(&json)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(same_value(&ours, &theirs)),
            (Ok(_), Err(_)) => prop_assert!(false, "accepted what is not JSON"),
            (Err(CanonicalError::Parse { offset, problem }), Ok(_)) => {
                prop_assert!(offset <= json.len());
                prop_assert!(matches!(
                    problem,
                    ParseProblem::DuplicateKey(_)
                        | ParseProblem::UnsafeInteger
                ));
            }
            (Err(_), _) => {}
        }
    }

    #[test]
    fn all_finite_doubles_are_written_readable_or_refused(bits: u64) {
        let value = f64::from_bits(bits);
        match to_vec(&value) {
            Ok(bytes) => prop_assert_eq!(parse(&bytes).unwrap().as_f64(), Some(value)),
            Err(CanonicalError::NotFinite) => prop_assert!(!value.is_finite()),
            Err(error) => {
                prop_assert_eq!(error, CanonicalError::UnsafeInteger);
                prop_assert!(value.abs() > MAX_INTEGER as f64 && value.abs() < 1e21);
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, json in json_like()) {
        let _ = parse(&bytes);
        let _ = is_canonical(&bytes);
        let _ = parse(json.as_bytes());
    }
}
