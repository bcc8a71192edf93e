//! The walk over a parsed line: every command is graded, and the strictest decides.

use std::cell::Cell;

use lodestar_core::ladder::Rung;

use super::arithmetic::Numbers;
use super::expand::Sure;
use super::parse::parse;
use super::paths::Places;
use super::syntax::{Assign, Command, Compound, Expansion, Pipeline, Redirect, Script, Way, Word};
use super::{Part, Reading};

/// Most commands in one line and all that is nested in it.
const MAX_PARTS: usize = 4096;

/// Most functions in one line.
const MAX_FUNCTIONS: usize = 64;

/// Most bytes that are read for one line, with what its shells and guesses hand to further shells.
const MAX_READ: usize = 1024 * 1024;

/// Most folders that a line can be in at once, as far as can be told.
const MAX_PLACES: usize = 16;

/// Where what is written stays nowhere.
const NOWHERE: [&str; 5] = [
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/fd/63",
];

pub(super) const COMPUTED: &str =
    "it computes with a value that is not known to be a number, and could run what that holds";

/// A rung so far, and why.
#[derive(Debug)]
pub(super) struct Grade {
    pub(super) rung: Rung,
    pub(super) reason: String,
}

impl Grade {
    pub(super) fn new(rung: Rung, reason: impl Into<String>) -> Self {
        Self {
            rung,
            reason: reason.into(),
        }
    }

    /// The stricter of both; the reason is that of the first that is so strict.
    pub(super) fn raise(&mut self, rung: Rung, reason: impl Into<String>) {
        if rung > self.rung {
            *self = Self::new(rung, reason);
        }
    }
}

/// What a command reads from the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stdin {
    /// Nothing that is known of.
    Inherited,
    /// Names of files in the project, and how well they are known.
    Names(Sure),
    /// This text.
    Text(String),
    /// Anything.
    Unknown,
}

pub(super) struct Grader {
    parts: Vec<Part>,
    pub(super) writes: Vec<String>,
    pub(super) reads: Vec<String>,
    pub(super) places: Places,
    /// Variables of loops that are being read, and what they hold.
    pub(super) loops: Vec<(String, Sure)>,
    /// What the line itself sets variables to, where that is plain text. It only ever raises a grade.
    pub(super) values: Vec<(String, String)>,
    /// What the line's variables are to arithmetic.
    pub(super) numbers: Numbers,
    /// Functions of the line, with the names of what they run.
    pub(super) functions: Vec<(String, Vec<String>)>,
    /// Functions that are there by now, with the depth of the shell that has them.
    pub(super) defined: Vec<(String, usize)>,
    /// Whether something could set variables between the commands of a loop: a function, or a trap.
    unsteady: bool,
    /// How much of what is being read may not run, or runs in a shell of its own.
    pub(super) unsure: usize,
    /// Texts that run later, wherever the line is by then.
    pub(super) later: Vec<String>,
    /// Every folder that any part of the line runs in.
    entered: Vec<String>,
    /// Functions whose bodies are being read.
    bodies: Vec<usize>,
    pub(super) depth: usize,
    /// How much was read so far.
    read: usize,
    /// Whether what a command reads stands on the line itself.
    pub(super) reads_here: bool,
}

impl Grader {
    pub(super) fn new(root: Option<&str>) -> Self {
        let root = root.filter(|root| root.starts_with('/') && root.len() > 1);
        Self {
            parts: Vec::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            places: Places {
                root: root.map(str::to_owned),
                current: vec![String::new()],
                looks: Cell::default(),
            },
            loops: Vec::new(),
            values: Vec::new(),
            numbers: Numbers::default(),
            functions: Vec::new(),
            defined: Vec::new(),
            unsteady: false,
            unsure: 0,
            later: Vec::new(),
            entered: vec![String::new()],
            bodies: Vec::new(),
            depth: 0,
            read: 0,
            reads_here: false,
        }
    }

    pub(super) fn finish(mut self) -> Reading {
        self.find_bombs();
        let strictest = self.parts.iter().map(|part| part.rung).max();
        let rung = strictest.unwrap_or(Rung::L0);
        let first = self.parts.iter().find(|part| part.rung == rung);
        let reason = first.map_or_else(|| "nothing is run".to_owned(), |part| part.reason.clone());
        for paths in [&mut self.writes, &mut self.reads] {
            let mut seen = std::collections::BTreeSet::new();
            paths.retain(|path| seen.insert(path.clone()));
        }
        Reading {
            rung,
            reason,
            parts: self.parts,
            writes: self.writes,
            reads: self.reads,
        }
    }

    /// Something about the line as a whole that a human has to see.
    pub(super) fn hold(&mut self, reason: String) {
        self.push(Vec::new(), Grade::new(Rung::L4, reason));
    }

