//! What goes with a call beside its arguments: to whom questions about it belong, and how much is to be told.

use std::sync::{Arc, OnceLock};

use tokio::sync::OwnedSemaphorePermit;

/// What goes with a call beside its arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// The rounds in which the agent makes the call.
    pub(crate) rounds: Option<u64>,
    /// The server's name for what it wants to know.
    pub(crate) question: Option<String>,
    /// How much the agent wants to be told, in the protocol's word for it.
    pub(crate) level: Option<&'static str>,
    /// Held from when a large result is taken apart until the call is over.
    pub(crate) turn: Arc<OnceLock<OwnedSemaphorePermit>>,
    /// For a harness that takes [`Defence::ParsedOnce`](lodestar_core::defence::Defence) out: the arguments as
    /// the agent wrote them, which the server is sent instead of those that were judged.
    pub(crate) unparsed: Option<Box<str>>,
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

/// Whether something of this level is told to whoever wants to be told `least` and what weighs more.
pub(crate) fn is_told(least: &str, word: &str) -> bool {
    let weight = |word: &str| LEVELS.iter().position(|level| *level == word);
    weight(word).is_some_and(|weighs| weight(least).is_some_and(|least| weighs >= least))
}

/// One of the protocol's words; nothing else goes to a server unseen.
pub(crate) fn level(word: &str) -> Option<&'static str> {
    LEVELS.into_iter().find(|level| *level == word)
}
