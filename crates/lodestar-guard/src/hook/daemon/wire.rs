//! What a hook and the daemon say to each other: a line with the pass, a line that asks, a line that answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::hook::settings::{CLIENT_WAITS, DEADLINE};
use crate::hook::{Answer, Incoming};

/// Most that one question may take: a large file that is written whole, or what a tool read, escaped.
pub(super) const MAX_ASKED: usize = 24 << 20;

/// Most that one answer may take.
pub(super) const MAX_TOLD: usize = 1 << 20;

/// How long a held use waits for people at most, whatever the configuration says. Clients give a hook a
/// minute, and most of them let the tool run when it does not answer: an answer always comes before.
pub(super) const LONGEST_HOLD: Duration = Duration::from_secs(40);

/// How long a daemon may take until it listens.
pub(super) const UP_WITHIN: Duration = Duration::from_secs(8);

/// How long a hook waits for an answer: longer than any hold, and shorter than clients wait for hooks.
pub(super) const LONGEST_ANSWER: Duration = Duration::from_secs(55);

// INVARIANT: a use that is held is answered before the hook gives up, even if the daemon had to be started for it;
// and the hook gives up before the client does, since a client that gives up lets the tool run.
const _: () = {
    assert!(UP_WITHIN.as_millis() + LONGEST_HOLD.as_millis() < DEADLINE.as_millis());
    assert!(DEADLINE.as_millis() < CLIENT_WAITS.as_millis());
    assert!(LONGEST_HOLD.as_millis() < LONGEST_ANSWER.as_millis());
    assert!(LONGEST_ANSWER.as_millis() < CLIENT_WAITS.as_millis());
};

/// What is asked of the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asked {
    /// What a client said.
    Said(Box<Incoming>),
    /// To close all sessions and end.
    Stop,
}

/// What the daemon says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// To the client.
    Answer(Answer),
    /// It ends.
    Stopping,
    /// What was asked is nothing that can be answered.
    Problem(String),
}

/// A line of its own.
pub(super) fn line<T: Serialize>(said: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    Ok(line)
}
