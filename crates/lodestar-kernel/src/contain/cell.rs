//! A plan made ready for this machine, around one child.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lodestar_core::contract::Sandbox;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, getegid, geteuid, getpid};

use super::bridge::{Bridge, FarEnd};
use super::canary::{Canary, Listeners};
use super::cover::Cover;
use super::enter::{self, Entry, Namespaces, Step};
use super::filter::{Gaps, Sockets, filters};
use super::places::SYSTEM;
use super::plan::{Grants, Group, Network, NetworkWord, Plan, Strictness};
use super::record::{Attempt, Containment, Declared, State};
use super::rules::Rules;
use super::scratch::Scratch;
use super::undertaker::{Bell, Undertaker};
use super::watch::{Watch, make_coverable};
use super::{ContainError, Host};

/// Most processes of one child with all that it starts. A build on a large machine has some hundred.
const MAX_PROCESSES: u64 = 2048;

/// Largest file that a child may write.
const MAX_FILE: u64 = 16 << 30;

/// The first Landlock that keeps signals in.
const SIGNALS_KEPT_IN: u32 = 6;

/// Most that is told on the way into a cell: each step and each attempt takes four bytes.
const MAX_TOLD: u64 = 4096;

/// Everything that is put around a child, ready and not yet used.
pub struct Cell {
    entry: Entry,
    told: OwnedFd,
    listeners: Listeners,
    far_end: Option<FarEnd>,
    bell: Option<Bell>,
    scratch: Scratch,
    watch: Watch,
    profiles: BTreeSet<Sandbox>,
    declared: Declared,
    grants: Grants,
    host: Host,
    gaps: Vec<String>,
    notes: Vec<String>,
}

/// What is left of a cell with the parent: the scratch folder, for as long as the child lives, and the news from
/// inside.
#[derive(Debug)]
pub struct Confined {
    told: Option<OwnedFd>,
    listeners: Listeners,
    far_end: Option<FarEnd>,
    bell: Option<Bell>,
    _scratch: Scratch,
    watch: Watch,
    containment: Containment,
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let profiles = &self.profiles;
        f.debug_struct("Cell")
            .field("profiles", profiles)
            .finish_non_exhaustive()
    }
}

/// What is tried once to see whether namespaces can be had. A network takes longer than all the rest, and comes with
/// the rights that the rest needs.
pub(super) fn trial() -> Namespaces {
    Namespaces {
        network: false,
        user_map: map(geteuid().as_raw()),
        group_map: map(getegid().as_raw()),
        mounts: Vec::new(),
        bridge: None,
        writable: Vec::new(),
        shared: None,
    }
}

/// Everybody is who they are; nobody else is there.
fn map(id: u32) -> Vec<u8> {
    format!("{id} {id} 1").into_bytes()
}

