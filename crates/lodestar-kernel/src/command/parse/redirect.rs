//! Assignments, redirections, and the texts of here-documents.

use super::Parser;
use crate::command::syntax::{Assign, Command, Redirect, Script, Unread, Way, Word, is_name};

/// A here-document whose text is still to come.
#[derive(Debug)]
pub(super) struct Pending {
    delimiter: String,
    tabs: bool,
    expands: bool,
    slot: usize,
}

impl Parser {
    /// `name=value`, `name+=value`, `name[index]=value`, `name=(values)`.
    pub(super) fn assign(&mut self) -> Result<Option<Assign>, Unread> {
        let start = self.at;
        let mut name = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            name.push(c);
            self.next()?;
        }
        if !is_name(&name) {
            self.at = start;
            return Ok(None);
        }
        let mut index = None;
        if self.peek() == Some('[') {
            self.next()?;
            match self.subscript()? {
                Some(word) => index = Some(word),
                None => {
                    self.at = start;
                    return Ok(None);
                }
            }
        }
        if !(self.take("+=") || self.take("=")) {
            self.at = start;
            return Ok(None);
        }
        if !self.take("(") {
            let values = vec![self.word()?];
            return Ok(Some(Assign {
                name,
                values,
                index,
            }));
        }
        let mut values = Vec::new();
        loop {
            self.gap()?;
            if self.take(")") {
                break;
            }
            let word = self.word()?;
            if word.is_empty() {
                return Err(Unread::Open("an array"));
            }
            values.push(word);
        }
        Ok(Some(Assign {
            name,
            values,
            index,
        }))
    }

    pub(super) fn redirects(&mut self) -> Result<Vec<Redirect>, Unread> {
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Unread> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.next()?;
        }
        let process = self.looking_at("<(") || self.looking_at(">(");
        let both = self.looking_at("&>") && self.at == start;
        if process || !(both || matches!(self.peek(), Some('<' | '>'))) {
            self.at = start;
            return Ok(None);
        }
        const SIGNS: [(&str, Way); 11] = [
            ("&>>", Way::Write),
            ("&>", Way::Write),
            ("<<<", Way::Here),
            ("<<", Way::Here),
            ("<>", Way::ReadWrite),
            ("<&", Way::Duplicate),
            (">&", Way::Duplicate),
            (">>", Way::Write),
            (">|", Way::Write),
            ("<", Way::Read),
            (">", Way::Write),
        ];
        let sign = SIGNS.into_iter().find(|(sign, _)| self.take(sign));
        let (sign, way) = sign.ok_or(Unread::Missing("a redirection"))?;
        let tabs = sign == "<<" && self.take("-");
        // zsh: `>!` writes whatever stands in the way, and `>>!` too.
        if self.peek() == Some('!') {
            return Err(Unread::Foreign("a redirection of zsh"));
        }
        self.blanks()?;
        let target = self.word()?;
        if target.is_empty() {
            return Err(Unread::Missing("the target of a redirection"));
        }
        if sign != "<<" {
            return Ok(Some(Redirect { way, target }));
        }
        let delimiter = target.literal();
        let delimiter = delimiter.ok_or(Unread::Foreign("a delimiter that is not plain"))?;
        let slot = self.here.len();
        self.here.push(Word::default());
        self.pending.push(Pending {
            delimiter,
            tabs,
            expands: !target.quoted,
            slot,
        });
        // The number of the text, until it was read.
        let mut place = Word::default();
        place.push_text(&format!("{PLACE}{slot}"), true);
        Ok(Some(Redirect { way, target: place }))
    }

    /// A line break, and the here-documents that begin behind it.
    pub(super) fn line_break(&mut self) -> Result<(), Unread> {
        self.next()?;
        if self.waits_outside {
            return Err(Unread::Foreign("a here-document around a line break"));
        }
        for pending in std::mem::take(&mut self.pending) {
            let text = self.here_text(&pending)?;
            let mut word = Word::default();
            match pending.expands {
                false => word.push_text(&text, true),
                true => word = self.inner(&text, Self::here_word)?,
            }
            self.here[pending.slot] = word;
        }
        Ok(())
    }

    pub(super) fn here_text(&mut self, pending: &Pending) -> Result<String, Unread> {
        let mut text = String::new();
        let mut joined = String::new();
        let mut parts = 0usize;
        loop {
            if self.peek().is_none() {
                return Err(Unread::Open("a here-document"));
            }
            let mut line = String::new();
            while let Some(c) = self.next()?.filter(|c| *c != '\n') {
                line.push(c);
            }
            // Lines that are joined can make a delimiter, or take one in.
            if pending.expands {
                let escapes = line.chars().rev().take_while(|c| *c == '\\').count();
                let continues = escapes % 2 == 1;
                let this = line.trim_start_matches('\t');
                joined.push_str(&this[..this.len() - usize::from(continues)]);
                let ends = |text: &str| text.trim_start_matches('\t') == pending.delimiter;
                if (parts > 0 || continues) && (ends(&joined) || ends(this)) {
                    return Err(Unread::Foreign("a delimiter beside a line that goes on"));
                }
                parts += 1;
                if !continues {
                    joined.clear();
                    parts = 0;
                }
            }
            let line = match pending.tabs {
                true => line.trim_start_matches('\t'),
                false => &line,
            };
            if line == pending.delimiter {
                // The line break behind the delimiter ends the command, like any other.
                return Ok(text);
            }
            text.push_str(line);
            text.push('\n');
        }
    }

    /// Puts the texts of here-documents where they belong.
    pub(super) fn settle(&mut self, script: &mut Script) {
        let here = std::mem::take(&mut self.here);
        settle_script(script, &here);
    }
}

/// Stands before the number of a here-document; no word of a line holds it, because lines do not hold NUL.
const PLACE: char = '\0';

fn settle_script(script: &mut Script, here: &[Word]) {
    for pipeline in &mut script.pipelines {
        for command in &mut pipeline.commands {
            settle_command(command, here);
        }
    }
}

fn settle_command(command: &mut Command, here: &[Word]) {
    match command {
        Command::Simple(simple) => settle_redirects(&mut simple.redirects, here),
        Command::Compound(compound) => {
            settle_redirects(&mut compound.redirects, here);
            for script in &mut compound.scripts {
                settle_script(script, here);
            }
        }
        Command::Subshell(script, redirects) => {
            settle_redirects(redirects, here);
            settle_script(script, here);
        }
        Command::Function(_, body) => settle_command(body, here),
    }
}

fn settle_redirects(redirects: &mut [Redirect], here: &[Word]) {
    for redirect in redirects {
        let slot = redirect.target.literal().and_then(|text| {
            let number = text.strip_prefix(PLACE)?;
            number.parse::<usize>().ok()
        });
        if let Some(word) = slot.and_then(|slot| here.get(slot)) {
            redirect.target = word.clone();
        }
    }
}
