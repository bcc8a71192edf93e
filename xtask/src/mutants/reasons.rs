//! Why a mutant may live: `xtask/mutants.toml`, written by people.
//!
//! A mutant is named by its file, its function and its change, so that an entry stays true when
//! lines move.

use serde::Deserialize;

use super::compile::Placed;
use crate::shell::{self, Failure, because};

/// Where they stand.
pub(super) const FILE: &str = "xtask/mutants.toml";

/// Mutants that no test can tell from the code, or that none should.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reasons {
    #[serde(default)]
    survivor: Vec<Reason>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    pub(super) file: String,
    pub(super) function: String,
    pub(super) change: String,
    reason: String,
    /// It takes a race to notice it, which tests win on some runs: no entry to take out then.
    #[serde(default)]
    sometimes: bool,
}

impl Reasons {
    /// Reads the file.
    pub(super) fn read() -> Result<Self, Failure> {
        let text = std::fs::read_to_string(shell::workspace().join(FILE))
            .map_err(|e| because(format!("cannot read `{FILE}`: {e}")))?;
        toml::from_str(&text).map_err(|e| because(format!("`{FILE}`: {e}")))
    }

    /// Why this one may live.
    pub(super) fn of(&self, placed: &Placed) -> Option<&str> {
        let entry = self.survivor.iter().find(|entry| entry.is_about(placed));
        entry.map(|entry| entry.reason.trim())
    }

    /// Entries about files that were looked at, and about none of the survivors.
    pub(super) fn stale<'a>(
        &'a self,
        looked_at: &'a [&Placed],
        survivors: &'a [&Placed],
    ) -> impl Iterator<Item = &'a Reason> {
        self.survivor.iter().filter(|entry| {
            let concerned = looked_at.iter().any(|placed| placed.file == entry.file);
            concerned && !entry.sometimes && !survivors.iter().any(|placed| entry.is_about(placed))
        })
    }
}

impl Reason {
    fn is_about(&self, placed: &Placed) -> bool {
        self.file == placed.file
            && self.function == placed.mutant.function
            && self.change == placed.mutant.change
    }
}