impl Cell {
    /// Makes a plan ready. The child ends with the thread that starts it: start it in the
    /// [`nursery`](super::nursery), or on a thread that waits for its end.
    pub fn of(plan: &Plan, host: Host) -> Result<Self, ContainError> {
        plan.check()?;
        let scratch = Scratch::new()?;
        let grants = plan.grants();
        let all = [&grants.system, &grants.reads, &grants.writes];
        let granted: Vec<PathBuf> = all.into_iter().flatten().cloned().collect();
        make_coverable(&plan.out_of_reach, &granted);
        let (hidden, fixed) = (plan.hidden(), plan.fixed());
        let mut gaps = Vec::new();
        let (mut bridge, mut far_end) = (None, None);
        if host.namespaces() && grants.network.is_none() && !plan.bridges.is_empty() {
            let (near, far) = Bridge::ready(&plan.bridges)?;
            (bridge, far_end) = (Some(near), Some(far));
        }
        let mut cover = None;
        let namespaces = if host.namespaces() {
            // Where no rule says what is read, everything is.
            let granted: Vec<PathBuf> = match host.landlock() {
                0 => vec![PathBuf::from("/")],
                _ => granted,
            };
            let over = Cover::of(&hidden, &fixed, &granted, &grants.writes)?;
            let Cover { mounts, .. } = &mut *cover.insert(over);
            Some(Namespaces {
                network: grants.network.is_none(),
                bridge,
                mounts: std::mem::take(mounts),
                writable: scratch.writable(&grants.writes)?,
                shared: scratch.shared()?,
                ..trial()
            })
        } else {
            None
        };
        let watch = Watch::over(
            &plan.out_of_reach,
            &plan.project,
            &grants.writes,
            cover.as_ref(),
        );
        let rules = Rules::of(&grants, scratch.path(), &host, &hidden, &fixed)?;
        gaps.extend(missing(host, &grants, &rules.taken_apart));
        let isolated = namespaces.as_ref().is_some_and(|one| one.network);
        // Without a network of its own there is none: Landlock stops connections by TCP and knows nothing else.
        let sockets = Sockets {
            unix: plan.unix_sockets,
            datagrams: isolated || grants.network.has_names(),
            streams: match grants.network {
                Network::Word(NetworkWord::Any) => true,
                Network::Word(NetworkWord::None) => isolated,
                Network::Ports(_) => host.landlock() >= 4,
            },
            judged: matches!(grants.network, Network::Ports(_)),
        };
        let makes_up = Gaps {
            unopened: namespaces.is_none(),
            shared: namespaces.is_none(),
        };
        if namespaces.is_none() {
            gaps.push(
                "modes, times and attributes of what can be read can be changed by descriptor; by path none"
                    .to_owned(),
            );
        }
        if plan.unix_sockets {
            gaps.push("Unix sockets are granted: whoever listens on one can be asked".to_owned());
        }
        // In a namespace the number is that of the child's own, elsewhere that of all of the user's processes.
        let others = if host.namespaces() { 0 } else { in_use() };
        let mut limits = vec![
            (Resource::Core, 0),
            (Resource::Fsize, MAX_FILE),
            (Resource::Nproc, MAX_PROCESSES + others),
        ];
        for (resource, most) in &mut limits {
            let now = rustix::process::getrlimit(*resource);
            *most = now.maximum.map_or(*most, |now| now.min(*most));
        }
        let (canary, listeners) = Canary::ready(plan, &grants)?;
        let filters = match host.filtered() {
            true => filters(sockets, plan.group, makes_up)?,
            false => Vec::new(),
        };
        if filters.is_empty() {
            gaps.push("system calls cannot be filtered on this processor".to_owned());
        }
        gaps.extend(too_much(plan, &grants));
        gaps.extend(under_other_names(&grants, &hidden, &fixed));
        if plan.strictness == Strictness::Wholly && !gaps.is_empty() {
            return Err(ContainError::InPart(gaps.join("; ")));
        }
        let declared = Declared::of(plan);
        let notes = notes(&grants, &watch, &canary, &declared);
        // A group that is kept is ended in one step anyway.
        let (undertaker, bell) = match plan.group {
            Group::Free if host.landlock() >= SIGNALS_KEPT_IN => {
                let (undertaker, bell) = Undertaker::ready()?;
                (Some(undertaker), Some(bell))
            }
            Group::Free | Group::Kept => (None, None),
        };
        let (told, report) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let entry = Entry {
            limits,
            namespaces,
            rules: rules.set,
            filters,
            undertaker,
            canary,
            strictness: plan.strictness,
            parent: Some(getpid()),
            report,
        };
        Ok(Self {
            entry,
            told,
            listeners,
            far_end,
            bell,
            scratch,
            watch,
            profiles: plan.profiles.clone(),
            declared,
            grants,
            host,
            gaps,
            notes,
        })
    }

    /// What is granted.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Puts it around a command, which has its temporary files in a folder of its own.
    pub fn confine(self, command: &mut Command) -> Confined {
        let has_own = command.get_envs().any(|(name, _)| name == "TMPDIR");
        if !has_own {
            command.env("TMPDIR", self.scratch.path());
        }
        let filtered = !self.entry.filters.is_empty();
        enter::between(command, self.entry);
        Confined {
            told: Some(self.told),
            listeners: self.listeners,
            far_end: self.far_end,
            bell: self.bell,
            _scratch: self.scratch,
            watch: self.watch,
            containment: Containment {
                state: State::Absent,
                profiles: self.profiles,
                landlock: self.host.landlock(),
                namespaces: self.host.namespaces(),
                filtered,
                network: self.grants.network.clone(),
                declared: self.declared,
                tried: Vec::new(),
                gaps: self.gaps,
                notes: self.notes,
            },
        }
    }
}

impl Confined {
    /// What was in force, once the child has started and its command is dropped or spent.
    pub fn started(&mut self) -> Containment {
        let mut told = Vec::new();
        if let Some(pipe) = self.told.take() {
            // Ends with exec; a command that still holds the other end would make it wait, so what is there is read.
            let _ = rustix::io::ioctl_fionbio(&pipe, true);
            let _ = File::from(pipe).take(MAX_TOLD).read_to_end(&mut told);
            self.containment.tried = self.listeners.heard(&told);
        }
        let containment = &mut self.containment;
        let is_whole = containment.gaps.is_empty()
            && containment.filtered
            && !containment.tried.is_empty()
            && containment.tried.iter().all(|tried| tried.refused);
        containment.state = if is_whole {
            State::Proved
        } else if containment.landlock == 0 && !containment.namespaces {
            State::Absent
        } else {
            State::Partial
        };
        containment.clone()
    }

    /// The listeners of a plan's bridges, once the child has started; none where it has no network of its own.
    pub fn bridges(&mut self) -> io::Result<Vec<TcpListener>> {
        self.far_end
            .take()
            .map_or(Ok(Vec::new()), |far_end| far_end.take())
    }

    /// What is to be looked at from outside while the child runs, and when it has ended.
    pub fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Ends whatever the child started, wherever it went, and waits for that. Whether it was done: a child that keeps to
    /// its process group has nothing to end in this way, and an older kernel has no means.
    pub fn end_all(&mut self, at_most: Duration) -> bool {
        self.bell.take().is_some_and(|bell| bell.ring(at_most))
    }

