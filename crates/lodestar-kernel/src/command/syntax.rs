//! What a command line is made of, once it is parsed.
//!
//! The tree keeps what grading needs and nothing else: which programs run with which words, what else is run
//! on the way (substitutions, functions, branches), and which files redirections open. Whether a part runs
//! makes no difference to the strictest of them; only what it leaves behind, such as a function, is not counted on.

use thiserror::Error;

/// Why a text is not read as a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Unread {
    #[error("it is longer than {} bytes", super::MAX_LEN)]
    TooLong,
    #[error("it is nested more than {} levels deep", super::MAX_DEPTH)]
    TooDeep,
    #[error("it takes too long to read")]
    TooMuch,
    #[error("{0} is not closed")]
    Open(&'static str),
    #[error("a `{0}` stands where none can be")]
    Unexpected(char),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("it uses {0}")]
    Foreign(&'static str),
}

/// Commands, one after or beside the other.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) pipelines: Vec<Pipeline>,
}

/// Commands of which each reads what the one before it says.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
    pub(super) background: bool,
    /// Whether it stands behind `&&` or `||`, so that it may not run.
    pub(super) conditional: bool,
}

#[derive(Debug)]
pub(super) enum Command {
    Simple(Simple),
    /// `{ … }`, `if`, `while`, `for`, `case` and the like: whatever is run in them.
    Compound(Compound),
    /// `( … )`: its working directory is its own.
    Subshell(Script, Vec<Redirect>),
    Function(String, Box<Command>),
}

#[derive(Debug, Default)]
pub(super) struct Simple {
    pub(super) assigns: Vec<Assign>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug, Default)]
pub(super) struct Compound {
    /// Words that are expanded but not run: subjects and patterns of `case`.
    pub(super) words: Vec<Word>,
    /// Words between `[[` and `]]`.
    pub(super) tested: Vec<Word>,
    /// Arithmetic.
    pub(super) expressions: Vec<Word>,
    /// What `for` takes one after the other.
    pub(super) each: Option<(String, Vec<Word>)>,
    /// Whether it is a loop.
    pub(super) repeats: bool,
    pub(super) scripts: Vec<Script>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) struct Assign {
    pub(super) name: String,
    /// The value; of an array, all of them.
    pub(super) values: Vec<Word>,
    /// The index, where it has one: an arithmetic expression.
    pub(super) index: Option<Word>,
}

#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) way: Way,
    pub(super) target: Word,
}

/// What a redirection does with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
    ReadWrite,
    /// A here-document or here-string: the target is the text.
    Here,
    /// Another descriptor; a file, if the word is neither a number nor `-`.
    Duplicate,
}

/// A word before expansion.
#[derive(Debug, Default, Clone)]
pub(super) struct Word {
    pub(super) units: Vec<Unit>,
    pub(super) expansions: Vec<std::rc::Rc<Expansion>>,
    /// Whether any of it is quoted: then it is a word even when it is empty.
    pub(super) quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A character that may still mean something: a pattern, a brace, a tilde.
    Bare(char),
    /// A character that means itself.
    Quoted(char),
    /// An expansion, by its index, and whether it stands in quotes: then it stays one word.
    Expansion(usize, bool),
}

impl Unit {
    /// The character, where it is one.
    pub(super) fn text(&self) -> Option<char> {
        match self {
            Self::Bare(c) | Self::Quoted(c) => Some(*c),
            Self::Expansion(..) => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum Expansion {
    /// `$name`, `${name…}`, with what stands after the name.
    Parameter {
        name: String,
        /// `${!name}`, `${name@P}`: the value is read as something else than text.
        indirect: bool,
        /// `${#name}`.
        length: bool,
        /// `${name:=…}`.
        assigns: bool,
        /// `${name[…]}`: an expression, unless it is `@` or `*`.
        index: Option<Word>,
        rest: Word,
    },
    Command(Script),
    /// `$((…))`, with the expansions in it.
    Arithmetic(Word),
    /// `<(…)`, `>(…)`.
    Process(Script),
}

impl Word {
    pub(super) fn push_text(&mut self, text: &str, quoted: bool) {
        let unit = |c| match quoted {
            true => Unit::Quoted(c),
            false => Unit::Bare(c),
        };
        self.units.extend(text.chars().map(unit));
        self.quoted |= quoted;
    }

    pub(super) fn push_expansion(&mut self, expansion: Expansion, quoted: bool) {
        let index = self.expansions.len();
        self.expansions.push(std::rc::Rc::new(expansion));
        self.units.push(Unit::Expansion(index, quoted));
        self.quoted |= quoted;
    }

    /// The text of a word that holds no expansion.
    pub(super) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for unit in &self.units {
            match unit {
                Unit::Bare(c) | Unit::Quoted(c) => text.push(*c),
                Unit::Expansion(..) => return None,
            }
        }
        Some(text)
    }

    /// The text of a word of which nothing is quoted or expanded: only such words are reserved.
    pub(super) fn bare(&self) -> Option<String> {
        let bare = |unit: &Unit| match unit {
            Unit::Bare(c) => Some(*c),
            _ => None,
        };
        match self.quoted {
            true => None,
            false => self.units.iter().map(bare).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty() && !self.quoted
    }
}

/// Whether a text can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
