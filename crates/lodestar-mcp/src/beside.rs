//! What goes with a call beside its arguments: to whom questions about it belong, and how much is to be told.

use std::sync::Arc;

use lodestar_kernel::tool;

/// What goes with a call beside its arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// The rounds in which the agent makes the call.
    pub(crate) rounds: Option<u64>,
    /// The server's name for what it wants to know.
    pub(crate) question: Option<String>,
    /// How much the agent wants to be told, in the protocol's word for it.
    pub(crate) level: Option<&'static str>,
}

/// The words of the protocol for how much is told.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

impl Beside {
    /// As a call carries it; none where there is nothing to say.
    pub(crate) fn carried(self) -> Option<tool::Beside> {
        let says_something =
            self.rounds.is_some() || self.question.is_some() || self.level.is_some();
        says_something.then(|| -> tool::Beside { Arc::new(self) })
    }
}

/// Whether something of this level is told to whoever wants to be told `least` and what weighs more.
pub(crate) fn is_told(least: &str, word: &str) -> bool {
    let weight = |word: &str| LEVELS.iter().position(|level| *level == word);
    weight(word).is_some_and(|weighs| weight(least).is_some_and(|least| weighs >= least))
}

/// One of the protocol's words; nothing else goes to a server unseen.
pub(crate) fn level(word: &str) -> Option<&'static str> {
    LEVELS.into_iter().find(|level| *level == word)
}
