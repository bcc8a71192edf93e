//! Files and TCP ports, as Landlock rules.
//!
//! Landlock grants a folder with all that is below it and cannot take anything out again. What is not granted and
//! lies below a grant is taken out by [`cover`](super::cover) where that can be; where it cannot, the folder is not
//! granted itself but entry by entry, so that nothing new can be made at its top.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use super::ContainError;
use super::host::Host;
use super::plan::{Grants, Network, NetworkWord};
use super::scratch::SHARED;

/// The newest rules that are known here. What the kernel does not know is left out, and said.
const NEWEST: ABI = ABI::V9;

/// Most entries that a folder is taken apart into.
const MAX_ENTRIES: usize = 20_000;

/// The rules for a child.
pub(super) struct Rules {
    /// None where the kernel has no Landlock.
    pub(super) set: Option<RulesetCreated>,
    /// Folders that were taken apart, so that nothing can be made at their top.
    pub(super) taken_apart: Vec<PathBuf>,
}

impl Rules {
    pub(super) fn of(
        grants: &Grants,
        scratch: &Path,
        host: &Host,
        hidden: &[PathBuf],
        fixed: &[PathBuf],
    ) -> Result<Self, ContainError> {
        if host.landlock() == 0 {
            return Ok(Self {
                set: None,
                taken_apart: Vec::new(),
            });
        }
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let run = read | AccessFs::Execute;
        let write = AccessFs::from_all(NEWEST)
            & !(AccessFs::Execute
                | AccessFs::MakeChar
                | AccessFs::MakeBlock
                | AccessFs::IoctlDev
                | AccessFs::ResolveUnix);
        let own = if grants.executes_own {
            write | AccessFs::Execute
        } else {
            write
        };
        let failed = |problem: landlock::RulesetError| ContainError::Rules(problem.to_string());
        let mut asked = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))
            .map_err(failed)?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)
            .map_err(failed)?;
        asked = match grants.network {
            Network::Word(NetworkWord::Any) => asked,
            Network::Word(NetworkWord::None) if host.namespaces() => asked,
            Network::Word(NetworkWord::None) | Network::Ports(_) => asked
                .handle_access(AccessNet::from_all(NEWEST))
                .map_err(failed)?,
        };
        let mut set = asked.create().map_err(failed)?;
        let mut apart = Apart {
            not_read: hidden,
            not_written: fixed,
            covered: host.namespaces(),
            broken_up: BTreeSet::new(),
        };
        let mut rules = Vec::new();
        for place in &grants.system {
            apart.grant(place, run, run, &mut rules);
        }
        for place in &grants.reads {
            let access = if grants.executes_own { run } else { read };
            apart.grant(place, access, access, &mut rules);
        }
        for place in &grants.writes {
            let fixed = if grants.executes_own { run } else { read };
            apart.grant(place, own, fixed, &mut rules);
        }
        for device in &grants.devices {
            let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
            rules.push((device.clone(), access | AccessFs::Truncate));
        }
        for terminal in &grants.terminals {
            let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir;
            rules.push((terminal.clone(), access | AccessFs::IoctlDev));
        }
        rules.push((scratch.to_owned(), own));
        if host.namespaces() {
            // Mounted elsewhere, where no folder above it is the child's.
            rules.push((scratch.join(SHARED), write));
        }
        for (place, access) in rules {
            // It was there a moment ago; what is gone needs no grant, and neither does what a link leads to by now.
            let Ok(fd) = open(&place) else {
                continue;
            };
            let is_folder = rustix::fs::fstat(&fd)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory);
            let access = if is_folder { access } else { access & files() };
            set = set.add_rule(PathBeneath::new(fd, access)).map_err(failed)?;
        }
        if let Network::Ports(ports) = &grants.network {
            for port in ports {
                let rule = NetPort::new(*port, AccessNet::ConnectTcp);
                set = set.add_rule(rule).map_err(failed)?;
            }
        }
        Ok(Self {
            set: Some(set),
            taken_apart: apart.broken_up.into_iter().collect(),
        })
    }
}

/// Opens a place that no link is on the way to.
fn open(place: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, place, flags, Mode::empty(), resolve)
}

fn files() -> BitFlags<AccessFs> {
    AccessFs::from_file(NEWEST)
}

/// Grants that leave something out.
struct Apart<'a> {
    not_read: &'a [PathBuf],
    not_written: &'a [PathBuf],
    /// Whether mounts take out what is not granted.
    covered: bool,
    broken_up: BTreeSet<PathBuf>,
}

impl Apart<'_> {
    fn grant(
        &mut self,
        place: &Path,
        access: BitFlags<AccessFs>,
        fixed: BitFlags<AccessFs>,
        rules: &mut Vec<(PathBuf, BitFlags<AccessFs>)>,
    ) {
        if self.covered {
            rules.push((place.to_owned(), access));
            return;
        }
        let within = |what: &[PathBuf]| what.iter().any(|one| place.starts_with(one));
        if within(self.not_read) {
            return;
        }
        if within(self.not_written) {
            rules.push((place.to_owned(), fixed));
            return;
        }
        let below = |what: &[PathBuf]| what.iter().any(|one| one.starts_with(place));
        let writes = access != fixed;
        if !(below(self.not_read) || writes && below(self.not_written)) {
            rules.push((place.to_owned(), access));
            return;
        }
        self.broken_up.insert(place.to_owned());
        // Programs list the folder that they start in; names alone open nothing.
        rules.push((place.to_owned(), AccessFs::ReadDir.into()));
        let Ok(entries) = fs::read_dir(place) else {
            return;
        };
        for entry in entries.filter_map(Result::ok).take(MAX_ENTRIES) {
            let path = entry.path();
            // A link is granted by what it leads to, if that is granted.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.grant(&path, access, fixed, rules);
            }
        }
    }
}
