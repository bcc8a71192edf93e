//! What sort of value a text is, and the one spelling its sort is compared in.
//!
//! A text has exactly one kind, decided by the text alone. Two texts are the same value when kind
//! and normal form are equal; nothing is ever compared across kinds, so a rule that is sound for
//! host names (case does not count) cannot make two file names equal. Where a text could be two
//! things, the kind with the stricter comparison takes it. All folding is ASCII: a text with a
//! character outside it keeps every byte, so a look-alike is a different value by construction.

mod account;
mod email;
mod host;
mod path;
mod phone;
mod url;

pub(super) use account::iban_length;
pub(super) use url::host_range;

use std::borrow::Cow;

pub(super) use lodestar_core::provenance::ValueKind;

/// Longest text that is looked at for structure. No address, URL or path that a tool takes is
/// longer, and a payload of megabytes must not be parsed seven times.
const MAX_STRUCTURED_LEN: usize = 4096;

/// A value in the spelling it is compared in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Normal<'a> {
    pub(super) kind: ValueKind,
    pub(super) text: Cow<'a, str>,
}

/// Finds the kind of a whole text and its normal form.
pub(super) fn classify(text: &str) -> Normal<'_> {
    let found = |kind, text: String| Normal {
        kind,
        text: Cow::Owned(text),
    };
    if text.is_empty() || text.len() > MAX_STRUCTURED_LEN || text.chars().any(is_invisible) {
        return exactly(ValueKind::Text, text);
    }
    if text.is_ascii() {
        if let Some(normal) = url::normal(text) {
            return found(ValueKind::Url, normal);
        }
        if let Some(normal) = email::normal(text) {
            return found(ValueKind::Email, normal);
        }
        if let Some(normal) = account::normal(text) {
            return found(ValueKind::Account, normal);
        }
        if let Some(normal) = phone::normal(text) {
            return found(ValueKind::Phone, normal);
        }
        if is_uuid(text) {
            return found(ValueKind::Id, text.to_ascii_lowercase());
        }
        if let Some(normal) = host::normal(text) {
            return found(ValueKind::Host, normal);
        }
    }
    if text.chars().any(char::is_whitespace) {
        return exactly(ValueKind::Text, text);
    }
    if let Some(normal) = path::normal(text) {
        return found(ValueKind::Path, normal);
    }
    match text.bytes().any(|byte| byte.is_ascii_digit()) {
        true => exactly(ValueKind::Id, text),
        false => exactly(ValueKind::Text, text),
    }
}

fn exactly(kind: ValueKind, text: &str) -> Normal<'_> {
    Normal {
        kind,
        text: Cow::Borrowed(text),
    }
}

/// The canonical JSON of a decimal numeral, if the numeral says exactly one number.
///
/// `007` is a name made of digits and `1e3` a notation, so neither is equal to a number; nor is a
/// numeral with more digits than a double keeps.
pub(super) fn numeral(text: &str) -> Option<String> {
    /// Decimal digits that every double keeps.
    const EXACT_DIGITS: usize = 15;
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let plain = whole == "0" || !whole.starts_with('0');
    if !digits(whole) || !digits(fraction) || !plain || unsigned.len() > EXACT_DIGITS {
        return None;
    }
    canonical_number(&serde_json::Number::from_f64(text.parse().ok()?)?)
}

/// A JSON number as canonical JSON writes it; one spelling per number.
pub(super) fn canonical_number(number: &serde_json::Number) -> Option<String> {
    String::from_utf8(lodestar_core::canonical::to_vec(number).ok()?).ok()
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Characters that a reader does not see, or that move what he sees: no value with one of them is
/// compared in any but its exact spelling.
pub(super) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
