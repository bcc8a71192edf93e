//! What is noted while a session is followed.

use lodestar_core::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::session::{Difference, SessionReplay};

/// What is noted about one event.
pub(super) struct Notes<'a> {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    pub(super) parents: &'a [u64],
    pub(super) replay: &'a mut SessionReplay,
}

impl Notes<'_> {
    pub(super) fn differ(&mut self, recorded: impl Into<String>, derived: impl Into<String>) {
        self.replay.differ(Difference {
            seq: self.seq,
            recorded: recorded.into(),
            derived: derived.into(),
        });
    }

    /// What it says does not follow any more, because something that it rests on was redacted.
    pub(super) fn cannot_tell(&mut self) {
        if self.replay.redacted.last() != Some(&self.seq) {
            self.replay.redacted.push(self.seq);
        }
    }

    /// A difference, unless nobody can tell whether it is one.
    pub(super) fn differ_if_known(
        &mut self,
        is_known: bool,
        recorded: impl Into<String>,
        derived: impl Into<String>,
    ) {
        match is_known {
            true => self.differ(recorded, derived),
            false => self.cannot_tell(),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&mut self, payload: Value) -> Option<T> {
        match serde_json::from_value(payload) {
            Ok(read) => Some(read),
            Err(problem) => {
                self.differ(format!("what cannot be read: {problem}"), "nothing");
                None
            }
        }
    }
}
