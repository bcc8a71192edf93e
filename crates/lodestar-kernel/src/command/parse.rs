//! From text to [`Script`]: the grammar of POSIX shells with what bash and zsh have in common beyond it.
//!
//! Every reading that shells differ in is refused, and what is refused is held for a human. The reader of words is
//! in [`super::word`].

use super::syntax::{
    Assign, Command, Compound, Pipeline, Redirect, Script, Simple, Unread, Way, Word, is_name,
};

/// Words that end a list, where a command could begin.
const ENDS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Steps for one line and all that is nested in it; no honest line comes near.
const FUEL: u32 = 2_000_000;

pub(super) struct Parser {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) fuel: u32,
    /// Here-documents whose text is still to come: the delimiter, and where the text goes.
    pending: Vec<Pending>,
    /// Whether an outer part waits for a here-document: where its text lies is then not clear.
    waits_outside: bool,
    here: Vec<Word>,
}

struct Pending {
    delimiter: String,
    tabs: bool,
    expands: bool,
    slot: usize,
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

    /// A line break, and the here-documents that begin behind it.
    fn line_break(&mut self) -> Result<(), Unread> {
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

    fn here_text(&mut self, pending: &Pending) -> Result<String, Unread> {
        let mut text = String::new();
        loop {
            if self.peek().is_none() {
                return Err(Unread::Open("a here-document"));
            }
            let mut line = String::new();
            while let Some(c) = self.next()?.filter(|c| *c != '\n') {
                line.push(c);
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

    /// Puts the texts of here-documents where they belong.
    fn settle(&mut self, script: &mut Script) {
        let here = std::mem::take(&mut self.here);
        settle_script(script, &here);
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
        loop {
            let pipeline = self.pipeline()?;
            script.pipelines.push(pipeline);
            self.blanks()?;
            if !(self.take("&&") || self.take("||")) {
                return Ok(());
            }
            self.gap()?;
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Unread> {
        while self.reserved() == Some("!") {
            self.next()?;
            self.blanks()?;
        }
        let mut commands = Vec::new();
        loop {
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
                words: vec![word],
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
            let words = self.condition()?;
            let compound = Compound {
                words,
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

    fn body(&mut self, compound: &mut Compound) -> Result<(), Unread> {
        let mut script = Script::default();
        self.list(&mut script)?;
        if script.pipelines.is_empty() {
            return Err(Unread::Missing("a command"));
        }
        compound.scripts.push(script);
        Ok(())
    }

    fn branches(&mut self, compound: &mut Compound) -> Result<(), Unread> {
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

    fn each(&mut self, compound: &mut Compound) -> Result<(), Unread> {
        compound.repeats = true;
        self.blanks()?;
        if self.looking_at("((") {
            let word = self
                .arithmetic_command()?
                .ok_or(Unread::Foreign("an arithmetic loop that is not plain"))?;
            compound.words.push(word);
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

    fn cases(&mut self, compound: &mut Compound) -> Result<(), Unread> {
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
    fn condition(&mut self) -> Result<Vec<Word>, Unread> {
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

    fn function(&mut self, name: &Word) -> Result<Command, Unread> {
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

    fn redirected(&mut self, mut compound: Compound) -> Result<Command, Unread> {
        compound.redirects = self.redirects()?;
        Ok(Command::Compound(compound))
    }

    fn redirects(&mut self) -> Result<Vec<Redirect>, Unread> {
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
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

    /// `name=value`, `name+=value`, `name[index]=value`, `name=(values)`.
    fn assign(&mut self) -> Result<Option<Assign>, Unread> {
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

    fn redirect(&mut self) -> Result<Option<Redirect>, Unread> {
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
