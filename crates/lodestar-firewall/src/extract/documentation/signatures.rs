//! Function signatures in source text, by the first words of a line.

use super::found::{Found, Kind};

/// Lines that one signature may go over, and its longest text in bytes.
const MAX_CONTINUED: usize = 16;
const MAX_SIGNATURE: usize = 1024;

/// How a language writes the start of a function.
enum Style {
    /// Modifiers, then this keyword, then the name.
    Keyword(&'static str, &'static [&'static str]),
    /// At least one modifier, then a type and the name.
    Modifiers(&'static [&'static str]),
    /// A type and the name at the very start of a line.
    Bare,
}

const KOTLIN: &[&str] = &[
    "public",
    "private",
    "protected",
    "internal",
    "open",
    "override",
    "suspend",
    "inline",
    "abstract",
    "final",
    "operator",
    "infix",
    "static",
    "mutating",
    "class",
    "fileprivate",
];
const JVM: &[&str] = &[
    "public",
    "private",
    "protected",
    "internal",
    "static",
    "final",
    "abstract",
    "override",
    "virtual",
    "sealed",
    "async",
    "synchronized",
    "native",
    "default",
    "partial",
    "readonly",
];

fn style(language: &str) -> Option<Style> {
    Some(match language {
        "rust" => Style::Keyword(
            "fn",
            &["pub", "async", "const", "unsafe", "extern", "default"],
        ),
        "python" => Style::Keyword("def", &["async"]),
        "ruby" => Style::Keyword("def", &["private", "public", "protected"]),
        "go" => Style::Keyword("func", &[]),
        "javascript" | "typescript" => {
            Style::Keyword("function", &["export", "default", "async", "declare"])
        }
        "php" => Style::Keyword("function", JVM),
        "kotlin" => Style::Keyword("fun", KOTLIN),
        "swift" => Style::Keyword("func", KOTLIN),
        "java" | "csharp" => Style::Modifiers(JVM),
        "c" | "cpp" => Style::Bare,
        _ => return None,
    })
}

/// Reads signatures line by line.
pub(super) struct Signatures {
    found: Found,
    language: &'static str,
    open: Option<Open>,
}

/// A signature whose parentheses are not closed yet.
struct Open {
    name: String,
    text: String,
    depth: usize,
    lines: usize,
}

impl Signatures {
    /// Whether functions of the language are recognised.
    pub(super) fn knows(language: &str) -> bool {
        style(language).is_some()
    }

    pub(super) fn new() -> Self {
        Self {
            found: Found::new(Kind::Signature),
            language: "",
            open: None,
        }
    }

    pub(super) fn begin(&mut self, language: &'static str) {
        self.finish();
        self.language = language;
    }

    pub(super) fn line(&mut self, line: &str) {
        if let Some(open) = &mut self.open {
            open.text.push(' ');
            open.append(line.trim());
        } else if let Some(name) = style(self.language).and_then(|style| name(&style, line)) {
            let mut open = Open {
                name: name.to_owned(),
                text: String::new(),
                depth: 0,
                lines: 0,
            };
            open.append(line.trim());
            self.open = Some(open);
        }
        if self.open.as_ref().is_some_and(Open::is_complete) {
            self.finish();
        }
    }

    pub(super) fn end(&mut self) {
        self.finish();
        self.language = "";
    }

    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            let text = open.text.trim_end_matches([' ', ':', ';', '{', '=']);
            self.found.signature(self.language, &open.name, text);
        }
    }

    pub(super) fn into_found(mut self) -> Found {
        self.finish();
        self.found
    }
}

impl Open {
    /// Takes the line up to where a body starts.
    fn append(&mut self, line: &str) {
        self.lines += 1;
        for c in line.chars() {
            match c {
                '(' | '[' => self.depth += 1,
                ')' | ']' => self.depth = self.depth.saturating_sub(1),
                '{' if self.depth == 0 => return,
                _ => {}
            }
            self.text.push(c);
        }
    }

    fn is_complete(&self) -> bool {
        self.depth == 0 || self.lines >= MAX_CONTINUED || self.text.len() >= MAX_SIGNATURE
    }
}

/// The name of the function whose signature starts on this line.
fn name<'a>(style: &Style, line: &'a str) -> Option<&'a str> {
    let trimmed = line.trim_start();
    match style {
        Style::Keyword(keyword, modifiers) => {
            let (_, rest) = strip_modifiers(trimmed, modifiers);
            let rest = rest.strip_prefix(keyword)?;
            let rest = rest.strip_prefix('*').unwrap_or(rest);
            let inner = rest.trim_start();
            // `func (r *T) Name`: the receiver comes first.
            let inner = match inner.strip_prefix('(') {
                Some(receiver) if *keyword == "func" => receiver.split_once(')')?.1.trim_start(),
                Some(_) => return None,
                None if inner.len() == rest.len() => return None,
                None => inner,
            };
            let name = identifier(inner)?;
            let after = inner[name.len()..].trim_start();
            (after.starts_with(['(', '<', '[']) || (*keyword == "def" && after.is_empty()))
                .then_some(name)
        }
        Style::Modifiers(modifiers) => {
            let (count, rest) = strip_modifiers(trimmed, modifiers);
            (count > 0)
                .then(|| name_before_parenthesis(rest, 0))
                .flatten()
        }
        Style::Bare => name_before_parenthesis(line, 1),
    }
}

/// The words in front, `pub(crate)` and `extern "C"` included: how many, and what follows.
fn strip_modifiers<'a>(line: &'a str, modifiers: &[&str]) -> (usize, &'a str) {
    let mut rest = line;
    let mut count = 0;
    loop {
        let end = rest.find([' ', '\t', '(']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if !modifiers.contains(&word) {
            return (count, rest);
        }
        let after = match after.strip_prefix('(') {
            Some(inner) => inner.split_once(')').map_or("", |(_, after)| after),
            None => after,
        };
        let after = after.trim_start();
        rest = match after.strip_prefix('"') {
            Some(inner) => inner
                .split_once('"')
                .map_or("", |(_, after)| after.trim_start()),
            None => after,
        };
        count += 1;
    }
}

/// `Type name(`: the name, with at least so many words before it and nothing that is no declaration.
fn name_before_parenthesis(line: &str, words_before: usize) -> Option<&str> {
    let (head, _) = line.split_once('(')?;
    let head = head.trim_end();
    let fine = |c: char| c.is_alphanumeric() || " \t_*&:<>[],?.~".contains(c);
    let starts_well = head.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '<'));
    if !starts_well || !head.chars().all(fine) {
        return None;
    }
    let start = head
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| {
            at + head[at..].chars().next().map_or(1, char::len_utf8)
        });
    let before = head[..start].split_ascii_whitespace();
    let first = head.split_ascii_whitespace().next()?;
    let is_statement = [
        "return", "if", "else", "while", "for", "switch", "case", "new", "throw", "delete", "goto",
        "do", "using", "typedef", "class",
    ]
    .contains(&first);
    let name = identifier(&head[start..])?;
    (!is_statement && before.count() >= words_before).then_some(name)
}

fn identifier(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '?' | '!' | '.')))
        .unwrap_or(text.len());
    let name = &text[..end];
    let starts_well = name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    starts_well.then_some(name)
}
