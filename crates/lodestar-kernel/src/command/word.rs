//! Words: quotes, escapes and expansions, down to the scripts that run inside them.

use super::parse::Parser;
use super::syntax::{Expansion, Script, Unread, Word};

impl Parser {
    /// A word; empty where none begins.
    pub(super) fn word(&mut self) -> Result<Word, Unread> {
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' => {
                    if self.peek_at(1) != Some('(') {
                        break;
                    }
                    self.at += 2;
                    let script = self.enclosed()?;
                    word.push_expansion(Expansion::Process(script), true);
                }
                '\\' => {
                    self.next()?;
                    match self.next()? {
                        Some('\n') => {}
                        Some(c) => word.push_text(c.encode_utf8(&mut [0; 4]), true),
                        None => return Err(Unread::Open("an escape")),
                    }
                }
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backticks(&mut word, false)?,
                _ => {
                    self.next()?;
                    word.push_text(c.encode_utf8(&mut [0; 4]), false);
                }
            }
        }
        Ok(word)
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Unread> {
        self.next()?;
        word.quoted = true;
        loop {
            match self.next()? {
                Some('\'') => return Ok(()),
                Some(c) => word.push_text(c.encode_utf8(&mut [0; 4]), true),
                None => return Err(Unread::Open("a quote")),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Unread> {
        self.next()?;
        word.quoted = true;
        self.deeper(|parser| {
            loop {
                match parser.peek() {
                    None => return Err(Unread::Open("a quote")),
                    Some('"') => return parser.next().map(drop),
                    Some(_) => parser.in_double(word, &['$', '`', '"', '\\'])?,
                }
            }
        })
    }

    /// One character or expansion where only `$`, backticks and the backslash mean something.
    fn in_double(&mut self, word: &mut Word, escaped: &[char]) -> Result<(), Unread> {
        match self.peek() {
            Some('$') => self.dollar(word, true),
            Some('`') => self.backticks(word, true),
            Some('\\') => {
                self.next()?;
                match self.next()? {
                    Some('\n') => {}
                    Some(c) if escaped.contains(&c) => {
                        word.push_text(c.encode_utf8(&mut [0; 4]), true);
                    }
                    Some(c) => {
                        word.push_text("\\", true);
                        word.push_text(c.encode_utf8(&mut [0; 4]), true);
                    }
                    None => word.push_text("\\", true),
                }
                Ok(())
            }
            Some(c) => {
                self.next()?;
                word.push_text(c.encode_utf8(&mut [0; 4]), true);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The text of a here-document whose delimiter is not quoted.
    pub(super) fn here_word(&mut self) -> Result<Word, Unread> {
        let mut word = Word {
            quoted: true,
            ..Word::default()
        };
        while self.peek().is_some() {
            self.in_double(&mut word, &['$', '`', '\\'])?;
        }
        Ok(word)
    }

    fn backticks(&mut self, word: &mut Word, quoted: bool) -> Result<(), Unread> {
        self.next()?;
        let mut text = String::new();
        loop {
            match self.next()? {
                Some('`') => break,
                Some('\\') => match self.next()? {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some('"') if quoted => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                    None => return Err(Unread::Open("a backtick")),
                },
                Some(c) => text.push(c),
                None => return Err(Unread::Open("a backtick")),
            }
        }
        let script = self.inner(&text, Self::whole)?;
        word.push_expansion(Expansion::Command(script), quoted);
        Ok(())
    }

    fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), Unread> {
        self.next()?;
        self.not_continued()?;
        let Some(c) = self.peek() else {
            word.push_text("$", quoted);
            return Ok(());
        };
        match c {
            '(' => {
                self.at += 1;
                let continued = self.not_continued();
                self.at -= 1;
                continued?;
                if self.peek_at(1) == Some('(') {
                    let start = self.at;
                    self.at += 2;
                    if let Some(inner) = self.deeper(|parser| parser.arithmetic("))"))? {
                        // Shells do not agree on what is no expression: some run it.
                        if !super::arithmetic::is_expression(&inner) {
                            return Err(Unread::Foreign("`$((` before what could be a command"));
                        }
                        word.push_expansion(Expansion::Arithmetic(inner), quoted);
                        return Ok(());
                    }
                    self.at = start;
                }
                self.next()?;
                let script: Script = self.enclosed()?;
                word.push_expansion(Expansion::Command(script), quoted);
            }
            '{' => {
                self.next()?;
                let parameter = self.deeper(|parser| parser.parameter(quoted))?;
                word.push_expansion(parameter, quoted);
            }
            '\'' if !quoted => self.ansi(word)?,
            '"' if !quoted => self.double(word)?,
            '[' => return Err(Unread::Foreign("`$[`")),
            _ if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name()?;
                // zsh reads `$name[…]` as an element, and `$name:h` as a part.
                let rest = Word::default();
                word.push_expansion(parameter(name, rest), quoted);
            }
            '@' | '*' | '#' | '?' | '-' | '$' | '!' | '0'..='9' => {
                self.next()?;
                word.push_expansion(parameter(c.to_string(), Word::default()), quoted);
            }
            _ => word.push_text("$", quoted),
        }
        Ok(())
    }

    fn name(&mut self) -> Result<String, Unread> {
        let mut name = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            self.next()?;
            name.push(c);
        }
        self.not_continued()?;
        Ok(name)
    }

    /// Shells join lines before they look for what `$` begins: here that would have to be guessed.
    fn not_continued(&self) -> Result<(), Unread> {
        match self.looking_at("\\\n") {
            true => Err(Unread::Foreign(
                "an expansion that goes on in the next line",
            )),
            false => Ok(()),
        }
    }

    /// What stands behind `${`.
    fn parameter(&mut self, quoted: bool) -> Result<Expansion, Unread> {
        let marks =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || "_@*?$!".contains(c));
        let indirect = self.peek() == Some('!') && marks(self.peek_at(1)) && self.take("!");
        let length = self.peek() == Some('#') && marks(self.peek_at(1)) && self.take("#");
        let mut name = self.name()?;
        if name.is_empty() {
            match self.peek() {
                Some(c @ ('@' | '*' | '#' | '?' | '-' | '$' | '!')) => {
                    self.next()?;
                    name.push(c);
                }
                _ => return Err(Unread::Foreign("an expansion that has no name")),
            }
        }
        self.not_continued()?;
        let mut rest = Word::default();
        let mut index = None;
        if self.peek() == Some('[') {
            self.next()?;
            index = Some(self.subscript()?.ok_or(Unread::Open("an index"))?);
            self.not_continued()?;
        }
        let transforms = self.peek() == Some('@');
        let assigns = self.looking_at(":=") || self.looking_at("=");
        // A `(` opens flags of zsh, which can run code.
        loop {
            match self.peek() {
                None => return Err(Unread::Open("`${`")),
                Some('}') => break,
                Some('$') => self.dollar(&mut rest, quoted)?,
                Some('`') => self.backticks(&mut rest, quoted)?,
                Some('\'') if quoted => return Err(Unread::Foreign("a quote in a quoted `${`")),
                Some('\'') => self.single(&mut rest)?,
                Some('"') => self.double(&mut rest)?,
                Some('\\') => {
                    self.not_continued()?;
                    self.next()?;
                    if let Some(c) = self.next()? {
                        rest.push_text(c.encode_utf8(&mut [0; 4]), true);
                    }
                }
                Some('{' | '(' | '<' | '>' | '\n') => {
                    return Err(Unread::Foreign("an expansion that is not plain"));
                }
                Some(c) => {
                    self.next()?;
                    rest.push_text(c.encode_utf8(&mut [0; 4]), false);
                }
            }
        }
        self.next()?;
        Ok(Expansion::Parameter {
            name,
            indirect: indirect || transforms,
            length,
            assigns,
            index,
            rest,
        })
    }

    /// An index up to its bracket; none where it is not closed on this line.
    pub(super) fn subscript(&mut self) -> Result<Option<Word>, Unread> {
        let mut word = Word::default();
        loop {
            match self.peek() {
                None | Some('\n' | ' ' | '[' | '\'' | '(' | ')' | ';' | '|' | '&' | '<' | '>') => {
                    return Ok(None);
                }
                Some(']') => {
                    self.next()?;
                    return Ok(Some(word));
                }
                Some(_) => self.in_double(&mut word, &['$', '`', '\\'])?,
            }
        }
    }

    /// `((…))` where a command stands; none where it is two subshells.
    pub(super) fn arithmetic_command(&mut self) -> Result<Option<Word>, Unread> {
        let start = self.at;
        self.at += 2;
        let word = self.deeper(|parser| parser.arithmetic("))"))?;
        match word {
            // Some shells run two subshells here, and words side by side are no expression.
            Some(word) if !super::arithmetic::is_expression(&word) => {
                Err(Unread::Foreign("`((` before what could be a command"))
            }
            Some(word) => Ok(Some(word)),
            None => {
                self.at = start;
                Ok(None)
            }
        }
    }

    /// An arithmetic expression up to its end; none if it holds what expressions do not hold.
    fn arithmetic(&mut self, end: &str) -> Result<Option<Word>, Unread> {
        let mut word = Word::default();
        let mut open = 0usize;
        loop {
            let Some(c) = self.peek() else {
                return Ok(None);
            };
            match c {
                '$' => self.dollar(&mut word, true)?,
                '`' => self.backticks(&mut word, true)?,
                ')' if open == 0 => {
                    return Ok(self.take(end).then_some(word));
                }
                _ => {
                    match c {
                        '(' => open += 1,
                        ')' => open -= 1,
                        _ if c.is_ascii_alphanumeric() => {}
                        ' ' | '\t' | '\n' | '_' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '='
                        | '!' | '&' | '|' | '^' | '~' | '?' | ':' | ',' | '#' | '[' | ']' | '.'
                        | ';' => {}
                        _ => {
                            self.not_continued()?;
                            return Ok(None);
                        }
                    }
                    self.next()?;
                    word.push_text(c.encode_utf8(&mut [0; 4]), false);
                }
            }
        }
    }

    /// `$'…'`.
    fn ansi(&mut self, word: &mut Word) -> Result<(), Unread> {
        self.next()?;
        word.quoted = true;
        loop {
            let c = match self.next()? {
                None => return Err(Unread::Open("a quote")),
                Some('\'') => return Ok(()),
                Some('\\') => self.escape()?,
                Some(c) => c,
            };
            // The shell ends the text at a NUL, whatever stands behind it.
            if c == '\0' {
                return Err(Unread::Foreign("an escape that ends the text"));
            }
            word.push_text(c.encode_utf8(&mut [0; 4]), true);
        }
    }

    fn escape(&mut self) -> Result<char, Unread> {
        let Some(c) = self.next()? else {
            return Err(Unread::Open("a quote"));
        };
        let code = match c {
            'n' => 0x0a,
            't' => 0x09,
            'r' => 0x0d,
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'v' => 0x0b,
            'e' | 'E' => 0x1b,
            'x' => self
                .digits(16, 2)?
                .ok_or(Unread::Foreign("an escape without digits"))?,
            'u' => self
                .digits(16, 4)?
                .ok_or(Unread::Foreign("an escape without digits"))?,
            'U' => self
                .digits(16, 8)?
                .ok_or(Unread::Foreign("an escape without digits"))?,
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3)?.unwrap_or(0) & 0xff
            }
            '\\' | '\'' | '"' | '?' => u32::from(c),
            // `\cX`, and what shells read in different ways.
            _ => {
                return Err(Unread::Foreign(
                    "an escape that shells read in different ways",
                ));
            }
        };
        // A byte above ASCII is part of a character that only the shell puts together.
        Ok(match code {
            0x80..=0xff if matches!(c, 'x' | '0'..='7') => char::REPLACEMENT_CHARACTER,
            code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
        })
    }

    fn digits(&mut self, radix: u32, most: usize) -> Result<Option<u32>, Unread> {
        let mut value: Option<u32> = None;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.next()?;
            let so_far = value.unwrap_or(0);
            value = Some(so_far.saturating_mul(radix).saturating_add(digit));
        }
        Ok(value)
    }
}

fn parameter(name: String, rest: Word) -> Expansion {
    Expansion::Parameter {
        name,
        indirect: false,
        length: false,
        assigns: false,
        index: None,
        rest,
    }
}
