//! Markdown, reStructuredText and plain text, line by line: headings, code and prose.
//!
//! Not a renderer: what it finds is bounded and quoted, so a construct that it misreads costs an item.
//! One pass, one line of memory, no recursion; nothing that is nested is followed.

use crate::extract::lines::lines;

/// How a text is marked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup {
    Markdown,
    Rest,
    Plain,
}

/// What a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Heading { level: usize, text: &'a str },
    CodeStart { tag: &'a str },
    Code(&'a str),
    CodeEnd,
    Prose(&'a str),
}

/// A code block that is open.
#[derive(Clone, Copy)]
enum Code {
    Fence {
        mark: u8,
        length: usize,
    },
    /// Everything that is indented more than this.
    Indented {
        than: usize,
    },
}

struct Walk<'a, F> {
    markup: Markup,
    each: F,
    code: Option<Code>,
    /// The line before, if it can be the title over an underline.
    title: Option<&'a str>,
    /// reStructuredText orders its levels by first use.
    underlines: Vec<u8>,
}

/// Hands every piece of the text to `each`, in order; every code block that starts also ends.
pub(super) fn walk<'a>(text: &'a str, markup: Markup, each: &mut impl FnMut(Piece<'a>)) {
    let mut walk = Walk {
        markup,
        each,
        code: None,
        title: None,
        underlines: Vec::new(),
    };
    let skipped = match markup {
        Markup::Markdown => front_matter(text),
        Markup::Rest | Markup::Plain => 0,
    };
    lines(text).skip(skipped).for_each(|line| walk.line(line));
    walk.end_code();
}

/// How many lines a YAML header at the very start takes.
fn front_matter(text: &str) -> usize {
    let mut lines = lines(text);
    if lines.next() != Some("---") {
        return 0;
    }
    lines
        .position(|line| matches!(line, "---" | "..."))
        .map_or(0, |end| end + 2)
}

impl<'a, F: FnMut(Piece<'a>)> Walk<'a, F> {
    fn line(&mut self, line: &'a str) {
        let inner = line.trim_start();
        let indent = line.len() - inner.len();
        match self.code {
            Some(Code::Fence { mark, length }) => {
                if closes_fence(inner, mark, length) {
                    self.end_code();
                } else {
                    (self.each)(Piece::Code(line));
                }
                return;
            }
            Some(Code::Indented { than }) => {
                if inner.is_empty() || indent > than {
                    (self.each)(Piece::Code(inner));
                    return;
                }
                self.end_code();
            }
            None => {}
        }
        match self.markup {
            Markup::Markdown => self.markdown(line, inner, indent),
            Markup::Rest => self.rest(line, inner, indent),
            Markup::Plain => self.underlined(line, inner, indent),
        }
    }

    fn markdown(&mut self, line: &'a str, inner: &'a str, indent: usize) {
        if let Some((mark, length, tag)) = opens_fence(inner) {
            self.start_code(Code::Fence { mark, length }, tag);
        } else if let Some((level, text)) = hash_heading(inner).filter(|_| indent <= 3) {
            self.title = None;
            (self.each)(Piece::Heading { level, text });
        } else {
            self.underlined(line, inner, indent);
        }
    }

    fn rest(&mut self, line: &'a str, inner: &'a str, indent: usize) {
        match code_directive(inner) {
            Some(tag) => self.start_code(Code::Indented { than: indent }, tag),
            None => self.underlined(line, inner, indent),
        }
    }

    /// A title and a line of punctuation under it; everything else is prose.
    fn underlined(&mut self, line: &'a str, inner: &'a str, indent: usize) {
        let title = self.title.take();
        let Some(mark) = underline(inner.trim_end(), self.markup).filter(|_| indent <= 3) else {
            self.title = Some(inner.trim_end()).filter(|title| !title.is_empty());
            (self.each)(Piece::Prose(line));
            return;
        };
        let Some(text) = title else { return };
        // Elsewhere than in Markdown a short line of dashes is just a line of dashes.
        let long_enough = inner.trim_end().len() >= text.chars().count();
        if self.markup == Markup::Markdown || long_enough {
            let level = self.level(mark);
            (self.each)(Piece::Heading { level, text });
        }
    }

    fn level(&mut self, mark: u8) -> usize {
        if self.markup != Markup::Rest {
            return if mark == b'=' { 1 } else { 2 };
        }
        // At most one entry per mark of punctuation.
        let place = self.underlines.iter().position(|other| *other == mark);
        place.map_or_else(
            || {
                self.underlines.push(mark);
                self.underlines.len()
            },
            |place| place + 1,
        )
    }

    fn start_code(&mut self, code: Code, tag: &'a str) {
        self.title = None;
        self.code = Some(code);
        (self.each)(Piece::CodeStart { tag });
    }

    fn end_code(&mut self) {
        if self.code.take().is_some() {
            (self.each)(Piece::CodeEnd);
        }
    }
}

/// `## Text ##`: level and text.
fn hash_heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    if !(1..=6).contains(&level) || !(text.is_empty() || text.starts_with([' ', '\t'])) {
        return None;
    }
    let text = text.trim();
    let without = text.trim_end_matches('#');
    // Closing hashes only count behind a space: `C#` is a word.
    let closed = without.is_empty() || without.ends_with([' ', '\t']);
    let text = if closed { without.trim_end() } else { text };
    (!text.is_empty()).then_some((level, text))
}

/// Mark, length and language tag of a fence that opens.
fn opens_fence(line: &str) -> Option<(u8, usize, &str)> {
    let mark = *line.as_bytes().first().filter(|b| b"`~".contains(b))?;
    let tag = line.trim_start_matches(char::from(mark));
    let length = line.len() - tag.len();
    if length < 3 || (mark == b'`' && tag.contains('`')) {
        return None;
    }
    let tag = tag.trim_start().trim_start_matches(['{', '.']);
    let end = tag.find([' ', '\t', ',', '{', '}']).unwrap_or(tag.len());
    Some((mark, length, &tag[..end]))
}

fn closes_fence(line: &str, mark: u8, length: usize) -> bool {
    let line = line.trim_end();
    line.len() >= length && line.bytes().all(|byte| byte == mark)
}

/// The language of a directive that starts code.
fn code_directive(line: &str) -> Option<&str> {
    let (name, tag) = line.strip_prefix(".. ")?.split_once("::")?;
    matches!(name, "code-block" | "code" | "sourcecode" | "prompt")
        .then(|| tag.split_ascii_whitespace().next().unwrap_or(""))
}

/// The mark of a line that can underline a title.
fn underline(line: &str, markup: Markup) -> Option<u8> {
    let (&mark, rest) = line.as_bytes().split_first()?;
    let marks: &[u8] = match markup {
        Markup::Markdown | Markup::Plain => b"=-",
        Markup::Rest => b"=-~^\"'`+#*.:_<>",
    };
    let shortest = if markup == Markup::Markdown { 1 } else { 2 };
    (marks.contains(&mark) && line.len() >= shortest && rest.iter().all(|byte| *byte == mark))
        .then_some(mark)
}
