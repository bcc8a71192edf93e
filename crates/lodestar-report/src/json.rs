//! JSON that is safe to look at: characters that act on a terminal, and those that pass for others,
//! are written as `\u` escapes, which changes no value.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::inert;

/// One line without its newline.
pub fn compact(value: &impl Serialize) -> String {
    text(value, CompactFormatter)
}

/// Indented, for people.
pub fn pretty(value: &impl Serialize) -> String {
    text(value, PrettyFormatter::new())
}

fn text(value: &impl Serialize, form: impl Formatter) -> String {
    let mut bytes = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut bytes, Inert(form)))
        .expect("a report has string keys and memory takes every byte");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

struct Inert<F>(F);

macro_rules! as_before {
    ($($method:ident($($arg:ident: $kind:ty),*);)+) => {$(
        fn $method<W: ?Sized + io::Write>(&mut self, writer: &mut W, $($arg: $kind),*) -> io::Result<()> {
            self.0.$method(writer, $($arg),*)
        }
    )+};
}

impl<F: Formatter> Formatter for Inert<F> {
    as_before! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let plain = |byte: u8| byte.is_ascii() && byte != 0x7f;
        if fragment.bytes().all(plain) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut written = 0;
        for (at, c) in inert::hidden(fragment) {
            writer.write_all(&fragment.as_bytes()[written..at])?;
            for unit in utf16(c) {
                write!(writer, "\\u{unit:04x}")?;
            }
            written = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }
}

fn utf16(c: char) -> impl Iterator<Item = u16> {
    let mut units = [0; 2];
    let len = c.encode_utf16(&mut units).len();
    units.into_iter().take(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn escapes_change_no_value() {
        let all: String = (0..=0x10_ffffu32).filter_map(char::from_u32).collect();
        let value = json!({"all": all, "\u{202e}key": [1, null, {"x": "\u{9b}"}]});
        for text in [compact(&value), pretty(&value)] {
            assert_eq!(
                serde_json::from_str::<Value>(&text).expect("valid JSON"),
                value
            );
            assert_eq!(inert::hidden(&text.replace('\n', "")).next(), None);
        }
    }

    #[test]
    fn a_compact_document_is_one_line() {
        let value = json!({"a": "x\ny\u{2028}", "b": "\u{e0041}", "c": "p\u{430}y да"});
        assert_eq!(
            compact(&value),
            r#"{"a":"x\ny\u2028","b":"\udb40\udc41","c":"p\u0430y да"}"#
        );
    }
}
