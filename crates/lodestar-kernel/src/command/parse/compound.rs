//! Compound commands: branches, loops, cases, conditions and functions.

use super::Parser;
use crate::command::syntax::{Command, Compound, Script, Unread, Word, is_name};

impl Parser {
    pub(super) fn body(&mut self, compound: &mut Compound) -> Result<(), Unread> {
        let mut script = Script::default();
        self.list(&mut script)?;
        if script.pipelines.is_empty() {
            return Err(Unread::Missing("a command"));
        }
        compound.scripts.push(script);
        Ok(())
    }

    pub(super) fn branches(&mut self, compound: &mut Compound) -> Result<(), Unread> {
        loop {
            self.body(compound)?;
            self.expect("then")?;
            self.body(compound)?;
            self.gap()?;
            match self.reserved() {
                Some("elif") => drop(self.take("elif")),
                Some("else") => {
                    self.take("else");
                    self.body(compound)?;
                    return self.expect("fi");
                }
                _ => return self.expect("fi"),
            }
        }
    }

    pub(super) fn each(&mut self, compound: &mut Compound) -> Result<(), Unread> {
        compound.repeats = true;
        self.blanks()?;
        if self.looking_at("((") {
            let word = self
                .arithmetic_command()?
                .ok_or(Unread::Foreign("an arithmetic loop that is not plain"))?;
            compound.expressions.push(word);
        } else {
            let name = self.word()?.bare().filter(|name| is_name(name));
            let name = name.ok_or(Unread::Missing("the name of a variable"))?;
            self.gap()?;
            let mut words = Vec::new();
            let named = self.looking_at("in")
                && self
                    .peek_at(2)
                    .is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';'));
            if named {
                self.at += 2;
                loop {
                    self.blanks()?;
                    let word = self.word()?;
                    if word.is_empty() {
                        break;
                    }
                    words.push(word);
                }
            }
            compound.each = Some((name, words));
        }
        self.blanks()?;
        self.take(";");
        self.gap()?;
        let (open, close) = match self.reserved() {
            Some("{") => ("{", "}"),
            _ => ("do", "done"),
        };
        self.expect(open)?;
        self.body(compound)?;
        self.expect(close)
    }

    pub(super) fn cases(&mut self, compound: &mut Compound) -> Result<(), Unread> {
        self.blanks()?;
        let subject = self.word()?;
        compound.words.push(subject);
        self.gap()?;
        if !self.take("in") {
            return Err(Unread::Missing("in"));
        }
        loop {
            self.gap()?;
            if self.reserved() == Some("esac") {
                return self.expect("esac");
            }
            self.take("(");
            loop {
                self.blanks()?;
                let pattern = self.word()?;
                if pattern.is_empty() {
                    return Err(Unread::Missing("a pattern"));
                }
                compound.words.push(pattern);
                self.blanks()?;
                if !self.take("|") {
                    break;
                }
            }
            if !self.take(")") {
                return Err(Unread::Open("a pattern"));
            }
            let mut script = Script::default();
            self.list(&mut script)?;
            compound.scripts.push(script);
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                return self.expect("esac");
            }
        }
    }

    /// What stands between `[[` and `]]`: words, for what is expanded in them.
    pub(super) fn condition(&mut self) -> Result<Vec<Word>, Unread> {
        let mut words = Vec::new();
        loop {
            self.gap()?;
            match self.peek() {
                None => return Err(Unread::Open("`[[`")),
                Some('&') if self.take("&&") => continue,
                Some('|') if self.take("||") => continue,
                // In a regular expression.
                Some('(' | ')' | '<' | '>' | '|') => {
                    let c = self.next()?;
                    if self.peek() == Some('(') && matches!(c, Some('<' | '>')) {
                        return Err(Unread::Unexpected('('));
                    }
                    continue;
                }
                _ => {}
            }
            let word = self.word()?;
            if word.is_empty() {
                return Err(self.peek().map_or(Unread::Open("`[[`"), Unread::Unexpected));
            }
            if word.bare().as_deref() == Some("]]") {
                return Ok(words);
            }
            words.push(word);
        }
    }

    pub(super) fn function(&mut self, name: &Word) -> Result<Command, Unread> {
        let name = name.bare().filter(|name| !name.is_empty());
        let name = name.ok_or(Unread::Missing("the name of a function"))?;
        self.gap()?;
        let body = self.deeper(Self::command)?;
        match body {
            Command::Compound(_) | Command::Subshell(..) => {
                Ok(Command::Function(name, Box::new(body)))
            }
            _ => Err(Unread::Missing("the body of a function")),
        }
    }
}
