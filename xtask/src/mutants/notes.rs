//! What became of each mutant when it was tried last, kept from one run to the next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::compile::Placed;
use super::hunt::Fate;

/// How many more fates are known before they are written down: a run may be broken off.
const EVERY: usize = 25;

/// The fates, by the names of the mutants.
#[derive(Debug)]
pub(super) struct Notes {
    file: PathBuf,
    fates: BTreeMap<String, Fate>,
    unwritten: usize,
}

impl Notes {
    /// What an earlier run left; nothing if there was none.
    pub(super) fn read(folder: &Path) -> Self {
        let file = folder.join("fates.json");
        let fates = std::fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            file,
            fates: fates.unwrap_or_default(),
            unwritten: 0,
        }
    }

    /// The fate of a mutant that some test noticed.
    pub(super) fn noticed(&self, placed: &Placed) -> Option<&Fate> {
        let fate = self.fates.get(&name(placed));
        fate.filter(|fate| matches!(fate, Fate::Caught(_) | Fate::TimedOut))
    }

    /// Notes a fate.
    pub(super) fn note(&mut self, placed: &Placed, fate: &Fate) {
        self.fates.insert(name(placed), fate.clone());
        self.unwritten += 1;
        if self.unwritten >= EVERY {
            self.write();
        }
    }

    /// Writes them down. Where that fails, the next run tries them again.
    pub(super) fn write(&mut self) {
        let bytes = serde_json::to_vec(&self.fates).expect("fates are JSON");
        let _ = std::fs::write(&self.file, bytes);
        self.unwritten = 0;
    }
}

/// A mutant by what stays the same when lines move.
pub(super) fn name(placed: &Placed) -> String {
    let Placed { file, mutant, .. } = placed;
    format!("{file}: {}: {}", mutant.function, mutant.change)
}
