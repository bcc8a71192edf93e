//! The answers of a session that came: each is delivered once, whole, and removed when it is in the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::RequestId;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::folder::{Folder, Stamp};
use super::name;
use crate::channel::{Delivered, MAX_DELIVERED};

/// Most names that are remembered; beyond that the folder is looked at again.
const MOST_WAITING: usize = 4096;
/// How long the writer of a file that was found half-written has to finish it.
const RIPENING: Duration = Duration::from_secs(2);

/// How it is known that a file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It was there when the folder was looked at: somebody may be writing it.
    Before,
    /// Somebody finished it.
    Whole,
}

#[derive(Debug)]
struct Outstanding {
    stamp: Stamp,
    request: RequestId,
    digest: Digest,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: VecDeque<(String, Came)>,
    /// The names among them.
    queued: BTreeSet<String>,
    /// Found half-written, and when they count as finished.
    unripe: BTreeMap<String, Instant>,
    /// Delivered, and not in the log yet; or in the log, and cannot be removed.
    outstanding: BTreeMap<String, Outstanding>,
    look_again: bool,
}

impl Inbox {
    /// Something of this name is there.
    pub(super) fn came(&mut self, name: String, came: Came) {
        if name::answered(&name).is_none() || self.queued.contains(&name) {
            return;
        }
        if self.waiting.len() >= MOST_WAITING {
            self.look_again = true;
            return;
        }
        self.unripe.remove(&name);
        self.queued.insert(name.clone());
        self.waiting.push_back((name, came));
    }

    pub(super) fn look_again(&mut self) {
        self.look_again = true;
    }

    /// Whether names were dropped, and all that were not are dealt with.
    pub(super) fn has_to_look(&self) -> bool {
        self.look_again && self.waiting.is_empty()
    }

    pub(super) fn looked(&mut self) {
        self.look_again = false;
    }

    pub(super) fn has_any(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When the first of the half-written ones counts as finished.
    pub(super) fn ripe_at(&self) -> Option<Instant> {
        self.unripe.values().min().copied()
    }

    /// Nobody finished these in time: they are taken as they are.
    pub(super) fn ripen(&mut self) {
        let now = Instant::now();
        let ripe = self.unripe.iter().filter(|(_, at)| **at <= now);
        let ripe: Vec<String> = ripe.map(|(name, _)| name.clone()).collect();
        for name in ripe {
            self.came(name, Came::Whole);
        }
    }

    /// The next answer, if what waits is any.
    pub(super) fn take(&mut self, folder: &Folder) -> io::Result<Option<Delivered>> {
        while let Some((name, came)) = self.waiting.pop_front() {
            let read = folder.read(&name, MAX_DELIVERED + 1);
            if let Err(problem) = read {
                self.waiting.push_front((name, came));
                return Err(problem);
            }
            self.queued.remove(&name);
            let Ok(Some(content)) = read else {
                continue;
            };
            let delivered_before = self.outstanding.get(&name);
            if delivered_before.is_some_and(|before| before.stamp == content.stamp) {
                continue;
            }
            if came == Came::Before && serde_json::from_slice::<IgnoredAny>(&content.bytes).is_err()
            {
                self.unripe.insert(name, Instant::now() + RIPENING);
                continue;
            }
            let Some(request) = name::answered(&name) else {
                continue;
            };
            let delivered = Delivered::of(request, content.bytes);
            let outstanding = Outstanding {
                stamp: content.stamp,
                request,
                digest: sha256(&delivered.bytes),
            };
            self.outstanding.insert(name, outstanding);
            return Ok(Some(delivered));
        }
        Ok(None)
    }

    /// Removes what is in the log, unless something else has its name by now.
    pub(super) fn recorded(&mut self, folder: &Folder, delivered: &Delivered) -> io::Result<()> {
        let digest = sha256(&delivered.bytes);
        let is_it = |o: &Outstanding| o.request == delivered.request && o.digest == digest;
        let found = self.outstanding.iter().find(|(_, o)| is_it(o));
        let Some((name, stamp)) = found.map(|(name, o)| (name.clone(), o.stamp)) else {
            return Ok(());
        };
        if folder.stamp(&name)? == Some(stamp) {
            folder.remove(&name)?;
        }
        self.outstanding.remove(&name);
        Ok(())
    }
}
