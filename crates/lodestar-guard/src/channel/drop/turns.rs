//! Which sessions' folders are looked at, where there are more than can be looked at each time.

use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;

use lodestar_core::name::SessionId;
use rustix::fs::FileType;

use super::folder::{Folder, Listed};

/// Most folders that are looked at to find something new in one look, and as many in which something lies.
pub(super) const MOST_SESSIONS: usize = 10_000;

/// Goes on with each look where the last one ended, so that all have their turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// How many folders were passed in this round.
    passed: usize,
    /// The last of those in which something lies.
    last_held: Option<SessionId>,
}

/// What is looked at this time.
pub(super) struct Turn {
    pub(super) sessions: BTreeSet<SessionId>,
    /// Those in which something lies that stay as they are known.
    pub(super) put_off: BTreeSet<SessionId>,
    /// Whether there are no others.
    pub(super) is_all: bool,
}

impl Turns {
    /// Chooses; `held` are those in which something lay. A folder without anything keeps none of them
    /// waiting.
    pub(super) fn next(
        &mut self,
        approvals: &Folder,
        mut held: BTreeSet<SessionId>,
    ) -> io::Result<Turn> {
        let listed = list(approvals, self.passed)?;
        let mut is_all = self.passed == 0 && listed.is_all;
        self.passed = match listed.is_all || listed.names.is_empty() {
            true => 0,
            false => self.passed + listed.names.len(),
        };
        let mut sessions = BTreeSet::new();
        if held.len() > MOST_SESSIONS {
            is_all = false;
            let last = self.last_held.as_ref();
            let start = last.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = held.range((start, Bound::Unbounded));
            let chosen: Vec<SessionId> = rest.take(MOST_SESSIONS).cloned().collect();
            self.last_held = match chosen.len() == MOST_SESSIONS {
                true => chosen.last().cloned(),
                false => None,
            };
            sessions.extend(chosen);
        } else {
            sessions.append(&mut held);
        }
        sessions.extend(ids(listed));
        held.retain(|session| !sessions.contains(session));
        Ok(Turn {
            sessions,
            put_off: held,
            is_all,
        })
    }

    /// Whether some were not looked at yet in this round.
    pub(super) fn is_midway(&self) -> bool {
        self.passed > 0
    }
}

/// The first of them.
pub(super) fn sessions(approvals: &Folder) -> io::Result<impl Iterator<Item = SessionId>> {
    list(approvals, 0).map(ids)
}

fn list(approvals: &Folder, after: usize) -> io::Result<Listed> {
    let is_session = |name: &str, kind: FileType| {
        matches!(kind, FileType::Directory | FileType::Unknown) && SessionId::new(name).is_ok()
    };
    approvals.list((after, MOST_SESSIONS), is_session)
}

fn ids(listed: Listed) -> impl Iterator<Item = SessionId> {
    let names = listed.names.into_iter();
    names.filter_map(|name| SessionId::new(&name).ok())
}
