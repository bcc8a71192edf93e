//! Arithmetic: whether `((…))` is an expression or could be commands in two subshells, and what it computes with.

use std::collections::BTreeMap;

use lodestar_core::ladder::Rung;

use super::paths::MARK;
use super::programs;
use super::syntax::{Command, Expansion, Pipeline, Script, Simple, Unit, Word};

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

/// What a line says of its variables: a shell that computes with a value runs the commands that an index in it
/// holds, so a variable counts as a number only if everything that the line puts into it is one.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    known: BTreeMap<String, bool>,
    /// Arrays whose index is text.
    keyed: Vec<String>,
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
                }
                compound.scripts.iter().for_each(|script| self.note(script));
            }
            Command::Subshell(script, _) => self.note(script),
            Command::Function(_, body) => self.note_command(body),
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
            .skip_while(|word| matches!(*word, "command" | "builtin"))
            .collect();
        match words.as_slice() {
            [
                "declare" | "typeset" | "local" | "export" | "readonly",
                rest @ ..,
            ] => {
                let keyed = rest
                    .iter()
                    .any(|word| word.starts_with('-') && word.contains('A'));
                for word in rest.iter().filter(|word| !word.starts_with('-')) {
                    match word.split_once('=') {
                        Some((name, value)) => {
                            self.set(name.trim_end_matches('+'), is_number_text(value))
                        }
                        None if keyed => self.keyed.push((*word).to_owned()),
                        None => {}
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
                for word in rest {
                    let name = word.trim_start_matches(['-', 'v', 'a', 'p']);
                    [*word, name]
                        .iter()
                        .filter(|name| super::syntax::is_name(name))
                        .for_each(|name| self.set(name, false));
                }
            }
            ["let", rest @ ..] => rest.iter().for_each(|word| self.note_text(word)),
            ["eval" | "trap" | "source" | ".", rest @ ..] => {
                for word in rest {
                    for (at, _) in word.match_indices('=') {
                        let head = word[..at].trim_end_matches('+');
                        let begin = head
                            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                            .map_or(0, |at| {
                                at + head[at..].chars().next().map_or(1, char::len_utf8)
                            });
                        self.set(&head[begin..], false);
                    }
                }
            }
            _ => {}
        }
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
            Some(number) => *number,
            None => COUNTERS.contains(&name),
        }
    }

    /// Whether all that an expression computes with is known to be numbers.
    pub(super) fn computes(&self, word: &Word) -> bool {
        let known = word.expansions.iter().all(|expansion| match &**expansion {
            Expansion::Arithmetic(_) => true,
            Expansion::Parameter { length: true, .. } => true,
            Expansion::Parameter { name, rest, .. } => rest.is_empty() && self.holds(name),
            Expansion::Command(script) => says_number(script),
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
        match self.keyed.iter().any(|own| own == array) {
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
                } => rest.is_empty() && index.is_none() && COUNTERS[..4].contains(&name.as_str()),
                Expansion::Command(script) => says_number(script),
                Expansion::Process(_) => false,
            };
            word.units.iter().all(digits) && word.expansions.iter().all(|one| number(one))
        }
    }
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
                ["grep", option, ..] => {
                    option.starts_with('-') && !option.starts_with("--") && option.contains('c')
                }
                ["date", format] => matches!(*format, "+%s" | "+%s%N" | "+%Y" | "+%Y%m%d"),
                ["id", option] => matches!(*option, "-u" | "-g"),
                ["git", "rev-list", "--count", ..] | ["nproc", ..] => true,
                ["touch" | "mkdir" | "true" | "false" | ":" | "sleep", ..] => true,
                _ => false,
            }
        }
        _ => false,
    };
    !script.pipelines.is_empty() && script.pipelines.iter().all(last)
}
