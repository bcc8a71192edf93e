//! JSON of somebody else's, read so that every reader reads the same: no object has a name twice, at any
//! depth and however it is spelt. Otherwise as `serde_json` reads it, numbers included.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::name::Excerpt;

/// Why a text is not read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Readers would differ on what it means.
    #[error("an object in it has two members named `{0}`")]
    Twice(Excerpt),
    /// It is no JSON.
    #[error(transparent)]
    NoJson(serde_json::Error),
}

/// Reads one value.
pub fn read(text: &str) -> Result<Value, Unreadable> {
    let mut twice = None;
    let mut from = serde_json::Deserializer::from_str(text);
    let read = Strict { twice: &mut twice }.deserialize(&mut from);
    let read = read.and_then(|value| from.end().map(|()| value));
    match twice {
        Some(name) => Err(Unreadable::Twice(name)),
        None => read.map_err(Unreadable::NoJson),
    }
}

struct Strict<'a> {
    /// The name that stood twice.
    twice: &'a mut Option<Excerpt>,
}

impl Strict<'_> {
    fn again(&mut self) -> Strict<'_> {
        Strict {
            twice: &mut *self.twice,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.again())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if members.contains_key(&name) {
                *self.twice = Some(Excerpt::of(&name));
                return Err(A::Error::custom("a name stands twice"));
            }
            let value = object.next_value_seed(self.again())?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_twice_is_found_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"x":[{"b":null,"c":0,"b":1}]}]"#,
        ] {
            let problem = read(text).unwrap_err();
            assert!(matches!(problem, Unreadable::Twice(_)), "{text}: {problem}");
        }
    }

    #[test]
    fn everything_else_is_read_as_it_always_is() {
        for text in [
            r#"{"a":[1,-2,1.5,1e300,true,null,"\u00e4"],"b":{"a":{}}}"#,
            "18446744073709551615",
            " [ ] ",
        ] {
            let usual: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text).unwrap(), usual, "{text}");
        }
        for text in ["", "{} {}", r#""\ud800""#, "{\"a\":1", "nul"] {
            assert!(matches!(read(text), Err(Unreadable::NoJson(_))), "{text}");
        }
    }
}
