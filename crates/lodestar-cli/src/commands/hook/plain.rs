//! One hook, answered: what a client says comes in on standard input, the answer goes out on standard output.
//!
//! The same for every client: the way from a hook to the daemon and back is measured and tested with it. Whatever
//! goes wrong is a refusal.

use std::io::{Read as _, Write as _};

use lodestar_guard::hook::daemon::{Unavailable, ask};
use lodestar_guard::hook::protocol::{MAX_INPUT, ProtocolError};
use lodestar_guard::hook::{Answer, Incoming};

use crate::failure::Exit;

/// Answers in Lodestar's own words: an [`Incoming`] as JSON, an [`Answer`] as JSON.
pub(crate) fn run() -> Exit {
    let answer = match said() {
        Ok(incoming) => decided(ask(&incoming)),
        Err(problem) => Answer::Refuse {
            reason: format!("Lodestar: what the client said cannot be read: {problem}"),
        },
    };
    let written = serde_json::to_string(&answer).map_err(std::io::Error::from);
    let written = written.and_then(|line| writeln!(std::io::stdout(), "{line}"));
    match written {
        Ok(()) => Exit::Done,
        // To clients this is the code that blocks.
        Err(_) => Exit::Usage,
    }
}

/// Whoever has no answer refuses.
pub(crate) fn decided(asked: Result<Answer, Unavailable>) -> Answer {
    asked.unwrap_or_else(|problem| Answer::Refuse {
        reason: format!("Lodestar: {problem}. Nothing runs ungoverned; tell the user."),
    })
}

fn said() -> Result<Incoming, String> {
    let mut said = Vec::new();
    let most = u64::try_from(MAX_INPUT).unwrap_or(u64::MAX);
    let reading = std::io::stdin()
        .lock()
        .take(most.saturating_add(1))
        .read_to_end(&mut said);
    reading.map_err(|problem| problem.to_string())?;
    if said.len() > MAX_INPUT {
        return Err(ProtocolError::TooLong.to_string());
    }
    serde_json::from_slice(&said).map_err(|problem| problem.to_string())
}
