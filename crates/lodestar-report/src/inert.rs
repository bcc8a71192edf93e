//! Untrusted text made safe to print.
//!
//! What stands in a log was written by tools, files and pages that nobody vetted. On a terminal it
//! must not move the cursor, recolour, reorder, hide or imitate anything: every character that
//! could is shown as a visible mark instead, and what is cut off is counted. [`line`] is for one
//! line of a person's output; [`hidden`] finds what JSON has to write as escapes of its own.

/// Combining marks that may sit on one character; stacks beyond that paint over other lines.
const MOST_MARKS: usize = 2;
/// How far ahead a word is looked at: the cost of a line must not grow with the text behind it.
const WORD_WINDOW: usize = 64;

/// One line of at most `columns` columns. A longer text ends in a marker with the number of bytes
/// that are not shown.
pub fn line(text: &str, columns: usize) -> String {
    beginning(text, 0, columns).0
}

/// The same of a text of which `more` bytes that follow are not even looked at; and how many bytes are
/// not shown.
pub fn beginning(text: &str, more: usize, columns: usize) -> (String, usize) {
    let total = text.len().saturating_add(more);
    let mut shown = Shown::default();
    let mut fits = Fit::default();
    for (at, c, mixed) in characters(text) {
        shown.push(c, mixed);
        if shown.columns <= columns {
            fits = shown.fit(at + c.len_utf8(), columns, total, fits);
        } else {
            return shown.cut_to(fits, total);
        }
    }
    match more {
        0 => (shown.text, 0),
        _ => shown.cut_to(fits, total),
    }
}

/// All of it, as one line.
pub fn whole(text: &str) -> String {
    line(text, usize::MAX)
}

/// All of it, with line breaks kept: for text that was wrapped by us and quotes others.
pub fn lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(whole).collect();
    lines.join("\n")
}

/// A path, however it is spelt.
pub fn path(path: &std::path::Path) -> String {
    whole(&path.to_string_lossy())
}

/// The characters of a text that do not show what they are, with their offsets.
pub fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    characters(text)
        .filter(|(_, c, mixed)| *mixed || is_live(*c))
        .map(|(at, c, _)| (at, c))
}

/// Whether a character has no place in honest content: it acts instead of being seen, and is neither a line
/// break or tab, nor one of the joiners and selectors that words and emoji are made of, nor something that is
/// seen and only passes for a mark of ours.
pub fn acts(c: char) -> bool {
    let is_ordinary = matches!(u32::from(c),
        0x09 | 0x0a | 0x0d | 0x200c..=0x200d | 0xfe00..=0xfe0f
        | 0x2503 | 0x2588..=0x2590 | 0x2758..=0x275a | 0xe000..=0xf8ff);
    is_live(c) && !is_ordinary
}

/// Whether a character shows what it is, wherever it stands.
pub fn is_inert(c: char) -> bool {
    !is_live(c) && !is_mark(c)
}

fn cut(bytes: usize) -> String {
    format!("… (+{bytes} bytes)")
}

/// What [`cut`] takes beside its digits.
const MARKER_COLUMNS: usize = 11;

/// The longest beginning that still leaves room for the marker.
#[derive(Default, Clone, Copy)]
struct Fit {
    /// Bytes of the shown text.
    shown: usize,
    /// Bytes of the original it stands for.
    taken: usize,
}

#[derive(Default)]
struct Shown {
    text: String,
    columns: usize,
    marks: usize,
}

impl Shown {
    fn push(&mut self, c: char, mixed: bool) {
        // A mark at the very beginning would sit on a character of ours.
        let stacked = is_mark(c) && (self.text.is_empty() || self.marks >= MOST_MARKS);
        self.marks = if is_mark(c) { self.marks + 1 } else { 0 };
        if let Some(picture) = picture(c) {
            self.text.push(picture);
            self.columns += 1;
        } else if is_live(c) || stacked || mixed {
            let mark = format!("⟨U+{:04X}⟩", u32::from(c));
            self.columns += mark.chars().count();
            self.text.push_str(&mark);
        } else {
            self.text.push(c);
            self.columns += width(c);
        }
    }

    fn cut_to(mut self, fits: Fit, total: usize) -> (String, usize) {
        let hidden = total - fits.taken;
        self.text.truncate(fits.shown);
        self.text.push_str(&cut(hidden));
        (self.text, hidden)
    }