    pub(super) fn push(&mut self, words: Vec<String>, grade: Grade) {
        if let (Some(name), Some(body)) = (words.first(), self.bodies.last()) {
            self.functions[*body].1.push(name.clone());
        }
        match self.parts.len() < MAX_PARTS {
            true => self.parts.push(Part {
                words,
                rung: grade.rung,
                reason: grade.reason,
            }),
            false => {
                if let Some(last) = self.parts.last_mut() {
                    let rung = last.rung.max(grade.rung).max(Rung::L4);
                    *last = Part {
                        words: Vec::new(),
                        rung,
                        reason: "the line has more commands than anybody looks through".to_owned(),
                    };
                }
            }
        }
    }

    /// A text that is run as a command line: the line itself, or what it hands to a shell. Gives its rung.
    pub(super) fn line(&mut self, text: &str) -> Rung {
        let before = self.parts.len();
        self.read = self.read.saturating_add(text.len());
        if self.depth >= 8 || before >= MAX_PARTS || self.read > MAX_READ {
            self.hold("shells run shells too deep or too often to follow".to_owned());
            return Rung::L4;
        }
        self.depth += 1;
        let (script, problem) = parse(text, self.depth);
        if let Some(problem) = problem {
            self.hold(format!("it cannot be read as a command line: {problem}"));
        }
        self.numbers.note(&script);
        self.name_functions(&script);
        self.script(&script);
        self.bodies_again(&script);
        if self.depth == 1 {
            self.later_again();
        }
        self.defined.retain(|(_, depth)| *depth < self.depth);
        self.depth -= 1;
        let parts = self.parts.iter().skip(before);
        parts.map(|part| part.rung).max().unwrap_or(Rung::L0)
    }

    /// Functions may be used before the walk comes to where they are made.
    fn name_functions(&mut self, script: &Script) {
        for pipeline in &script.pipelines {
            for command in &pipeline.commands {
                self.name_functions_of(command);
            }
        }
    }

    fn name_functions_of(&mut self, command: &Command) {
        match command {
            Command::Function(name, body) => {
                match self.functions.len() < MAX_FUNCTIONS {
                    true => self.functions.push((name.clone(), Vec::new())),
                    false => {
                        self.hold("it has more functions than anybody looks through".to_owned())
                    }
                }
                self.unsteady |= super::variables::command_sets(body, None);
                self.name_functions_of(body);
            }
            Command::Compound(compound) => {
                for script in &compound.scripts {
                    self.name_functions(script);
                }
            }
            Command::Subshell(script, _) => self.name_functions(script),
            Command::Simple(simple) => {
                let first = simple.words.first().and_then(Word::literal);
                self.unsteady |= first.as_deref() == Some("trap");
            }
        }
    }

    /// A function runs where it is called: in any folder that the line comes to.
    fn bodies_again(&mut self, script: &Script) {
        if self.entered.len() < 2 {
            return;
        }
        for pipeline in &script.pipelines {
            for command in &pipeline.commands {
                self.bodies_again_of(command);
            }
        }
    }

    fn bodies_again_of(&mut self, command: &Command) {
        match command {
            Command::Function(_, body) => {
                let places = std::mem::replace(&mut self.places.current, self.entered.clone());
                self.command(body);
                self.places.current = places;
            }
            Command::Compound(compound) => {
                for script in &compound.scripts {
                    self.bodies_again(script);
                }
            }
            Command::Subshell(script, _) => self.bodies_again(script),
            Command::Simple(_) => {}
        }
    }

    /// And what waits for a signal runs where the line is by then.
    fn later_again(&mut self) {
        if self.entered.len() < 2 {
            return;
        }
        self.places.current = self.entered.clone();
        for text in std::mem::take(&mut self.later) {
            self.line(&text);
        }
    }

    /// A function that comes back to itself starts more and more of itself.
    fn find_bombs(&mut self) {
        if self.functions.iter().any(|(name, _)| self.returns(name)) {
            let reason = "a function starts itself again, without end";
            self.push(Vec::new(), Grade::new(Rung::L5, reason));
        }
    }

    /// Whether what a function runs leads to itself.
    fn returns(&self, name: &str) -> bool {
        let mut seen: Vec<&str> = Vec::new();
        let mut next: Vec<&str> = vec![name];
        while let Some(here) = next.pop() {
            let own = self.functions.iter().filter(|(own, _)| own == here);
            for called in own.flat_map(|(_, calls)| calls) {
                if called == name {
                    return true;
                }
                if !seen.contains(&called.as_str()) && seen.len() < 64 {
                    seen.push(called);
                    next.push(called);
                }
            }
        }
        false
    }

