//! The words of a text, for search. All stores index and look for exactly these.

use std::collections::BTreeSet;

/// Longest word in bytes that is kept whole; longer ones are found by their beginning.
pub const MAX_WORD: usize = 64;

/// Most words of a query: more narrow nothing that people search for.
pub const MAX_QUERY_WORDS: usize = 16;

/// The different words of a text: runs of letters and digits, in lower case.
pub fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            if word.is_ascii() {
                return word[..word.len().min(MAX_WORD)].to_ascii_lowercase();
            }
            let mut lower = String::with_capacity(word.len().min(MAX_WORD));
            for c in word.chars().flat_map(char::to_lowercase) {
                if lower.len() + c.len_utf8() > MAX_WORD {
                    break;
                }
                // Lower case of some letters has marks that are no letters.
                if c.is_alphanumeric() {
                    lower.push(c);
                }
            }
            lower
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// The words that a belief is found by.
pub fn indexed_words(row: &crate::row::StoredRow) -> BTreeSet<String> {
    let mut all = words(&row.statement);
    all.extend(words(&row.subject));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        let found: Vec<_> = words("File:Notes.MD — naïve İstanbul 42!")
            .into_iter()
            .collect();
        assert_eq!(found, ["42", "file", "istanbul", "md", "naïve", "notes"]);
        assert!(words("…!?").is_empty());
        assert_eq!(
            words(&"x".repeat(1000)).first().map(String::len),
            Some(MAX_WORD)
        );
    }
}
