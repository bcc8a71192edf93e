//! From text to `Script`: the grammar of POSIX shells with what bash and zsh have in common beyond it.
//!
//! Every reading that shells differ in is refused, and what is refused is held for a human. The reader of words is
//! in `super::word`.

mod compound;
mod redirect;

use super::syntax::{Command, Compound, Pipeline, Script, Simple, Unread, Word};
use redirect::Pending;

/// Words that end a list, where a command could begin.
const ENDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Steps for one line and all that is nested in it; no honest line comes near.
const FUEL: u32 = 2_000_000;

pub(super) struct Parser {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) fuel: u32,
    /// Here-documents whose text is still to come.
    pending: Vec<Pending>,
    /// Whether an outer part waits for a here-document: where its text lies is then not clear.
    waits_outside: bool,
    here: Vec<Word>,
}

/// Reads a whole text. What was complete before something could not be read comes with the reason.
pub(super) fn parse(text: &str, depth: usize) -> (Script, Option<Unread>) {
    let mut script = Script::default();
    if text.len() > super::MAX_LEN {
        return (script, Some(Unread::TooLong));
    }
    let mut parser = Parser::new(text, depth, FUEL);
    let outcome = parser.list(&mut script).and_then(|()| parser.end());
    parser.settle(&mut script);
    (script, outcome.err())
}