    pub(super) fn script(&mut self, script: &Script) {
        for pipeline in &script.pipelines {
            self.pipeline(pipeline);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        let mut stdin = Stdin::Inherited;
        let alone = pipeline.commands.len() == 1 && !pipeline.background && !pipeline.conditional;
        self.unsure += usize::from(!alone);
        for command in &pipeline.commands {
            stdin = match command {
                Command::Simple(simple) => self.simple(simple, stdin),
                other => {
                    self.command(other);
                    Stdin::Unknown
                }
            };
        }
        self.unsure -= usize::from(!alone);
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => drop(self.simple(simple, Stdin::Inherited)),
            Command::Compound(compound) => self.compound(compound),
            Command::Subshell(script, redirects) => {
                let places = self.places.current.clone();
                self.unsure += 1;
                self.script(script);
                self.unsure -= 1;
                self.places.current = places;
                self.redirects_alone(redirects);
            }
            Command::Function(name, body) => {
                let index = self.functions.iter().rposition(|(own, _)| own == name);
                self.bodies.extend(index);
                self.unsure += 1;
                self.command(body);
                self.unsure -= 1;
                if index.is_some() {
                    self.bodies.pop();
                }
                // Only what is surely there stands for itself: another program may have that name.
                if self.unsure == 0 && index.is_some() {
                    self.defined.push((name.clone(), self.depth));
                }
            }
        }
    }

    fn compound(&mut self, compound: &Compound) {
        let mut grade = Grade::new(Rung::L0, "it only steers what is run");
        for word in &compound.words {
            self.word(word, &mut grade);
        }
        for word in &compound.expressions {
            self.word(word, &mut grade);
            self.expression(word, &mut grade);
        }
        self.condition(&compound.tested, &mut grade);
        let looped = compound.each.as_ref().map(|(name, words)| {
            super::variables::judge_set(name, false, &mut grade);
            for word in words {
                self.word(word, &mut grade);
                if let Some(text) = word.literal() {
                    super::variables::judge_value(&text, &mut grade);
                }
            }
            let set = super::variables::sets(&compound.scripts, Some(name.as_str()));
            let sure = match set || self.unsteady {
                true => Sure::Unknown,
                false => self.sure_of_all(words),
            };
            for text in words.iter().filter_map(Word::literal) {
                self.values.push((name.clone(), text));
            }
            (name.clone(), sure)
        });
        if grade.rung > Rung::L0 {
            self.push(Vec::new(), grade);
        }
        let loops = self.loops.len();
        self.loops.extend(looped);
        let before = self.parts.len();
        self.unsure += 1;
        let places = self.places.current.len();
        for script in &compound.scripts {
            self.script(script);
        }
        // The next round begins wherever this one ended.
        if compound.repeats && self.places.current.len() > places {
            for script in &compound.scripts {
                self.script(script);
            }
        }
        self.unsure -= 1;
        self.loops.truncate(loops);
        let background = |script: &Script| script.pipelines.iter().any(|one| one.background);
        if compound.repeats && compound.scripts.iter().any(background) {
            self.hold("a loop starts processes that it does not wait for".to_owned());
        }
        debug_assert!(self.parts.len() >= before || before >= MAX_PARTS);
        self.redirects_alone(&compound.redirects);
    }

    fn redirects_alone(&mut self, redirects: &[Redirect]) {
        if redirects.is_empty() {
            return;
        }
        let mut grade = Grade::new(Rung::L0, "it opens files");
        self.redirects(redirects, &mut grade);
        self.push(Vec::new(), grade);
    }

    /// What redirections open. Gives the text of a here-document, if it is the last to say what is read.
    pub(super) fn redirects(&mut self, redirects: &[Redirect], grade: &mut Grade) -> Option<Stdin> {
        let mut stdin = None;
        for redirect in redirects {
            self.word(&redirect.target, grade);
            let args = self.expand(&redirect.target);
            match redirect.way {
                Way::Here => {
                    stdin = Some(match redirect.target.literal() {
                        Some(text) => {
                            super::variables::judge_value(&text, grade);
                            Stdin::Text(text)
                        }
                        None => Stdin::Unknown,
                    });
                    continue;
                }
                Way::Duplicate => {
                    let literal = redirect.target.literal();
                    let number = |text: &String| {
                        let digits = text.strip_suffix('-').unwrap_or(text);
                        digits.chars().all(|c| c.is_ascii_digit())
                    };
                    if literal.as_ref().is_some_and(number) {
                        continue;
                    }
                }
                Way::Read | Way::Write | Way::ReadWrite => {}
            }
            let reads = redirect.way == Way::Read;
            if reads {
                stdin = Some(Stdin::Unknown);
            } else if !args
                .iter()
                .flatten()
                .all(|arg| NOWHERE.contains(&arg.text.as_str()))
            {
                grade.raise(Rung::L3, "it writes a file of the project");
            }
            for arg in args.iter().flatten() {
                match reads {
                    true => self.reads_file(arg, grade),
                    false => self.writes_file(arg, grade),
                }
            }
            if args.is_none_or(|args| args.is_empty()) {
                grade.raise(Rung::L4, "which file is opened is only known when it runs");
            }
        }
        stdin
    }

