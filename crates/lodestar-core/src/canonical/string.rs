//! Strings: the shortest escapes, and everything else as it stands (RFC 8785, section 3.2.2.2).

/// Appends `text` with escapes, without the quotes around it.
pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let clean = clean_prefix(rest);
        out.extend_from_slice(&rest[..clean]);
        let Some((&byte, after)) = rest[clean..].split_first() else {
            return;
        };
        write_escape(out, byte);
        rest = after;
    }
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            crate::digest::encode_hex(&[byte], out);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The number of leading bytes that stand for themselves.
pub(super) fn clean_prefix(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    let clean_words = words.iter().take_while(|&&word| is_clean(word)).count();
    let start = clean_words * 8;
    let rest = words.get(clean_words).map_or(tail, |word| word);
    start
        + rest
            .iter()
            .take_while(|&&byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            .count()
}

/// Whether none of eight bytes needs an escape, looked at all at once.
fn is_clean(word: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(word);
    // Subtracting n from a byte below n borrows into its high bit; `!word` keeps bytes that had
    // that bit from the start out of it. A borrow can spill over into the next byte, but only out
    // of one that is itself a hit, so the answer for the whole word is right.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word;
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & HIGHS == 0
}
