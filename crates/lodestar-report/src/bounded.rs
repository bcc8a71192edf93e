//! Text of others, bounded: what is left out is counted, never silently cut.

/// Bytes of a value that a report shows; enough for a path, an address or a sentence.
pub(crate) const VALUE: usize = 160;
/// Bytes of a longer text: a task, a reason, the beginning of a document.
pub(crate) const TEXT: usize = 600;

/// The text, or its beginning and a mark of how much is left out.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… (+{} bytes)", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_no_character_is_broken() {
        assert_eq!(bounded("short", 5), "short");
        assert_eq!(bounded("longer", 5), "longe… (+1 bytes)");
        assert_eq!(bounded("éééé", 3), "é… (+6 bytes)");
    }
}
