//! Lodestar's own commands: looking is free, acting is for people.

use lodestar_core::ladder::Rung;

use crate::command::expand::Arg;
use crate::command::grade::{Grade, Grader};

/// What only shows something, by the words behind the program's name.
const SHOWS: &[&[&str]] = &[
    &["doctor"],
    &["--version"],
    &["--help"],
    &["log", "list"],
    &["log", "show"],
    &["log", "verify"],
    &["belief", "list"],
    &["belief", "show"],
    &["belief", "why"],
    &["policy", "show"],
    &["policy", "check"],
    &["policy", "explain"],
    &["policy", "test"],
    &["policy", "verify"],
    &["tools", "list"],
    &["approve", "list"],
    &["replay"],
    &["report"],
];

/// Words that have Lodestar act as an operator, or be set up anew.
const OPERATOR: [&str; 26] = [
    "approve",
    "grant",
    "deny",
    "confirm",
    "undo",
    "keygen",
    "sign",
    "halt",
    "init",
    "grade",
    "hook",
    "import",
    "store",
    "token",
    "platform",
    "device",
    "runner",
    "agent",
    "gateway",
    "submission",
    "uninstall",
    "install",
    "promote",
    "retract",
    "revoke",
    "run",
];

/// Whether a word has Lodestar act.
pub(in crate::command) fn is_operator_word(word: &str) -> bool {
    OPERATOR.contains(&word)
}

/// Whether code in a text names Lodestar and has it act.
pub(super) fn acts_in(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("lodestar_")
        || text.contains(".lodestar")
        || (text.contains("lodestar") && OPERATOR.iter().any(|word| text.contains(word)))
}

impl Grader {
    pub(super) fn lodestar(&mut self, args: &[Arg], grade: &mut Grade) {
        let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        let shows = SHOWS.iter().any(|shown| words.starts_with(shown));
        let writes = words.iter().any(|word| {
            [
                "-o", "--out", "--output", "--html", "--bundle", "--root", "--store",
            ]
            .iter()
            .any(|option| super::given(word, option).is_some() && word.len() > 2)
        });
        match shows && args.iter().all(Arg::is_known) {
            true if writes => grade.raise(Rung::L4, "`lodestar` would write or look elsewhere"),
            true => grade.raise(Rung::L0, "`lodestar` only shows something"),
            false => grade.raise(
                Rung::L5,
                "it has Lodestar act or be set up, which is for people",
            ),
        }
        self.works(&args[1.min(args.len())..], grade);
    }
}
