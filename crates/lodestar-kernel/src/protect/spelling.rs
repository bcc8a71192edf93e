//! The ways one place can be spelt.
//!
//! Too many spellings only make an action L5 that a human can look at again under another name; one
//! too few lets it through. So every reading of a text that some program makes is made here too.

use std::borrow::Cow;
use std::path::Path;

/// How often an encoding is undone: twice encoded is a known trick, more is nobody's file name.
const MAX_DECODING: usize = 4;

/// Most readings of one text with braces: enough for a trick, too few for a bomb.
const MAX_BRACES: usize = 64;

/// Every reading of a text as a path.
pub(super) fn of<'a>(text: &'a str, home: Option<&Path>) -> Vec<Cow<'a, str>> {
    // Of letters, digits, dots, dashes and slashes alone nobody makes anything else.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/');
    if text.bytes().all(is_plain) {
        return vec![Cow::Borrowed(text)];
    }
    let mut found: Vec<Cow<'a, str>> = vec![Cow::Borrowed(text)];
    let mut add = |candidate: Cow<'a, str>| {
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    };
    let plain = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    if plain.len() != text.len() {
        add(Cow::Borrowed(plain));
    }
    if text.contains('\\') {
        add(Cow::Owned(text.replace('\\', "/")));
        add(Cow::Owned(unescape(text)));
    }
    let mut decoded = plain.to_owned();
    for _ in 0..MAX_DECODING {
        let Some(next) = percent_decode(&decoded) else {
            break;
        };
        decoded = next;
        add(Cow::Owned(decoded.clone()));
    }
    let all: Vec<String> = found.iter().map(|one| one.clone().into_owned()).collect();
    for one in &all {
        if let Some(path) = strip_scheme(one) {
            found.push(Cow::Owned(path.to_owned()));
        }
        if let Some(path) = expand_home(one, home) {
            found.push(Cow::Owned(path));
        }
        if one.contains('{') {
            found.extend(expand_braces(one).into_iter().map(Cow::Owned));
        }
    }
    found
}

/// The words of a command line, and the parts of a word that a program may take for a path.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = vec![text.to_owned()];
    let unquoted: String = text
        .chars()
        .filter(|c| !matches!(c, '"' | '\'' | '\\' | '`'))
        .collect();
    let is_separator = |c: char| c.is_whitespace() || ";|&<>()$`\"'".contains(c);
    for line in [text, &unquoted] {
        for word in line.split(is_separator).filter(|word| !word.is_empty()) {
            found.push(word.to_owned());
            found.extend(parts(word));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// `--file=x`, `if=x`, `host:x`, `a,b`, `@x`, `-Cx`: what may be a path inside one word.
fn parts(word: &str) -> Vec<String> {
    let mut found: Vec<String> = word
        .split(['=', ':', ',', '@', '#', '+'])
        .filter(|part| !part.is_empty() && part.len() < word.len())
        .map(str::to_owned)
        .collect();
    let bytes = word.as_bytes();
    if bytes.first() == Some(&b'-') && word.is_char_boundary(2) && bytes.len() > 2 {
        found.push(word[2..].to_owned());
    }
    found
}

/// A name without what some file systems do not tell apart: case, and dots or spaces at its end.
pub(super) fn fold(name: &str) -> Cow<'_, str> {
    let trimmed = name.trim_end_matches([' ', '.']);
    let name = if trimmed.is_empty() { name } else { trimmed };
    if name
        .bytes()
        .all(|b| b.is_ascii() && !b.is_ascii_uppercase())
    {
        return Cow::Borrowed(name);
    }
    let folded = name.chars().filter(|c| !is_invisible(*c)).map(narrow);
    Cow::Owned(folded.flat_map(char::to_lowercase).collect())
}

/// Full-width letters, which some systems fold into plain ones.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{212a}' => 'k',
        '\u{017f}' => 's',
        c => c,
    }
}

/// What some file systems pass over in names.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{00ad}')
}

/// Whether some characters of a name may stand for others, as in a shell.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a folded name, in which `*`, `?` and `[…]` stand for characters as in a shell, may mean
/// this name. A pattern that begins with `*`, or has no letter of its own, names everything and
/// therefore nothing: `*` and `*.json` are not ways to spell a file.
pub(super) fn may_mean(pattern: &str, name: &str) -> bool {
    let letters = pattern.chars().filter(|c| !"*?[]".contains(*c)).count();
    if pattern.starts_with('*') || letters == 0 {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    glob(&pattern, &name)
}

/// Matching by rows: never worse than the product of both lengths.
fn glob(pattern: &[char], name: &[char]) -> bool {
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    let mut at = 0;
    while at < pattern.len() {
        let mut next = vec![false; name.len() + 1];
        let (length, one) = match pattern[at] {
            '*' => {
                let first = reached.iter().position(|&here| here);
                if let Some(first) = first {
                    next[first..].fill(true);
                }
                reached = next;
                at += 1;
                continue;
            }
            '?' => (1, Stands::Any),
            '[' => match class_length(&pattern[at..]) {
                // What a class holds does not matter here: it may hold the letter.
                Some(length) => (length, Stands::Any),
                None => (1, Stands::For('[')),
            },
            c => (1, Stands::For(c)),
        };
        for (i, &here) in reached.iter().enumerate().take(name.len()) {
            if here && one.fits(name[i]) {
                next[i + 1] = true;
            }
        }
        reached = next;
        at += length;
    }
    reached[name.len()]
}

enum Stands {
    Any,
    For(char),
}

impl Stands {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Any => true,
            Self::For(this) => *this == c,
        }
    }
}

fn class_length(pattern: &[char]) -> Option<usize> {
    pattern
        .iter()
        .skip(1)
        .position(|&c| c == ']')
        .map(|at| at + 2)
}

fn strip_scheme(text: &str) -> Option<&str> {
    let scheme = text
        .get(..5)
        .filter(|start| start.eq_ignore_ascii_case("file:"))?;
    let rest = &text[scheme.len()..];
    let Some(authority) = rest.strip_prefix("//") else {
        return Some(rest);
    };
    authority.find('/').map(|at| &authority[at..])
}

fn expand_home(text: &str, home: Option<&Path>) -> Option<String> {
    let home = home?.to_str()?;
    let rest = ["~", "$HOME", "${HOME}"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{home}{rest}"))
}

/// `{a,b}`: each of them in its place, group by group.
fn expand_braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() >= MAX_BRACES {
            break;
        }
        // The innermost group first, so that groups within groups come out too.
        let group = text.find('}').and_then(|close| {
            let start = text[..close].rfind('{')?;
            Some((start, close))
        });
        let Some((start, close)) = group else {
            done.push(text);
            continue;
        };
        let (before, after) = (&text[..start], &text[close + 1..]);
        let items = text[start + 1..close].split(',');
        open.extend(items.map(|item| format!("{before}{item}{after}")));
    }
    done
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            out.extend(chars.next());
        } else {
            out.push(c);
        }
    }
    out
}

/// One round of percent-decoding; `None` if there is nothing to decode.
fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut found = false;
    while at < bytes.len() {
        let decoded = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match decoded {
            Some(byte) => {
                out.push(byte);
                at += 3;
                found = true;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    found
        .then(|| String::from_utf8(out).ok())
        .flatten()
        .filter(|decoded| !decoded.contains('\0'))
}
