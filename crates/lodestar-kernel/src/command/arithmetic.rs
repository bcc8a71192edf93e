//! Arithmetic: whether `((…))` is an expression or could be commands in two subshells, and what it computes with.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::ladder::Rung;

use super::parse::parse;
use super::paths::MARK;
use super::programs;
use super::syntax::{Command, Expansion, Pipeline, Script, Simple, Unit, Word};
use super::variables;

/// Whether no two operands stand side by side and no operand is the name of a program that does anything.
pub(super) fn is_expression(word: &Word) -> bool {
    let mut operands: Vec<String> = Vec::new();
    let mut joined = false;
    let mut spaced = false;
    for unit in &word.units {
        let (c, part) = match unit {
            Unit::Bare(c) => (*c, c.is_ascii_alphanumeric() || *c == '_' || *c == '.'),
            Unit::Quoted(c) => (*c, true),
            Unit::Expansion(..) => ('$', true),
        };
        if part {
            match (joined, spaced, operands.last_mut()) {
                (true, false, Some(last)) => last.push(c),
                (true, true, _) => return false,
                _ => operands.push(c.to_string()),
            }
            joined = true;
            spaced = false;
        } else if c.is_whitespace() {
            spaced = true;
        } else {
            joined = false;
            spaced = false;
        }
    }
    let harmless =
        |name: &String| programs::find(name).is_none_or(|program| program.rung < Rung::L3);
    operands.iter().all(harmless)
}

/// Variables that a shell itself keeps numbers in.
const COUNTERS: [&str; 15] = [
    "?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "SHLVL",
    "COLUMNS", "LINES", "OPTIND",
];

/// Of these, what no line can set.
const OWN: [&str; 4] = ["?", "#", "$", "!"];

/// Programs that are trusted to say a number or nothing, unless a function has their name.
const COUNTING: [&str; 12] = [
    "wc", "grep", "date", "id", "git", "nproc", "touch", "mkdir", "true", "false", ":", "sleep",
];

/// What a line says of its variables: a shell that computes with a value runs the commands that an index in it
/// holds, so a variable counts as a number only if everything that the line puts into it is one.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    known: BTreeMap<String, bool>,
    /// Arrays whose index is text, as far as the walk has come.
    keyed: BTreeSet<String>,
    /// Names that were set before they could be declared as such arrays: a shell leaves them as they were.
    touched: BTreeSet<String>,
    /// Names that the line unsets or declares anew anywhere, so that their index may be computed.
    loose: BTreeSet<String>,
    /// Whether something can set names that the line does not show, or stands in for a program that says numbers.
    unknown: bool,
}

impl Numbers {
    pub(super) fn note(&mut self, script: &Script) {
        let commands = script.pipelines.iter().flat_map(|one| &one.commands);
        for command in commands {
            self.note_command(command);
        }
    }

