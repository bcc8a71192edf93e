//! The members of a JSON object, each as the bytes that came.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object's members, in their order.
#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// Why an object cannot be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoMembers {
    /// It is no object.
    #[error("it is no object: {0}")]
    NoObject(String),
    /// A name twice: readers would differ on what it means.
    #[error("it has two members named `{0}`")]
    Twice(lodestar_core::name::Excerpt),
}

impl<'a> Members<'a> {
    /// Takes an object apart.
    pub fn of(raw: &'a RawValue) -> Result<Self, NoMembers> {
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        let read = reader.deserialize_map(Reading);
        let members = read.map_err(|problem| NoMembers::NoObject(problem.to_string()))?;
        match twice(&members) {
            Some(name) => Err(NoMembers::Twice(lodestar_core::name::Excerpt::of(name))),
            None => Ok(Self(members)),
        }
    }

    /// As [`of`](Self::of); nothing has no members.
    pub fn of_some(raw: Option<&'a RawValue>) -> Result<Self, NoMembers> {
        raw.map_or_else(|| Ok(Self::default()), Self::of)
    }

    /// The member of this name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| *value)
    }

    /// A text member; none also where it is something else.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let raw = self.get(name)?.get();
        if !raw.contains('\\') {
            let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Writes an object with these members and some of one's own instead of those of the same names.
    pub fn write_with(&self, own: &[(&str, &str)]) -> String {
        let mut out = String::from("{");
        let kept = self
            .iter()
            .filter(|(name, _)| own.iter().all(|(other, _)| other != name));
        let kept = kept.map(|(name, value)| (name, value.get()));
        for (at, (name, value)) in kept.chain(own.iter().copied()).enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&quoted(name));
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

/// Objects with more members than this are looked through with a set: whoever wrote them may have written a
/// million.
const FEW: usize = 16;

fn twice<'m>(members: &'m [(Cow<'_, str>, &RawValue)]) -> Option<&'m str> {
    let mut names = members.iter().map(|(name, _)| name.as_ref());
    if members.len() > FEW {
        let mut seen = HashSet::with_capacity(members.len());
        return names.find(|name| !seen.insert(*name));
    }
    let is_twice = |(at, name): &(usize, &str)| {
        let mut earlier = members[..*at].iter();
        earlier.any(|(earlier, _)| earlier == name)
    };
    names.enumerate().find(is_twice).map(|(_, name)| name)
}

/// A text, as JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("INVARIANT: every text is JSON")
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            members.push((name, map.next_value()?));
        }
        Ok(members)
    }
}

/// A name, borrowed where it can be.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn members_stay_as_they_were_written() {
        let object = raw(r#"{"a": 1.0, "\u0062":"x\ny", "c":{"d":[ ]}}"#);
        let members = Members::of(&object).unwrap();
        assert_eq!(members.get("a").unwrap().get(), "1.0");
        assert_eq!(members.text("b").as_deref(), Some("x\ny"));
        assert_eq!(members.text("a"), None);
        assert_eq!(
            members.write_with(&[("a", "2"), ("e", "3")]),
            r#"{"b":"x\ny","c":{"d":[ ]},"a":2,"e":3}"#
        );
    }

    #[test]
    fn what_readers_would_differ_on_is_refused() {
        assert!(matches!(
            Members::of(&raw(r#"{"a":1,"\u0061":2}"#)),
            Err(NoMembers::Twice(_))
        ));
        assert!(matches!(
            Members::of(&raw("[1]")),
            Err(NoMembers::NoObject(_))
        ));
        assert!(Members::of_some(None).unwrap().get("a").is_none());
    }
}