    fn fit(&self, taken: usize, columns: usize, total: usize, before: Fit) -> Fit {
        let marker = match total - taken {
            0 => 0,
            rest => MARKER_COLUMNS + rest.ilog10() as usize + 1,
        };
        if self.columns.saturating_add(marker) <= columns {
            return Fit {
                shown: self.text.len(),
                taken,
            };
        }
        before
    }
}

/// Each character with its offset, and whether it looks like a Latin letter inside a word that has
/// real ones.
fn characters(text: &str) -> impl Iterator<Item = (usize, char, bool)> {
    let mut window_end = 0;
    let mut in_word = false;
    let mut latin = false;
    text.char_indices().map(move |(at, c)| {
        if !c.is_alphanumeric() {
            in_word = false;
            return (at, c, false);
        }
        if !in_word || at >= window_end {
            let letters = text[at..]
                .chars()
                .take(WORD_WINDOW)
                .take_while(|c| c.is_alphanumeric());
            let (bytes, found) = letters.fold((0, false), |(bytes, found), c| {
                (bytes + c.len_utf8(), found || c.is_ascii_alphabetic())
            });
            latin = found || (in_word && latin);
            window_end = at + bytes;
            in_word = true;
        }
        (at, c, latin && resembles_latin(c))
    })
}

/// C0 and DEL have pictures of their own, one column each.
fn picture(c: char) -> Option<char> {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    }
}

/// Whether a character acts instead of being seen: controls, format characters (bidirectional
/// overrides and zero-width ones among them), separators that break lines, fillers and selectors
/// that show nothing, and code points without a meaning of their own. The bar that only we start a row
/// of a card with is one of them, and so is what passes for it.
fn is_live(c: char) -> bool {
    let code = u32::from(c);
    if code < 0x7f {
        return code < 0x20;
    }
    matches!(code,
        0x7f..=0x9f | 0xad
        | 0x034f | 0x0600..=0x0605 | 0x061c | 0x06dd | 0x070f | 0x0890..=0x0891 | 0x08e2
        | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
        | 0x2503 | 0x2588..=0x2590 | 0x2758..=0x275a
        | 0x2800 | 0x3164
        | 0xe000..=0xf8ff | 0xfdd0..=0xfdef | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
        | 0xfff0..=0xfffc
        | 0x1_10bd | 0x1_10cd | 0x1_3430..=0x1_345f | 0x1_bca0..=0x1_bca3
        | 0x1_d159 | 0x1_d173..=0x1_d17a
        | 0xe_0000..=0x10_ffff)
        || code & 0xfffe == 0xfffe
}