    fn note_command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.note_simple(simple),
            Command::Compound(compound) => {
                compound.words.iter().for_each(|word| self.note_word(word));
                compound.tested.iter().for_each(|word| self.note_word(word));
                for word in &compound.expressions {
                    self.note_expression(word);
                }
                if let Some((name, words)) = &compound.each {
                    let range = |word: &Word| match word.literal() {
                        Some(text) => text
                            .chars()
                            .all(|c| c.is_ascii_digit() || "{},.-".contains(c)),
                        None => is_number(word),
                    };
                    self.set(name, !words.is_empty() && words.iter().all(range));
                    words.iter().for_each(|word| self.note_word(word));
                    // `select` keeps what was typed.
                    self.set("REPLY", false);
                }
                compound.scripts.iter().for_each(|script| self.note(script));
            }
            Command::Subshell(script, _) => self.note(script),
            Command::Function(name, body) => {
                self.unknown |= COUNTING.contains(&name.as_str());
                self.note_command(body);
            }
        }
    }

    fn note_simple(&mut self, simple: &Simple) {
        for assign in &simple.assigns {
            self.set(&assign.name, assign.values.iter().all(is_number));
            assign.values.iter().for_each(|word| self.note_word(word));
        }
        simple.words.iter().for_each(|word| self.note_word(word));
        let words: Vec<Option<String>> = simple.words.iter().map(Word::literal).collect();
        let words: Vec<&str> = words
            .iter()
            .map(|word| word.as_deref().unwrap_or_default())
            .skip_while(|word| matches!(*word, "command" | "builtin" | "-p" | "--"))
            .collect();
        match words.as_slice() {
            [
                "declare" | "typeset" | "local" | "export" | "readonly",
                rest @ ..,
            ] => {
                // A redirection that fails keeps the array from being declared.
                let keyed = rest.iter().any(|word| is_keyed(word)) && simple.redirects.is_empty();
                for word in rest.iter().filter(|word| !word.starts_with('-')) {
                    if let Some((name, value)) = word.split_once('=') {
                        self.set(name.trim_end_matches('+'), is_number_text(value))
                    }
                    if !keyed {
                        let name = word.split(['=', '+']).next().unwrap_or_default();
                        self.loose.insert(name.to_owned());
                    }
                }
                // `local n=$1`: which name gets it is in front of what is not literal.
                for word in &simple.words {
                    if word.literal().is_none() {
                        let name: String = word.units.iter().map_while(bare_name).collect();
                        self.set(&name, false);
                    }
                }
            }
            [
                "read" | "mapfile" | "readarray" | "getopts" | "printf" | "wait",
                rest @ ..,
            ] => {
                // What they set where no name is given, or besides.
                for name in ["REPLY", "MAPFILE", "OPTARG"] {
                    self.set(name, false);
                }
                for word in rest {
                    // `-ran` is `-r -a n`: a name can stand behind any letter that takes one.
                    let option = word.strip_prefix('-').unwrap_or_default();
                    let behind = option.match_indices(['a', 'v', 'p']);
                    std::iter::once(*word)
                        .chain(behind.map(|(at, _)| &option[at + 1..]))
                        .filter(|name| super::syntax::is_name(name))
                        .for_each(|name| self.set(name, false));
                }
                // `-a"$name"` sets any.
                self.unknown |= simple.words.iter().any(|word| {
                    let first = word.units.first().and_then(Unit::text);
                    word.literal().is_none() && first == Some('-')
                });
            }
            ["let", rest @ ..] => rest.iter().for_each(|word| self.note_text(word)),
            ["unset", rest @ ..] => {
                for word in rest {
                    self.loose.insert((*word).to_owned());
                }
                self.unknown |= simple.words.iter().any(|word| word.literal().is_none());
            }
            // What such a text sets counts from the beginning: a loop or a function comes back to it.
            ["eval", rest @ ..] => self.note_later(simple, &rest.join(" ")),
            ["trap", rest @ ..] => {
                rest.iter().for_each(|word| self.note_later(simple, word));
            }
            ["source" | ".", ..] => self.unknown = true,
            _ => {}
        }
    }

    /// A text that the shell itself runs, now or later.
    fn note_later(&mut self, simple: &Simple, text: &str) {
        let (script, problem) = parse(text, 0);
        self.unknown |= problem.is_some()
            || simple.words.iter().any(|word| word.literal().is_none())
            || variables::sets(std::slice::from_ref(&script), None);
    }

    fn note_word(&mut self, word: &Word) {
        for expansion in &word.expansions {
            match &**expansion {
                Expansion::Command(script) | Expansion::Process(script) => self.note(script),
                Expansion::Arithmetic(inner) => self.note_expression(inner),
                Expansion::Parameter {
                    name,
                    assigns,
                    rest,
                    ..
                } => {
                    if *assigns {
                        let value = rest.literal().unwrap_or_default();
                        self.set(name, is_number_text(value.trim_start_matches([':', '='])));
                    }
                    self.note_word(rest);
                }
            }
        }
    }

    /// What an expression sets is a number.
    fn note_expression(&mut self, word: &Word) {
        self.note_word(word);
        self.note_text(&flat(word));
    }

    fn note_text(&mut self, text: &str) {
        for name in names(text) {
            let sets = text.match_indices(name).any(|(at, _)| {
                let behind = text[at + name.len()..].trim_start();
                let equals = behind.starts_with('=') && !behind.starts_with("==");
                let changes = ["++", "--", "+=", "-=", "*=", "/=", "%="];
                equals || changes.iter().any(|sign| behind.starts_with(sign))
            });
            if sets {
                self.set(name, true);
            }
        }
    }

    fn set(&mut self, name: &str, number: bool) {
        if !name.is_empty() {
            let known = self.known.entry(name.to_owned()).or_insert(number);
            *known &= number;
        }
    }

    fn holds(&self, name: &str) -> bool {
        match self.known.get(name) {
            _ if self.unknown => OWN.contains(&name),
            Some(number) => *number,
            None => COUNTERS.contains(&name),
        }
    }

    /// The walk comes to where a name is set or declared in some other way.
    pub(super) fn touch(&mut self, name: &str) {
        if !self.keyed.contains(name) {
            self.touched.insert(name.to_owned());
        }
    }

    /// The walk comes to where an array whose index is text is surely declared.
    pub(super) fn declare(&mut self, name: &str) {
        if !self.touched.contains(name) {
            self.keyed.insert(name.to_owned());
        }
    }

    /// Whether a name that is looked at has no index, or one that computes with numbers alone.
    pub(super) fn looks_at(&self, text: &str) -> bool {
        match text.split_once('[') {
            None => true,
            Some((_, index)) => {
                let index = index.strip_suffix(']').unwrap_or(index);
                matches!(index, "@" | "*") || self.computes_text(index)
            }
        }
    }

    /// Whether all that an expression computes with is known to be numbers.
    pub(super) fn computes(&self, word: &Word) -> bool {
        let known = word.expansions.iter().all(|expansion| match &**expansion {
            Expansion::Arithmetic(_) => true,
            Expansion::Parameter { length: true, .. } => true,
            Expansion::Parameter { name, rest, .. } => rest.is_empty() && self.holds(name),
            Expansion::Command(script) => !self.unknown && says_number(script),
            Expansion::Process(_) => false,
        });
        known && self.computes_text(&flat(word))
    }

    /// The same of a text, in which a mark stands for a number.
    pub(super) fn computes_text(&self, text: &str) -> bool {
        !text.contains(['$', '`']) && names(text).all(|name| self.holds(name))
    }

    /// Whether an index of an array computes with numbers alone, or is text.
    pub(super) fn indexes(&self, array: &str, index: &Word) -> bool {
        let text = flat(index);
        if text == "@" || text == "*" {
            return true;
        }
        let keyed = self.keyed.contains(array) && !self.loose.contains(array) && !self.unknown;
        match keyed {
            true => names(&text).all(|name| self.known.get(name) != Some(&false)),
            false => self.computes(index),
        }
    }
}