impl Parser {
    pub(super) fn new(text: &str, depth: usize, fuel: u32) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            depth,
            fuel,
            pending: Vec::new(),
            waits_outside: false,
            here: Vec::new(),
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Result<Option<char>, Unread> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Unread::TooMuch)?;
        let c = self.peek();
        self.at += usize::from(c.is_some());
        Ok(c)
    }

    pub(super) fn looking_at(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(ahead, c)| self.peek_at(ahead) == Some(c))
    }

    /// Takes a text that is there.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let there = self.looking_at(text);
        if there {
            self.at += text.chars().count();
        }
        there
    }

    pub(super) fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        if self.depth >= super::MAX_DEPTH {
            return Err(Unread::TooDeep);
        }
        self.depth += 1;
        let outcome = inner(self);
        self.depth -= 1;
        outcome
    }

    /// Blanks, continued lines and a comment.
    fn blanks(&mut self) -> Result<(), Unread> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => drop(self.next()?),
                Some('\\') if self.peek_at(1) == Some('\n') => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next()?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reads another text as part of this one: what was in backticks, or in a here-document.
    pub(super) fn inner<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Self) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        if self.depth >= super::MAX_DEPTH {
            return Err(Unread::TooDeep);
        }
        let mut parser = Self::new(text, self.depth + 1, self.fuel);
        let outcome = read(&mut parser);
        self.fuel = parser.fuel;
        outcome
    }

    /// Blanks and line breaks.
    pub(super) fn gap(&mut self) -> Result<(), Unread> {
        self.blanks()?;
        while self.peek() == Some('\n') {
            self.line_break()?;
            self.blanks()?;
        }
        Ok(())
    }

    /// A script of its own, up to the parenthesis that closes it: in a word, so that here-documents of the
    /// words around it are not its own.
    pub(super) fn enclosed(&mut self) -> Result<Script, Unread> {
        self.deeper(|parser| {
            let outside = std::mem::take(&mut parser.pending);
            let here = std::mem::take(&mut parser.here);
            let waits = parser.waits_outside;
            parser.waits_outside |= !outside.is_empty();
            let mut script = Script::default();
            parser.list(&mut script)?;
            if !parser.pending.is_empty() {
                return Err(Unread::Open("a here-document"));
            }
            parser.settle(&mut script);
            parser.pending = outside;
            parser.here = here;
            parser.waits_outside = waits;
            match parser.take(")") {
                true => Ok(script),
                false => Err(Unread::Open("a parenthesis")),
            }
        })
    }

    /// Everything up to the end of the text.
    pub(super) fn whole(&mut self) -> Result<Script, Unread> {
        let mut script = Script::default();
        self.list(&mut script)?;
        self.end()?;
        self.settle(&mut script);
        Ok(script)
    }

    fn end(&mut self) -> Result<(), Unread> {
        match self.peek() {
            None if self.pending.is_empty() => Ok(()),
            None => Err(Unread::Open("a here-document")),
            Some(c) => Err(Unread::Unexpected(c)),
        }
    }

    /// A list up to a word or sign that ends it, which stays.
    fn list(&mut self, script: &mut Script) -> Result<(), Unread> {
        loop {
            self.gap()?;
            if self.peek().is_none_or(|c| c == ')')
                || self.looking_at(";;")
                || self.looking_at(";&")
                || self.reserved().is_some_and(|word| ENDS.contains(&word))
            {
                return Ok(());
            }
            self.chain(script)?;
            self.blanks()?;
            match self.peek() {
                None | Some('\n' | ')') => {}
                Some(';') if self.looking_at(";;") || self.looking_at(";&") => {}
                Some(';') => drop(self.next()?),
                Some('&') => {
                    self.next()?;
                    if let Some(last) = script.pipelines.last_mut() {
                        last.background = true;
                    }
                }
                Some(c) => return Err(Unread::Unexpected(c)),
            }
        }
    }

    /// Pipelines joined by `&&` and `||`.
    fn chain(&mut self, script: &mut Script) -> Result<(), Unread> {
        let mut conditional = false;
        loop {
            let mut pipeline = self.pipeline()?;
            pipeline.conditional = std::mem::replace(&mut conditional, true);
            script.pipelines.push(pipeline);
            self.blanks()?;
            if !(self.take("&&") || self.take("||")) {
                return Ok(());
            }
            self.gap()?;
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Unread> {
        let mut commands = Vec::new();
        loop {
            while self.reserved() == Some("!") {
                self.next()?;
                self.blanks()?;
            }
            commands.push(self.deeper(Self::command)?);
            self.blanks()?;
            if self.looking_at("||") || !self.take("|") {
                break;
            }
            self.take("&");
            self.gap()?;
        }
        Ok(Pipeline {
            commands,
            background: false,
            conditional: false,
        })
    }

    /// The reserved word that stands here, if it stands alone.
    fn reserved(&self) -> Option<&'static str> {
        const WORDS: [&str; 18] = [
            "then", "elif", "else", "fi", "do", "done", "esac", "}", "{", "if", "for", "while",
            "until", "case", "select", "function", "coproc", "!",
        ];
        WORDS.into_iter().find(|word| {
            self.looking_at(word)
                && self.peek_at(word.len()).is_none_or(|c| {
                    matches!(
                        c,
                        ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
                    )
                })
        })
    }

    fn expect(&mut self, word: &'static str) -> Result<(), Unread> {
        self.gap()?;
        match self.reserved() == Some(word) && self.take(word) {
            true => Ok(()),
            false => Err(Unread::Missing(word)),
        }
    }

    fn command(&mut self) -> Result<Command, Unread> {
        if self.looking_at("((")
            && let Some(word) = self.arithmetic_command()?
        {
            let compound = Compound {
                expressions: vec![word],
                ..Compound::default()
            };
            return self.redirected(compound);
        }
        if self.take("(") {
            let mut script = Script::default();
            self.list(&mut script)?;
            return match self.take(")") {
                true => Ok(Command::Subshell(script, self.redirects()?)),
                false => Err(Unread::Open("a parenthesis")),
            };
        }
        if self.looking_at("[[")
            && self
                .peek_at(2)
                .is_some_and(|c| matches!(c, ' ' | '\t' | '\n'))
        {
            self.at += 2;
            let tested = self.condition()?;
            let compound = Compound {
                tested,
                ..Compound::default()
            };
            return self.redirected(compound);
        }
        let Some(word) = self.reserved() else {
            return self.simple();
        };
        let mut compound = Compound::default();
        match word {
            "{" => {
                self.take("{");
                self.body(&mut compound)?;
                self.expect("}")?;
            }
            "if" => {
                self.take("if");
                self.branches(&mut compound)?;
            }
            "while" | "until" => {
                self.take(word);
                compound.repeats = true;
                self.body(&mut compound)?;
                self.expect("do")?;
                self.body(&mut compound)?;
                self.expect("done")?;
            }
            "for" | "select" => {
                self.take(word);
                self.each(&mut compound)?;
            }
            "case" => {
                self.take("case");
                self.cases(&mut compound)?;
            }
            "function" => {
                self.take("function");
                self.blanks()?;
                let name = self.word()?;
                self.blanks()?;
                if self.take("(") {
                    self.blanks()?;
                    if !self.take(")") {
                        return Err(Unread::Open("a parenthesis"));
                    }
                }
                return self.function(&name);
            }
            "coproc" => return Err(Unread::Foreign("`coproc`")),
            _ => return Err(Unread::Missing("a command")),
        }
        self.redirected(compound)
    }

    fn redirected(&mut self, mut compound: Compound) -> Result<Command, Unread> {
        compound.redirects = self.redirects()?;
        Ok(Command::Compound(compound))
    }

    fn simple(&mut self) -> Result<Command, Unread> {
        let mut simple = Simple::default();
        loop {
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            if simple.words.is_empty()
                && let Some(assign) = self.assign()?
            {
                simple.assigns.push(assign);
                continue;
            }
            let word = self.word()?;
            let opens = self.peek() == Some('(');
            if word.is_empty() && !opens {
                break;
            }
            simple.words.push(word);
            let first = simple.words.len() == 1 && simple.assigns.is_empty();
            self.blanks()?;
            if self.peek() != Some('(') {
                continue;
            }
            self.next()?;
            self.blanks()?;
            if !(first && simple.redirects.is_empty() && self.take(")")) {
                return Err(Unread::Unexpected('('));
            }
            return self.function(&simple.words[0]);
        }
        let nothing =
            simple.words.is_empty() && simple.assigns.is_empty() && simple.redirects.is_empty();
        match self.peek() {
            _ if !nothing => Ok(Command::Simple(simple)),
            Some(c) => Err(Unread::Unexpected(c)),
            None => Err(Unread::Missing("a command")),
        }
    }
}