fn is_mark(c: char) -> bool {
    matches!(u32::from(c),
        0x0300..=0x036f | 0x0483..=0x0489 | 0x0591..=0x05bd | 0x0610..=0x061a
        | 0x064b..=0x065f | 0x0e31 | 0x0e34..=0x0e3a | 0x0e47..=0x0e4e
        | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

/// Scripts whose letters pass for Latin ones. A word of one of them alone is left as it is.
fn resembles_latin(c: char) -> bool {
    matches!(u32::from(c),
        0x0370..=0x03ff | 0x0400..=0x052f | 0x0531..=0x058f | 0x13a0..=0x13ff
        | 0x1c80..=0x1c8f | 0x2100..=0x214f | 0xab70..=0xabbf | 0xff21..=0xff5a
        | 0x1_d400..=0x1_d7ff)
}

/// Columns a character takes, or more: a line that is thought too short would wrap, and go on where
/// only our own words begin.
pub fn width(c: char) -> usize {
    match u32::from(c) {
        _ if is_mark(c) => 0,
        0x1100..=0x115f
        | 0x231a..=0x23ff
        | 0x25fd..=0x27bf
        | 0x2b00..=0x2bff
        | 0x2e80..=0xa4cf
        | 0xa960..=0xa97f
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1_6fe0..=0x1_b2ff
        | 0x1_d300..=0x1_d37f
        | 0x1_f000..=0x1_faff
        | 0x2_0000..=0x3_fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_any_script_stands_as_it_is() {
        for text in [
            "",
            "hello, world",
            "a\\b `c` \"d\"",
            "café naïve",
            "привет мир",
            "日本語 テキスト",
            "עברית",
            "emoji 🚀",
        ] {
            assert_eq!(whole(text), text);
        }
    }

    #[test]
    fn no_output_ever_contains_a_live_character() {
        for code in 0..=0x10_ffffu32 {
            let Some(c) = char::from_u32(code) else {
                continue;
            };
            let shown = whole(&format!("a{c}b"));
            assert!(!shown.chars().any(is_live), "U+{code:04X} gave {shown:?}");
            assert!(!shown.contains('\n'), "U+{code:04X}");
        }
    }

    #[test]
    fn every_control_character_of_rust_and_every_default_ignorable_range_counts_as_live() {
        for code in 0..=0x10_ffffu32 {
            if let Some(c) = char::from_u32(code).filter(|c| c.is_control()) {
                assert!(is_live(c), "U+{code:04X}");
            }
        }
        for c in "\u{200b}\u{200d}\u{200e}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{ad}\u{e0041}\u{fe0f}\u{e0100}\u{3164}\u{2028}".chars() {
            assert!(is_live(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn escape_sequences_become_pictures() {
        assert_eq!(whole("\x1b[31mred\x1b[0m"), "␛[31mred␛[0m");
        assert_eq!(whole("\x1b]0;title\x07"), "␛]0;title␇");
        assert_eq!(whole("a\r\nb\tc\x7f\0"), "a␍␊b␉c␡␀");
    }

    #[test]
    fn c1_controls_and_bidirectional_overrides_are_named() {
        assert_eq!(whole("\u{9b}31m"), "⟨U+009B⟩31m");
        assert_eq!(whole("user\u{202e}txt.exe"), "user⟨U+202E⟩txt.exe");
        assert_eq!(whole("\u{2066}x\u{2069}"), "⟨U+2066⟩x⟨U+2069⟩");
    }

    #[test]
    fn invisible_characters_are_named() {
        assert_eq!(whole("a\u{200b}b\u{feff}"), "a⟨U+200B⟩b⟨U+FEFF⟩");
        // Text hidden in tag characters.
        assert_eq!(whole("\u{e0068}\u{e0069}"), "⟨U+E0068⟩⟨U+E0069⟩");
        assert_eq!(whole("pay\u{3164}pal"), "pay⟨U+3164⟩pal");
    }

    #[test]
    fn stacks_of_marks_are_flattened_and_none_sits_on_what_stands_before() {
        assert_eq!(whole("e\u{301}"), "e\u{301}");
        assert_eq!(
            whole("e\u{301}\u{302}\u{303}\u{304}"),
            "e\u{301}\u{302}⟨U+0303⟩⟨U+0304⟩"
        );
        assert_eq!(whole("\u{301}x"), "⟨U+0301⟩x");
    }

    #[test]
    fn look_alikes_inside_a_latin_word_are_named() {
        assert_eq!(whole("p\u{430}ypal.com"), "p⟨U+0430⟩ypal.com");
        assert_eq!(whole("рауоар"), "рауоар");
        assert_eq!(whole("ключ key"), "ключ key");
        assert_eq!(whole("\u{1d429}ay"), "⟨U+1D429⟩ay");
    }

    #[test]
    fn a_long_text_is_cut_with_a_count_and_never_exceeds_the_columns() {
        let shown = line(&"x".repeat(1000), 40);
        assert_eq!(shown, format!("{}… (+974 bytes)", "x".repeat(26)));
        for columns in 16..60 {
            for text in [
                "x".repeat(500),
                "\u{202e}".repeat(100),
                "日本".repeat(100),
                "\n".repeat(99),
                format!("{}é", "y".repeat(columns)),
            ] {
                let shown = line(&text, columns);
                let taken: usize = shown.chars().map(width).sum();
                assert!(taken <= columns, "{taken} > {columns}: {shown}");
            }
        }
    }

    #[test]
    fn what_just_fits_is_not_cut() {
        for n in 0..50 {
            let text = "z".repeat(n);
            assert_eq!(line(&text, n), text);
            assert_eq!(line(&text, n + 1), text);
        }
    }

    #[test]
    fn a_huge_text_costs_no_more_than_its_beginning() {
        let started = std::time::Instant::now();
        for huge in ["word ".repeat(4_000_000), "x".repeat(20_000_000)] {
            for _ in 0..1000 {
                line(&huge, 100);
            }
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn the_count_is_of_the_bytes_left_out() {
        let text = format!("{}{}", "a".repeat(30), "é".repeat(100));
        let shown = line(&text, 40);
        let (head, rest) = shown.split_once('…').expect("a marker");
        assert_eq!(rest, format!(" (+{} bytes)", text.len() - head.len()));
    }
}