fn bare_name(unit: &Unit) -> Option<char> {
    match unit {
        Unit::Bare(c) if c.is_ascii_alphanumeric() || *c == '_' => Some(*c),
        _ => None,
    }
}

/// The text of an expression, with a mark for what is expanded in it.
fn flat(word: &Word) -> String {
    let one = |unit: &Unit| match unit {
        Unit::Bare(c) | Unit::Quoted(c) => *c,
        Unit::Expansion(..) => MARK,
    };
    word.units.iter().map(one).collect()
}

/// The variables that an expression names. What is put together of a name and an expansion names none that is known.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '@' | MARK);
    text.split(move |c: char| !part(c))
        .filter(|token| token.starts_with(|c: char| !c.is_ascii_digit()))
        .filter(|token| token.chars().any(|c| c != MARK))
}

fn is_number_text(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.chars().all(|c| c.is_ascii_digit())
}

fn is_number(word: &Word) -> bool {
    match word.literal() {
        Some(text) => is_number_text(&text),
        None => {
            let digits = |unit: &Unit| match unit {
                Unit::Bare(c) | Unit::Quoted(c) => c.is_ascii_digit() || *c == '-',
                Unit::Expansion(..) => true,
            };
            let number = |expansion: &Expansion| match expansion {
                Expansion::Arithmetic(_) => true,
                Expansion::Parameter { length: true, .. } => true,
                Expansion::Parameter {
                    name, rest, index, ..
                } => rest.is_empty() && index.is_none() && OWN.contains(&name.as_str()),
                Expansion::Command(script) => says_number(script),
                Expansion::Process(_) => false,
            };
            word.units.iter().all(digits) && word.expansions.iter().all(|one| number(one))
        }
    }
}

/// Whether an option of `declare` makes an array whose index is text, and does nothing else that matters.
pub(super) fn is_keyed(option: &str) -> bool {
    matches!(option, "-A" | "-Ag" | "-gA" | "-Ar" | "-rA" | "-Ax" | "-xA")
}

/// Whether letters have `grep` count: none that takes a value, and none that has it show names of files.
fn counts(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    letters.contains('c') && letters.chars().all(|c| "cEFGPivwxshn".contains(c))
}

/// Whether a word stays one word that is no option: a second file would have `grep` say their names.
fn is_one(word: &Word) -> bool {
    let plain = |unit: &Unit| {
        !matches!(
            unit,
            Unit::Bare('*' | '?' | '[' | '{') | Unit::Expansion(..)
        )
    };
    word.units.iter().all(plain) && word.units.first().and_then(Unit::text) != Some('-')
}

/// Whether a substitution says a number, or nothing.
fn says_number(script: &Script) -> bool {
    let last = |pipeline: &Pipeline| match pipeline.commands.last() {
        Some(Command::Simple(simple)) => {
            let words: Vec<Option<String>> = simple.words.iter().map(Word::literal).collect();
            let words: Vec<&str> = words
                .iter()
                .map(|word| word.as_deref().unwrap_or_default())
                .collect();
            match words.as_slice() {
                ["wc", option] => matches!(*option, "-l" | "-w" | "-c" | "-m"),
                ["grep", option, rest @ ..] => {
                    counts(option) && rest.len() <= 2 && simple.words.iter().skip(2).all(is_one)
                }
                ["date", format] => matches!(*format, "+%s" | "+%s%N" | "+%Y" | "+%Y%m%d"),
                ["id", option] => matches!(*option, "-u" | "-g"),
                ["git", "rev-list", "--count", rest @ ..] => rest
                    .iter()
                    .all(|word| !word.starts_with('-') || *word == "--all"),
                ["nproc", ..] => true,
                ["touch" | "mkdir" | "true" | "false" | ":" | "sleep", ..] => true,
                _ => false,
            }
        }
        _ => false,
    };
    !script.pipelines.is_empty() && script.pipelines.iter().all(last)
}
