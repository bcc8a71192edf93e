//! serde's data model in canonical JSON, with the same conventions as `serde_json`.

use std::fmt::{self, Write as _};

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::CanonicalError;
use super::number::{write_f64, write_i64, write_u64};
use super::string::write_escaped;
use super::write::{Array, Object, Result, Writer};

impl Error for CanonicalError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Value(message.to_string())
    }
}

/// Writes formatted text as the inside of a JSON string.
struct Escaping<'o>(&'o mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_escaped(self.0, text);
        Ok(())
    }
}

impl<'w, 'o> Serializer for &'w mut Writer<'o> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = Array<'w, 'o>;
    type SerializeTuple = Array<'w, 'o>;
    type SerializeTupleStruct = Array<'w, 'o>;
    type SerializeTupleVariant = Array<'w, 'o>;
    type SerializeMap = Object<'w, 'o>;
    type SerializeStruct = Object<'w, 'o>;
    type SerializeStructVariant = Object<'w, 'o>;

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<()> {
        write_i64(self.out, value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<()> {
        write_i64(self.out, value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<()> {
        write_i64(self.out, value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<()> {
        write_i64(self.out, value)
    }

    fn serialize_i128(self, value: i128) -> Result<()> {
        let value = i64::try_from(value).map_err(|_| CanonicalError::UnsafeInteger)?;
        write_i64(self.out, value)
    }

    fn serialize_u8(self, value: u8) -> Result<()> {
        write_u64(self.out, value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<()> {
        write_u64(self.out, value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<()> {
        write_u64(self.out, value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<()> {
        write_u64(self.out, value)
    }

    fn serialize_u128(self, value: u128) -> Result<()> {
        let value = u64::try_from(value).map_err(|_| CanonicalError::UnsafeInteger)?;
        write_u64(self.out, value)
    }

    fn serialize_f32(self, value: f32) -> Result<()> {
        write_f64(self.out, value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<()> {
        write_f64(self.out, value)
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<()> {
        self.string(value);
        Ok(())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<()> {
        self.out.push(b'"');
        write!(Escaping(self.out), "{value}").map_err(CanonicalError::custom)?;
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.open_variant(variant)?;
        value.serialize(&mut *self)?;
        self.close(b'}');
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Array<'w, 'o>> {
        Array::open(self)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Array<'w, 'o>> {
        Array::open(self)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Array<'w, 'o>> {
        Array::open(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Array<'w, 'o>> {
        self.open_variant(variant)?;
        Array::open(self).map(Array::in_variant)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Object<'w, 'o>> {
        Object::open(self)
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Object<'w, 'o>> {
        // serde_json passes raw JSON text and numbers of arbitrary precision as structs of such
        // names. Their text need not be canonical, and taking them for objects would be worse.
        if name.starts_with("$serde_json::private::") {
            return Err(CanonicalError::custom("parse raw JSON text first"));
        }
        Object::open(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Object<'w, 'o>> {
        self.open_variant(variant)?;
        Object::open(self).map(Object::in_variant)
    }
}

impl SerializeSeq for Array<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl SerializeTuple for Array<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl SerializeTupleStruct for Array<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl SerializeTupleVariant for Array<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.element(value)
    }

    fn end(self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl SerializeMap for Object<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

impl SerializeStruct for Object<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.field(key, value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

impl SerializeStructVariant for Object<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.field(key, value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}
