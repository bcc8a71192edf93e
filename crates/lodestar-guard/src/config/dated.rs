//! Times as people write them. The log knows one spelling; in a configuration the seconds may stand alone.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// Digits behind the point of a second.
const DIGITS: usize = 6;
const DATED: &str = "revoked_at";
/// How the TOML reader hands on a time without quotes.
const UNQUOTED: &str = "$__toml_private_datetime";

/// Reads something in which every `revoked_at` may be written without fractions of a second, or without
/// quotes.
pub(super) fn dated<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    spell_out(&mut value);
    serde_json::from_value(value).map_err(de::Error::custom)
}

fn spell_out(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(spell_out),
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    DATED => in_full(value),
                    _ => spell_out(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn in_full(value: &mut Value) {
    let text = value.get(UNQUOTED).unwrap_or(value).as_str();
    let Some(start) = text.and_then(|text| text.strip_suffix('Z')) else {
        return;
    };
    let (seconds, fraction) = start.split_once('.').unwrap_or((start, ""));
    let is_short = fraction.len() < DIGITS && fraction.bytes().all(|b| b.is_ascii_digit());
    if is_short {
        *value = Value::String(format!("{seconds}.{fraction:0<DIGITS$}Z"));
    } else if value.is_object() {
        *value = Value::String(format!("{start}Z"));
    }
}
