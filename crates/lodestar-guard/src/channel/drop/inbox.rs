//! The answers of a session that came: each is delivered once, whole, and removed when it is in the log.
//!
//! Whoever can write here can write very much. What answers an open request comes first, the newest and
//! the oldest in turn, so that a genuine answer does not wait behind a flood; what answers none comes at a
//! pace; and a file that cannot be read keeps nobody waiting but itself.

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

/// How long a file that cannot be read is left alone, at first and at most.
const FIRST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// How often such a file is told of.
const TELLING: Duration = Duration::from_secs(30);
/// Answers to no open request that are delivered at once, and how long it takes until there is room for
/// one more: each stands in the log, whatever it says.
const AT_ONCE: u32 = 100;
const ONE_MORE: Duration = Duration::from_secs(1);

/// How long it takes at least until the folder is looked at again while something waits.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The requests that can be answered, with what is announced of them.
pub(super) type Open = BTreeMap<RequestId, Vec<u8>>;

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

/// A file that could not be read.
#[derive(Debug)]
struct Troubled {
    /// When it is tried again; none while it waits for that.
    again_at: Option<Instant>,
    rest: Duration,
}

#[derive(Debug)]
pub(super) struct Inbox {
    /// By the request that they answer, in the order in which they came.
    waiting: BTreeMap<RequestId, VecDeque<(String, Came)>>,
    /// The names among them.
    queued: BTreeSet<String>,
    turn: Turn,
    /// How many that answer no open request may be delivered now, and since when that is so.
    room: u32,
    counted: Instant,
    /// Found half-written, and when they count as finished.
    unripe: BTreeMap<String, Instant>,
    troubled: BTreeMap<String, Troubled>,
    /// What is wrong with one of them, until it is told, and when that was last done.
    problem: Option<io::Error>,
    told_at: Option<Instant>,
    /// Delivered, and not in the log yet; or in the log, and cannot be removed.
    outstanding: BTreeMap<String, Outstanding>,
    look_again: bool,
    looked_at: Option<Instant>,
}

/// From which end the next one is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Newest,
    Oldest,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            queued: BTreeSet::new(),
            turn: Turn::Oldest,
            room: AT_ONCE,
            counted: Instant::now(),
            unripe: BTreeMap::new(),
            troubled: BTreeMap::new(),
            problem: None,
            told_at: None,
            outstanding: BTreeMap::new(),
            look_again: false,
            looked_at: None,
        }
    }
}

impl Inbox {
    /// Something of this name is there.
    pub(super) fn came(&mut self, name: String, came: Came, open: &Open) {
        let Some(request) = name::answered(&name) else {
            return;
        };
        if self.queued.contains(&name) {
            return;
        }
        if self.queued.len() >= MOST_WAITING {
            self.look_again = true;
            if !open.contains_key(&request) {
                return;
            }
            self.make_way(open);
        }
        self.unripe.remove(&name);
        if let Some(troubled) = self.troubled.get_mut(&name) {
            troubled.again_at = None;
        }
        self.queued.insert(name.clone());
        let waiting = self.waiting.entry(request).or_default();
        waiting.push_back((name, came));
    }

    /// Lets go of one that the next look finds again: of those that answer no open request, or else from
    /// the middle of the longest row, whose ends are taken first.
    fn make_way(&mut self, open: &Open) {
        let is_other = |request: &&RequestId| !open.contains_key(request);
        let other = self.waiting.keys().find(is_other).copied();
        let longest = || {
            let rows = self.waiting.iter();
            rows.max_by_key(|(_, row)| row.len()).map(|(id, _)| *id)
        };
        let Some(request) = other.or_else(longest) else {
            return;
        };
        let Some(row) = self.waiting.get_mut(&request) else {
            return;
        };
        if let Some((name, _)) = row.remove(row.len() / 2) {
            self.queued.remove(&name);
        }
        if row.is_empty() {
            self.waiting.remove(&request);
        }
    }

    pub(super) fn look_again(&mut self) {
        self.look_again = true;
    }

    /// Whether names were let go of, and it is time to find them again.
    pub(super) fn has_to_look(&self, open: &Open) -> bool {
        let is_open = |request: &RequestId| open.contains_key(request);
        let rested = || {
            self.looked_at
                .is_none_or(|at| at.elapsed() >= BETWEEN_LOOKS)
        };
        self.look_again
            && (self.waiting.is_empty() || !self.waiting.keys().any(is_open) && rested())
    }

    pub(super) fn looked(&mut self) {
        self.look_again = false;
        self.looked_at = Some(Instant::now());
    }

