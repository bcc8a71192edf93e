//! JSON as editors take it: with comments, and with commas before a closing bracket.

/// The same text with spaces in place of whatever plain JSON does not have. Every byte stays where it is, so
/// that a place in one is a place in the other.
pub(crate) fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = end_of_string(&bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = bytes[at..].iter().position(|byte| *byte == b'\n');
                let end = end.map_or(bytes.len(), |end| at + end);
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let body = &bytes[at + 2..];
                let end = body.windows(2).position(|pair| pair == b"*/");
                let end = end.map_or(bytes.len(), |end| at + 2 + end + 2);
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    // A mark of the byte order, where an editor put one.
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        bytes[..3].fill(b' ');
    }
    String::from_utf8(bytes).expect("INVARIANT: only whole characters were replaced, by spaces")
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_become_spaces_and_nothing_moves() {
        let text = "{ // ä\n \"a // b\": [1, /* , */ ], \"c\\\"/*\": \"x\", /* ü */\n}";
        let plain = plain(text);
        assert_eq!(plain.len(), text.len());
        let value: serde_json::Value = serde_json::from_str(&plain).expect("JSON");
        assert_eq!(value, serde_json::json!({"a // b": [1], "c\"/*": "x"}));
    }

    #[test]
    fn what_never_ends_is_no_json_and_no_panic() {
        for text in ["{ /* x", "\"\\", "// x", "{\"a\": \"", ",}", "/"] {
            assert_eq!(plain(text).len(), text.len());
        }
    }
}
