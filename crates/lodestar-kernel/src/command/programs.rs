//! The table of graded programs: the one place that says what a program comes to.
//!
//! A program that is not here is held for a human, because nobody graded it. `docs/reference/commands.md` is made
//! of this table. Where a program's options or subcommands matter more than its name, the entry names the rule
//! that looks at them (`Rule`).

mod table;

use lodestar_core::ladder::Rung;

pub(super) use table::programs;

/// One program, or several that are alike.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) names: &'static [&'static str],
    /// The rung where nothing raises it.
    pub(super) rung: Rung,
    /// What it does, as half a sentence behind its name.
    pub(super) does: &'static str,
    pub(super) rule: Rule,
    pub(super) options: Options,
    pub(super) raises: &'static [Raise],
}

/// Which options a program may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Options {
    /// Its rule looks at them.
    ByRule,
    /// Any: none of them writes, runs or fetches.
    Free,
    /// Letters, of which those before a colon take a value, and words, of which those that end in `=` do. Any
    /// other is not known, and held.
    Plain(&'static str, &'static [&'static str]),
}

/// How the words behind a program's name are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// They are text.
    Text,
    /// They say how to show a value; a word that is no option sets it.
    Shows,
    /// They name files that are looked at from outside.
    Names,
    /// They name files that are read.
    Reads,
    /// The first is a pattern, the others name files that are read.
    Searches,
    /// They name files that are written.
    Writes,
    /// The last is written, the others are read.
    Copies,
    /// The second, if there is one, is written.
    Second,
    /// They name files that are deleted.
    Deletes,
    /// It works on the project: no word may lead out of it.
    Works,
    /// They do not matter: it is held or denied anyway.
    Any,
    /// The first word that is no option says what it does.
    Subcommands(&'static [Sub]),
    /// It runs what stands behind it.
    Wraps(Wrapper),
    /// It runs a file, or code in an option.
    Interprets(Interpreter),
    Shell,
    Awk,
    Cd,
    Chmod,
    Command,
    Coverage,
    Dd,
    Env,
    Eval,
    Exec,
    Find,
    Git,
    Jobs,
    Jq,
    Kill,
    Link,
    Lodestar,
    Make,
    Npx,
    Printf,
    Ps,
    Sed,
    Set,
    Source,
    Tar,
    Test,
    Trap,
    Unzip,
    Variables,
    Xargs,
}

/// A subcommand, or several that are alike.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sub {
    pub(super) names: &'static [&'static str],
    pub(super) rung: Rung,
    pub(super) does: &'static str,
}

/// An option that makes a program do more.
#[derive(Debug)]
pub(super) struct Raise {
    /// `-x` or `--long`.
    pub(super) options: &'static [&'static str],
    pub(super) effect: Effect,
    pub(super) does: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Is(Rung),
    /// Its value names a file that is written.
    Writes,
}

/// How a wrapper's own words are told from the command that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrapper {
    /// Options that take the next word as their value.
    pub(super) valued: &'static [&'static str],
    /// Options that take none; any other is not known, and held.
    pub(super) plain: &'static [&'static str],
    /// Words before the command.
    pub(super) operands: usize,
    /// Whether the words behind are one text for a shell.
    pub(super) text: bool,
}

/// How an interpreter is told what to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// Options that only change how it runs.
    pub(super) plain: &'static [&'static str],
    /// Modules that `-m` may name.
    pub(super) modules: &'static [&'static str],
}

impl Program {
    const fn new(
        rung: Rung,
        names: &'static [&'static str],
        does: &'static str,
        rule: Rule,
    ) -> Self {
        Self {
            names,
            rung,
            does,
            rule,
            options: Options::ByRule,
            raises: &[],
        }
    }

    /// All its options are harmless.
    const fn free(mut self) -> Self {
        self.options = Options::Free;
        self
    }

    /// Only these options are harmless.
    const fn plain(mut self, letters: &'static str, words: &'static [&'static str]) -> Self {
        self.options = Options::Plain(letters, words);
        self
    }

    const fn raised(mut self, raises: &'static [Raise]) -> Self {
        self.raises = raises;
        self
    }
}

const fn sub(rung: Rung, names: &'static [&'static str], does: &'static str) -> Sub {
    Sub { names, rung, does }
}

const fn raise(options: &'static [&'static str], rung: Rung, does: &'static str) -> Raise {
    Raise {
        options,
        effect: Effect::Is(rung),
        does,
    }
}

const fn output(options: &'static [&'static str]) -> Raise {
    Raise {
        options,
        effect: Effect::Writes,
        does: "writes to a file",
    }
}

/// The entry of a program.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    // Families of programs that have a name each for what they work on.
    let name = match name {
        _ if name.starts_with("mkfs.") => "mkfs",
        _ if name.starts_with("python3.") || name.starts_with("python2.") => "python3",
        name => name,
    };
    programs().find(|program| program.names.contains(&name))
}
