//! Spellings that hide a text: percent-encoding, base64, hexadecimal, backslash escapes.
//!
//! Used on what was read and on arguments alike, one layer deep, and only to explain. A decoder
//! here therefore takes what any real one might have written (both base64 alphabets, padded or not)
//! and gives up on anything that does not decode to readable text.

/// Shortest text that is tried: shorter ones decode to a handful of characters, which are found by
/// chance.
const MIN_ENCODED: usize = 8;

/// What a text says once decoded, for every spelling it could be.
pub(super) fn decodings(text: &str) -> Vec<String> {
    if text.len() < MIN_ENCODED {
        return Vec::new();
    }
    [percent(text), base64(text), hex(text)]
        .into_iter()
        .flatten()
        .collect()
}

fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    (text.len() >= 4 && text.chars().all(plain)).then_some(text)
}

fn percent(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut decoded = false;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%')
            .then(|| Some((digit(*bytes.get(at + 1)?)?, digit(*bytes.get(at + 2)?)?)))
            .flatten();
        if let Some((high, low)) = escape {
            out.push(high << 4 | low);
            decoded = true;
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    decoded.then(|| readable(out)).flatten()
}

fn hex(text: &str) -> Option<String> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
        .collect();
    readable(bytes?)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn base64(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' | b' ' => continue,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    readable(out)
}

/// Undoes the escapes of JSON and of most programming languages; `None` where there are none.
///
/// Never fails: what is no escape stays as it is.
pub(super) fn unescaped(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (c, len) = match after.chars().next() {
            Some('n' | 'r' | 't') => ('\n', 1),
            Some('u') => match unicode_escape(after) {
                Some(c) => (c, 5),
                None => ('\\', 0),
            },
            Some(c @ ('"' | '\\' | '/' | '\'')) => (c, 1),
            _ => ('\\', 0),
        };
        out.push(c);
        rest = &after[len..];
    }
    out.push_str(rest);
    Some(out)
}

fn unicode_escape(after: &str) -> Option<char> {
    let digits = after.get(1..5)?;
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| hex)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_are_undone() {
        for encoded in [
            "anna%40corp.example",
            "%61%6e%6e%61%40%63%6f%72%70%2e%65%78%61%6d%70%6c%65",
            "YW5uYUBjb3JwLmV4YW1wbGU=",
            "YW5uYUBjb3JwLmV4YW1wbGU",
            "616e6e6140636f72702e6578616d706c65",
            "616E6E6140636F72702E6578616D706C65",
        ] {
            assert_eq!(decodings(encoded), ["anna@corp.example"], "{encoded}");
        }
        assert_eq!(base64("w7zDtj8/Pz8_"), base64("w7zDtj8_Pz8/"));
    }

    #[test]
    fn what_decodes_to_noise_is_left_alone() {
        for text in ["password", "%zz%4", "deadbeef", "", "QQ==", "hello world!"] {
            assert_eq!(decodings(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn escapes_are_undone_and_broken_ones_stay() {
        let cases = [
            (r"to:\nanna\u0040corp", Some("to:\nanna@corp")),
            (r#"\"a\/b\""#, Some("\"a/b\"")),
            (r"\ud800 \u12 \x \", Some(r"\ud800 \u12 \x \")),
            ("plain", None),
        ];
        for (text, expected) in cases {
            assert_eq!(unescaped(text).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_input_upsets_a_decoder(text in "[\\\\%u0-9a-fA-Fé=+/\u{0}\u{301} -]{0,40}") {
            let _ = (decodings(&text), unescaped(&text));
        }
    }
}
