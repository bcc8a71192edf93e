//! JSON in two steps, so that a fault stays within its record.
//!
//! The file is first walked as raw slices, which only asks for the grammar of JSON. Each record is then
//! read strictly by itself: no key twice, no half characters, no number that canonical JSON refuses.

use std::borrow::Cow;
use std::fmt;

use lodestar_core::canonical::MAX_INTEGER;
use lodestar_core::unambiguous::{self, Unreadable};
use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use super::{MAX_DEPTH, MAX_RECORD, SkipReason};

/// Calls `each` with every element of a list, until it fails. Not collected first: a list of a few
/// megabytes can have millions of elements.
pub(super) fn each_element<'t, E>(
    list: &'t RawValue,
    each: impl FnMut(&'t RawValue) -> Result<(), E>,
) -> Result<(), E> {
    struct Elements<F, E>(F, Result<(), E>);

    impl<'t, E, F: FnMut(&'t RawValue) -> Result<(), E>> Visitor<'t> for &mut Elements<F, E> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<(), A::Error> {
            while let Some(element) = list.next_element()? {
                self.1 = (self.0)(element);
                if self.1.is_err() {
                    return Err(A::Error::custom("stopped"));
                }
            }
            Ok(())
        }
    }

    let mut elements = Elements(each, Ok(()));
    // INVARIANT: a raw value has the grammar of JSON, so this fails only if `each` does.
    let _ = Deserializer::from_str(list.get()).deserialize_seq(&mut elements);
    elements.1
}

/// Calls `each` with every key and value of an object, until it fails.
pub(super) fn each_entry<'t, E>(
    object: &'t RawValue,
    each: impl FnMut(&str, &'t RawValue) -> Result<(), E>,
) -> Result<(), E> {
    struct Entries<F, E>(F, Result<(), E>);

    impl<'t, E, F: FnMut(&str, &'t RawValue) -> Result<(), E>> Visitor<'t> for &mut Entries<F, E> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'t>>(self, mut object: A) -> Result<(), A::Error> {
            while let Some((Key(key), value)) = object.next_entry::<Key, &RawValue>()? {
                self.1 = (self.0)(&key, value);
                if self.1.is_err() {
                    return Err(A::Error::custom("stopped"));
                }
            }
            Ok(())
        }
    }

    let mut entries = Entries(each, Ok(()));
    // INVARIANT: as above; a key is read whatever it holds.
    let _ = Deserializer::from_str(object.get()).deserialize_map(&mut entries);
    entries.1
}

/// A key of an object that is only walked through. One that holds half a character is none that we
/// look for, and must not hide those behind it; so it is read as bytes.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Key, E> {
                Ok(Key(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        from.deserialize_bytes(Bytes)
    }
}

/// A record as a value that has a canonical form.
pub(super) fn record(raw: &RawValue) -> Result<Value, SkipReason> {
    let text = raw.get();
    if text.len() > MAX_RECORD {
        return Err(SkipReason::RecordTooLarge { bytes: text.len() });
    }
    let text = exact_numbers(text)?;
    unambiguous::read(&text).map_err(|problem| match problem {
        Unreadable::Twice(key) => SkipReason::DuplicateKey { key },
        // Grammar, depth and numbers are settled by now. What is left to refuse is a string.
        Unreadable::NoJson(_) => SkipReason::LoneSurrogate,
    })
}

/// Puts quotes around the numbers that canonical JSON refuses, which keeps all their digits; refuses
/// what nests too deep on the way. The text has the grammar of JSON.
fn exact_numbers(text: &str) -> Result<Cow<'_, str>, SkipReason> {
    let bytes = text.as_bytes();
    let (mut quoted, mut copied) = (String::new(), 0);
    let (mut at, mut depth) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => at = string_end(bytes, at),
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(SkipReason::TooDeep);
                }
            }
            b']' | b'}' => depth -= 1,
            b'-' | b'0'..=b'9' => {
                let in_number =
                    |b: &&u8| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[at..].iter().take_while(in_number).count();
                let number = &text[start..at];
                if !has_canonical_form(number) {
                    quoted.extend([&text[copied..start], "\"", number, "\""]);
                    copied = at;
                }
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    quoted.push_str(&text[copied..]);
    Ok(Cow::Owned(quoted))
}

/// Behind the closing quote of a string whose opening quote is behind us.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'\\' => 2,
            b'"' => return at + 1,
            _ => 1,
        };
    }
    at
}

fn has_canonical_form(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        let value = number.parse::<i64>();
        return value.is_ok_and(|value| value.unsigned_abs() <= MAX_INTEGER);
    }
    // From 10^21 on the canonical spelling has an exponent, and is no integer any more.
    number.parse::<f64>().is_ok_and(|value| {
        let size = value.abs();
        size <= MAX_INTEGER as f64 || (size >= 1e21 && size.is_finite())
    })
}
