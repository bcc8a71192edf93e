//! Processes that a program started and that left its process group.
//!
//! A process of a run is known by any of these: its parent is one; it is in a session that one
//! opened; it carries the run's marker in its environment. The first two are recorded while the
//! program runs, the third is looked for at the end. What escapes is a process that, between two
//! looks, started, left its session, lost its parent *and* replaced its environment; and one that
//! became another user, whom we may not kill. Where there is no `/proc`, only the group is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Between the first looks: a program that means to get away does so early.
const FIRST_PACE: Duration = Duration::from_millis(5);

/// Between later looks, so that a long run costs little.
const LAST_PACE: Duration = Duration::from_millis(200);

/// How long killing goes on against something that keeps starting more.
const KILL_TIME: Duration = Duration::from_secs(3);

/// Longest environment that is searched for the marker: Linux takes no more for one program.
const MAX_ENVIRONMENT: u64 = 6 * 1024 * 1024;

/// The processes of one run, as far as they were seen.
pub(crate) struct Strays {
    leader: i32,
    marker: String,
    /// Process ids with the time of their start: together they mean one process.
    known: BTreeMap<i32, u64>,
    /// Sessions that one of them opened.
    sessions: BTreeSet<i32>,
    next: Instant,
    pace: Duration,
}

/// What `/proc` says about a process.
#[derive(Debug, Clone, Copy)]
struct Stat {
    pid: i32,
    parent: i32,
    session: i32,
    start: u64,
    alive: bool,
}

/// Whether environments are read, which costs more than the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Quick,
    Thorough,
}

impl Strays {
    pub(crate) fn of(leader: Pid, marker: String) -> Self {
        let leader = leader.as_raw_nonzero().get();
        let mut known = BTreeMap::new();
        if let Some(stat) = stat_of(leader) {
            known.insert(leader, stat.start);
        }
        Self {
            leader,
            marker,
            known,
            sessions: BTreeSet::new(),
            next: Instant::now() + FIRST_PACE,
            pace: FIRST_PACE,
        }
    }

    /// Looks around, more seldom as time goes by.
    pub(crate) fn look_if_due(&mut self) {
        if Instant::now() >= self.next {
            self.look(Look::Quick);
            self.pace = (self.pace * 2).min(LAST_PACE);
            self.next = Instant::now() + self.pace;
        }
    }

    /// Kills whatever of the run is left, until two looks find nothing; says how many there were.
    pub(crate) fn kill(&mut self) -> usize {
        let end = Instant::now() + KILL_TIME;
        let mut killed = BTreeSet::new();
        let mut quiet = 0;
        while quiet < 2 && Instant::now() < end {
            let found: Vec<Stat> = self
                .look(Look::Thorough)
                .into_iter()
                .filter(|stat| stat.pid != self.leader)
                .collect();
            quiet = if found.is_empty() { quiet + 1 } else { 0 };
            for stat in found {
                kill(stat);
                killed.insert((stat.pid, stat.start));
            }
        }
        killed.len()
    }

    /// The living processes of the run.
    fn look(&mut self, look: Look) -> Vec<Stat> {
        let table = processes();
        let mut found = true;
        while found {
            found = false;
            for stat in table.values() {
                if self.is_known(stat) || !self.belongs(stat, &table) {
                    continue;
                }
                self.adopt(stat);
                found = true;
            }
        }
        if look == Look::Thorough {
            for stat in table.values() {
                if !self.is_known(stat) && stat.alive && self.is_marked(stat) {
                    self.adopt(stat);
                }
            }
        }
        table
            .into_values()
            .filter(|stat| stat.alive && self.is_known(stat))
            .collect()
    }

    fn adopt(&mut self, stat: &Stat) {
        self.known.insert(stat.pid, stat.start);
        // Only the leader of a session has its number: that session is one of the run's.
        if stat.session == stat.pid {
            self.sessions.insert(stat.session);
        }
    }

    fn is_known(&self, stat: &Stat) -> bool {
        self.known.get(&stat.pid) == Some(&stat.start)
    }

    fn belongs(&self, stat: &Stat, table: &BTreeMap<i32, Stat>) -> bool {
        self.sessions.contains(&stat.session)
            || table
                .get(&stat.parent)
                .is_some_and(|parent| self.is_known(parent))
    }

    fn is_marked(&self, stat: &Stat) -> bool {
        let mut environment = Vec::new();
        let read = fs::File::open(format!("/proc/{}/environ", stat.pid))
            .and_then(|file| file.take(MAX_ENVIRONMENT).read_to_end(&mut environment));
        read.is_ok()
            && environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == self.marker.as_bytes())
    }
}

/// Kills that very process, not another that got its number meanwhile.
fn kill(stat: Stat) {
    let Some(pid) = Pid::from_raw(stat.pid) else {
        return;
    };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if stat_of(stat.pid).is_some_and(|now| now.start == stat.start) {
        // It may be gone, or another user's: the next look tells.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}

fn processes() -> BTreeMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(stat_of)
        .map(|stat| (stat.pid, stat))
        .collect()
}

fn stat_of(pid: i32) -> Option<Stat> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/<pid>/stat`. The program's name stands in parentheses and may contain
/// anything, so the numbers start after the last one.
fn parse(pid: i32, line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let rest = str::from_utf8(&line[end + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        alive: !matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_does_not_shift_the_numbers() {
        let line = b"7 (a) S 1 (b)) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 999 0 0";
        let stat = parse(7, line).unwrap();
        assert_eq!((stat.parent, stat.session, stat.start), (3, 5, 999));
        assert!(stat.alive);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(processes()[&own].alive);
    }
}
