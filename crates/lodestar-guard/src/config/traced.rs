//! What serde knows of a type: asked by letting it read, and listening to what it asks for.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

/// The members of a structure, by the names they are read under.
pub(super) fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    trace::<T>().0
}

/// The words of an enumeration.
pub(super) fn variants<T: DeserializeOwned>() -> &'static [&'static str] {
    trace::<T>().1
}

type Names = &'static [&'static str];

fn trace<T: DeserializeOwned>() -> (Names, Names) {
    let heard = Cell::default();
    let _ = T::deserialize(Tracer(&heard));
    heard.get()
}

struct Tracer<'a>(&'a Cell<(Names, Names)>);

/// Enough was heard: nothing is ever read.
#[derive(Debug)]
struct Heard;

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is read here")
    }
}

impl std::error::Error for Heard {}

impl de::Error for Heard {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Heard;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Heard> {
        Err(Heard)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: Names,
        _: V,
    ) -> Result<V::Value, Heard> {
        self.0.set((fields, &[]));
        Err(Heard)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: Names,
        _: V,
    ) -> Result<V::Value, Heard> {
        self.0.set((&[], variants));
        Err(Heard)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}