    /// The error of a start with the step that it failed at.
    pub fn explain(&mut self, problem: io::Error) -> io::Error {
        let mut told = Vec::new();
        if let Some(pipe) = self.told.take() {
            let _ = rustix::io::ioctl_fionbio(&pipe, true);
            let _ = File::from(pipe).take(MAX_TOLD).read_to_end(&mut told);
        }
        let step = told.chunks_exact(4).find(|four| four[0] == 0xff);
        match step.and_then(|four| Step::named(four[1])) {
            Some(step) => io::Error::new(
                problem.kind(),
                format!("its sandbox cannot be entered ({step}): {problem}"),
            ),
            None => problem,
        }
    }
}

/// How many processes and threads of this user there are, as far as can be seen.
fn in_use() -> u64 {
    let user = geteuid().as_raw();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let of_user = processes.filter_map(Result::ok).filter(|process| {
        let name = process.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        is_process && process.metadata().is_ok_and(|found| found.uid() == user)
    });
    let threads = of_user.map(|process| {
        let found = std::fs::read_dir(process.path().join("task"));
        found.map_or(1, |threads| threads.count() as u64)
    });
    threads.sum()
}

/// What this machine does not enforce, in words.
fn missing(host: Host, grants: &Grants, taken_apart: &[PathBuf]) -> Vec<String> {
    let mut gaps = Vec::new();
    match host.landlock() {
        0 => gaps.push("the kernel has no Landlock: files are covered by mounts alone".to_owned()),
        1..=3 if !grants.network.is_none() => {}
        1..=3 if !host.namespaces() => {
            gaps.push("this Landlock has no rules for the network: sockets are refused".to_owned());
        }
        _ => {}
    }
    if (1..SIGNALS_KEPT_IN).contains(&host.landlock()) {
        gaps.push("this Landlock does not keep signals in: Lodestar can be signalled".to_owned());
    }
    if !host.namespaces() {
        gaps.push("the kernel gives no user namespaces".to_owned());
        for place in taken_apart {
            let shown = place.display();
            gaps.push(format!(
                "what is out of reach in `{shown}` can be listed, not opened"
            ));
            if grants.writes.iter().any(|write| place.starts_with(write)) {
                gaps.push(format!("nothing new can be made directly in `{shown}`"));
            }
        }
    }
    gaps
}

/// What somebody's word opened that no profile would, in words.
fn too_much(plan: &Plan, grants: &Grants) -> Vec<String> {
    let mut gaps = Vec::new();
    let holds = |place: &Path, inner: &Path| inner.starts_with(place);
    let home = plan
        .home
        .as_deref()
        .and_then(|home| home.canonicalize().ok());
    let holds_home = |place: &Path| home.as_deref().is_some_and(|home| holds(place, home));
    for place in &grants.writes {
        let holds_system = SYSTEM.iter().any(|system| holds(place, Path::new(system)));
        if holds_system || holds_home(place) && *place != plan.project {
            let shown = place.display();
            gaps.push(format!("`{shown}` is written, and with it what others run"));
        }
    }
    for place in grants.reads.iter().filter(|place| holds_home(place)) {
        let shown = place.display();
        gaps.push(format!(
            "`{shown}` is read, and with it what others keep secret"
        ));
    }
    gaps
}

/// Files that have another name, under which nothing covers them, in words. The system's own are root's to name.
fn under_other_names(grants: &Grants, hidden: &[PathBuf], fixed: &[PathBuf]) -> Vec<String> {
    let is_granted = |place: &&PathBuf| {
        let mut grants = grants.reads.iter().chain(&grants.writes);
        grants.any(|grant| place.starts_with(grant))
    };
    let files = hidden.iter().chain(fixed).filter(is_granted);
    let linked = files.filter(|place| {
        let found = place.symlink_metadata();
        found.is_ok_and(|found| found.is_file() && found.nlink() > 1)
    });
    let gap = |place: &PathBuf| {
        let shown = place.display();
        format!("`{shown}` has another name by a hard link, under which nothing covers it; copy it")
    };
    linked.map(gap).collect()
}

/// What holds and is less than one may think, in words.
fn notes(grants: &Grants, watch: &Watch, canary: &Canary, declared: &Declared) -> Vec<String> {
    let mut notes = Vec::new();
    for (verb, places) in [("reads", &declared.read), ("writes", &declared.write)] {
        if !places.is_empty() {
            notes.push(format!("by name it also {verb} {}", places.join(", ")));
        }
    }
    if watch.can_appear() {
        notes.push(
            "client configuration that is not there yet is moved aside when it appears".to_owned(),
        );
    }
    let untried = canary.untried().into_iter().map(Attempt::as_words);
    let untried: Vec<_> = untried.collect();
    if !untried.is_empty() {
        notes.push(format!(
            "not tried, since there is nothing to try: {}",
            untried.join(", ")
        ));
    }
    if geteuid().is_root() {
        notes.push("the number of processes does not bind root".to_owned());
    }
    if let Network::Ports(_) = grants.network {
        notes.push("ports are granted for every host".to_owned());
    }
    if grants.fetches_code {
        notes.push("it fetches its code when it starts, and keeps it in your cache".to_owned());
    }
    notes
}