    /// Whether something can be taken now.
    pub(super) fn has_any(&self, open: &Open) -> bool {
        self.waiting
            .keys()
            .any(|request| open.contains_key(request))
            || !self.waiting.is_empty() && self.room > 0
    }

    /// When something can be taken that cannot be now.
    pub(super) fn ripe_at(&self) -> Option<Instant> {
        let unripe = self.unripe.values().copied();
        let troubled = self
            .troubled
            .values()
            .filter_map(|troubled| troubled.again_at);
        let is_slow = !self.waiting.is_empty() && self.room == 0;
        let room = is_slow.then(|| self.counted + ONE_MORE);
        unripe.chain(troubled).chain(room).min()
    }

    /// Makes room, and takes up what nobody finished in time and what could not be read.
    pub(super) fn ripen(&mut self, open: &Open) {
        let now = Instant::now();
        let more = now.duration_since(self.counted).as_secs() / ONE_MORE.as_secs();
        if let Ok(more @ 1..) = u32::try_from(more) {
            self.room = self.room.saturating_add(more).min(AT_ONCE);
            self.counted = now;
        }
        let ripe = self.unripe.iter().filter(|(_, at)| **at <= now);
        let ripe: Vec<String> = ripe.map(|(name, _)| name.clone()).collect();
        for name in ripe {
            self.came(name, Came::Whole, open);
        }
        let is_ripe = |troubled: &Troubled| troubled.again_at.is_some_and(|at| at <= now);
        let again = self
            .troubled
            .iter()
            .filter(|(_, troubled)| is_ripe(troubled));
        let again: Vec<String> = again.map(|(name, _)| name.clone()).collect();
        for name in again {
            self.came(name, Came::Before, open);
        }
    }

    /// What was wrong with a file, now and then: who is told waits a little before they ask again.
    pub(super) fn problem(&mut self) -> Option<io::Error> {
        let now = Instant::now();
        if self.told_at.is_some_and(|at| now < at + TELLING) {
            return None;
        }
        let problem = self.problem.take()?;
        self.told_at = Some(now);
        Some(problem)
    }

    /// The next answer, if what waits is any. Those to requests in `open` come first.
    pub(super) fn take(&mut self, folder: &Folder, open: &Open) -> Option<Delivered> {
        while let Some((request, name, came)) = self.first(open) {
            let content = match folder.read(&name, MAX_DELIVERED + 1) {
                Ok(Some(content)) => content,
                Ok(None) => {
                    self.troubled.remove(&name);
                    continue;
                }
                Err(problem) => {
                    self.trouble(name, problem);
                    continue;
                }
            };
            self.troubled.remove(&name);
            let delivered_before = self.outstanding.get(&name);
            if delivered_before.is_some_and(|before| before.stamp == content.stamp) {
                continue;
            }
            if came == Came::Before && serde_json::from_slice::<IgnoredAny>(&content.bytes).is_err()
            {
                self.unripe.insert(name, Instant::now() + RIPENING);
                continue;
            }
            if !open.contains_key(&request) {
                self.room = self.room.saturating_sub(1);
            }
            let delivered = Delivered::of(request, content.bytes);
            let outstanding = Outstanding {
                stamp: content.stamp,
                request,
                digest: sha256(&delivered.bytes),
            };
            self.outstanding.insert(name, outstanding);
            return Some(delivered);
        }
        None
    }

    fn first(&mut self, open: &Open) -> Option<(RequestId, String, Came)> {
        let mut requests = self.waiting.keys();
        let request = requests.find(|request| open.contains_key(request));
        let other = self.waiting.keys().next().filter(|_| self.room > 0);
        let request = *request.or(other)?;
        self.turn = match self.turn {
            Turn::Newest => Turn::Oldest,
            Turn::Oldest => Turn::Newest,
        };
        let of_it = self.waiting.get_mut(&request)?;
        let taken = match self.turn {
            Turn::Newest => of_it.pop_back(),
            Turn::Oldest => of_it.pop_front(),
        };
        if of_it.is_empty() {
            self.waiting.remove(&request);
        }
        let (name, came) = taken?;
        self.queued.remove(&name);
        Some((request, name, came))
    }

    /// Lets a file that cannot be read be for a while, longer each time.
    fn trouble(&mut self, name: String, problem: io::Error) {
        self.problem = Some(problem);
        let rest = self.troubled.get(&name).map(|before| before.rest * 2);
        let rest = rest.unwrap_or(FIRST_REST).min(LONGEST_REST);
        if self.troubled.len() >= MOST_WAITING && !self.troubled.contains_key(&name) {
            // The next look at the folder finds it.
            self.look_again = true;
            return;
        }
        let again_at = Some(Instant::now() + rest);
        self.troubled.insert(name, Troubled { again_at, rest });
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