    /// Whatever is run or asked for inside a word.
    pub(super) fn word(&mut self, word: &Word, grade: &mut Grade) {
        for expansion in &word.expansions {
            match &**expansion {
                Expansion::Command(script) | Expansion::Process(script) => {
                    let places = self.places.current.clone();
                    self.name_functions(script);
                    self.unsure += 1;
                    self.script(script);
                    self.bodies_again(script);
                    self.unsure -= 1;
                    self.places.current = places;
                }
                Expansion::Arithmetic(inner) => {
                    self.word(inner, grade);
                    self.expression(inner, grade);
                }
                Expansion::Parameter {
                    name,
                    indirect,
                    assigns,
                    index,
                    rest,
                    ..
                } => {
                    super::variables::judge_use(name, *indirect, grade);
                    if *assigns {
                        super::variables::judge_set(name, false, grade);
                    }
                    if let Some(index) = index {
                        self.word(index, grade);
                        self.index(name, index, grade);
                    }
                    self.word(rest, grade);
                    // `${name:from:length}` computes.
                    let text = rest.units.iter().take(2);
                    let text: Vec<Option<char>> = text.map(super::syntax::Unit::text).collect();
                    if let [Some(':'), next, ..] = text.as_slice()
                        && !next.is_some_and(|c| "-=?+".contains(c))
                    {
                        self.expression(rest, grade);
                    }
                }
            }
        }
    }

    /// What is computed with has to be numbers: in any other value, a shell would run the commands of an index.
    pub(super) fn expression(&self, word: &Word, grade: &mut Grade) {
        if !self.numbers.computes(word) {
            grade.raise(Rung::L4, COMPUTED);
        }
    }

    pub(super) fn index(&self, name: &str, index: &Word, grade: &mut Grade) {
        if !self.numbers.indexes(name, index) {
            grade.raise(Rung::L4, COMPUTED);
        }
    }

    /// What stands between `[[` and `]]`.
    fn condition(&mut self, words: &[Word], grade: &mut Grade) {
        const COMPARES: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        const NAMES: [&str; 2] = ["-v", "-R"];
        for (at, word) in words.iter().enumerate() {
            self.word(word, grade);
            let Some(text) = word.literal() else {
                continue;
            };
            super::variables::judge_value(&text, grade);
            if COMPARES.contains(&text.as_str()) {
                let sides = [
                    at.checked_sub(1).and_then(|at| words.get(at)),
                    words.get(at + 1),
                ];
                for side in sides.into_iter().flatten() {
                    self.expression(side, grade);
                }
            }
            let named = words.get(at + 1).map(Word::literal);
            if NAMES.contains(&text.as_str())
                && let Some(Some(name)) = &named
                && !self.numbers.looks_at(name)
            {
                grade.raise(Rung::L4, COMPUTED);
            }
            if NAMES.contains(&text.as_str()) && matches!(named, Some(None)) {
                grade.raise(
                    Rung::L4,
                    "which variable is looked at is only known when it runs",
                );
            }
        }
    }

    pub(super) fn assign(&mut self, assign: &Assign, exported: bool, grade: &mut Grade) {
        let index = assign.index.iter();
        for word in assign.values.iter().chain(index) {
            self.word(word, grade);
        }
        if let Some(index) = &assign.index {
            self.index(&assign.name, index, grade);
        }
        super::variables::judge_set(&assign.name, exported, grade);
        self.numbers.touch(&assign.name);
        for text in assign.values.iter().filter_map(Word::literal) {
            super::variables::judge_value(&text, grade);
            if exported {
                super::variables::judge_exported(&assign.name, &text, &self.places, grade);
            }
            if self.values.len() < 256 {
                self.values.push((assign.name.clone(), text));
            }
        }
    }

    /// Another folder that what follows may run in.
    pub(super) fn enter(&mut self, folder: &str) {
        let mut more = Vec::new();
        for place in &self.places.current {
            let next = match folder.starts_with(['/', '~']) || place.is_empty() {
                true => folder.to_owned(),
                false => format!("{place}/{folder}"),
            };
            if !self.places.current.contains(&next) && !more.contains(&next) && next.len() < 4096 {
                more.push(next);
            }
        }
        for place in &more {
            if !self.entered.contains(place) && self.entered.len() < MAX_PLACES {
                self.entered.push(place.clone());
            }
        }
        self.places.current.extend(more);
        if self.places.current.len() > MAX_PLACES {
            self.places.current.truncate(MAX_PLACES);
            self.hold("it changes folders more often than can be followed".to_owned());
        }
    }
}
