//! What a child is granted: the union of the profiles of its contracts, over places that are there.
//!
//! Pure but for one question, whether a place exists. What is not named here is not granted.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::contract::Sandbox;
use serde::{Deserialize, Serialize};

use super::ContainError;
use super::places::{
    DEVICES, HOME_SECRETS, NAMES, SYSTEM, SYSTEM_SECRETS, TOOLCHAINS, own_terminals,
    package_caches, there,
};
use crate::protect::lexical;

/// What a child is for.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The profiles of its contracts; their union is granted. None is the tightest.
    pub profiles: BTreeSet<Sandbox>,
    /// The program, as found on the path.
    pub program: PathBuf,
    /// The folder that the child works in.
    pub project: PathBuf,
    /// The home of the user, where toolchains are.
    pub home: Option<PathBuf>,
    /// Places whose programs it runs, beyond those of the system.
    pub programs: Vec<PathBuf>,
    /// What it is started with and loads: read where it can be.
    pub loads: Vec<PathBuf>,
    /// Places to read, beyond the profiles, by somebody's word.
    pub reads: Vec<PathBuf>,
    /// Places to write, beyond the profiles, by somebody's word.
    pub writes: Vec<PathBuf>,
    /// Places that other children write, where a link may be theirs.
    pub alterable: Vec<PathBuf>,
    /// Whether it fetches its own code before it runs it, and keeps that in the user's caches.
    pub fetches_code: bool,
    /// What follows where not all of it can be had.
    pub strictness: Strictness,
    /// The network, where it is said apart from the profiles.
    pub network: Option<Network>,
    /// Whether sockets in the file system may be used. They lead to whoever listens, past everything else here.
    pub unix_sockets: bool,
    /// Whether it may leave its process group.
    pub group: Group,
    /// Whether it has the terminal of whoever starts it.
    pub terminal: bool,
    /// Ports of its own loopback that somebody outside serves: its only ways out where it has no network.
    pub bridges: Vec<u16>,
    /// What no child may reach.
    pub out_of_reach: OutOfReach,
}

/// Which ways out a child has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Written")]
pub enum Network {
    /// None, or all: in a word.
    Word(NetworkWord),
    /// TCP connections to these ports, of any host; with 53 among them, looking up names, too.
    Ports(BTreeSet<u16>),
}

/// None, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkWord {
    /// None.
    None,
    /// All.
    Any,
}

/// A network, as somebody wrote it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Word(String),
    Ports(Vec<u64>),
    Other(serde::de::IgnoredAny),
}

impl TryFrom<Written> for Network {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let meant = "it is \"none\", \"any\" or a list of TCP ports, such as [443, 53]";
        match written {
            Written::Word(word) if word == "none" => Ok(Self::NONE),
            Written::Word(word) if word == "any" => Ok(Self::ANY),
            Written::Ports(ports) => {
                let port = |port: u64| u16::try_from(port).ok().filter(|port| *port != 0);
                let found = ports.iter().map(|one| port(*one));
                let found: Option<BTreeSet<u16>> = found.collect();
                found
                    .map(Self::Ports)
                    .ok_or_else(|| format!("a port of `network` is 1 to 65535; {meant}"))
            }
            Written::Word(_) | Written::Other(_) => Err(format!("this is no `network`: {meant}")),
        }
    }
}

impl Network {
    /// No way out.
    pub const NONE: Self = Self::Word(NetworkWord::None);
    /// Every way out.
    pub const ANY: Self = Self::Word(NetworkWord::Any);

    /// Whether names can be looked up.
    pub(super) fn has_names(&self) -> bool {
        match self {
            Self::Word(word) => *word == NetworkWord::Any,
            Self::Ports(ports) => ports.contains(&53),
        }
    }

    /// Whether there is no way out.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// What follows where a child cannot be contained wholly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It runs, and what is missing is said.
    AsFarAsItCan,
    /// It does not run.
    Wholly,
}

/// Whether a child may leave its process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// It stays, with all that it starts: ending the group ends all of it.
    Kept,
    /// It may leave: a shell for people needs that.
    Free,
}

/// What no child may reach, whatever its profile.
#[derive(Debug, Clone, Default)]
pub struct OutOfReach {
    /// The folder of the user's keys.
    pub keys: Option<PathBuf>,
    /// The project's `.lodestar/`.
    pub lodestar: Option<PathBuf>,
    /// Folders elsewhere that Lodestar writes itself, such as that of the log.
    pub own: Vec<PathBuf>,
    /// Client configuration, which is not even to be read; an agent under `lodestar run` reads its own.
    pub clients: Vec<PathBuf>,
    /// What else is not even to be read: files that a configuration names, sockets.
    pub hidden: Vec<PathBuf>,
    /// Read and not written: what decides what runs later.
    pub fixed: Vec<PathBuf>,
}

impl OutOfReach {
    /// What a child must not make, either. Lodestar's own folders are made before it starts.
    pub(super) fn not_made(&self) -> impl Iterator<Item = &PathBuf> {
        let hidden = self.clients.iter().chain(&self.hidden);
        hidden.chain(&self.fixed)
    }

    /// Folders that Lodestar makes itself.
    pub(super) fn made_here(&self) -> impl Iterator<Item = &PathBuf> {
        self.lodestar.iter().chain(&self.own)
    }

    /// All that is not even to be read.
    fn all_hidden(&self) -> impl Iterator<Item = &PathBuf> {
        let own = self.keys.iter().chain(&self.lodestar).chain(&self.own);
        own.chain(&self.clients).chain(&self.hidden)
    }
}

/// What a plan comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grants {
    /// Read and executed.
    pub system: Vec<PathBuf>,
    /// Read.
    pub reads: Vec<PathBuf>,
    /// Read and written.
    pub writes: Vec<PathBuf>,
    /// Read and written, one by one.
    pub devices: Vec<PathBuf>,
    /// Terminals, which are also set up.
    pub terminals: Vec<PathBuf>,
    /// Whether what lies in written places may be executed.
    pub executes_own: bool,
    /// Ways out.
    pub network: Network,
    /// Whether it fetches its own code before it runs it.
    pub fetches_code: bool,
}

impl Plan {
    /// A child with these profiles in a project, and nothing else said.
    pub fn new(
        profiles: impl IntoIterator<Item = Sandbox>,
        program: impl Into<PathBuf>,
        project: impl Into<PathBuf>,
        out_of_reach: OutOfReach,
    ) -> Self {
        let program = program.into();
        Self {
            profiles: profiles.into_iter().collect(),
            fetches_code: fetches_code(&program),
            program,
            project: project.into(),
            home: std::env::home_dir(),
            programs: Vec::new(),
            loads: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            alterable: Vec::new(),
            strictness: Strictness::AsFarAsItCan,
            network: None,
            unix_sockets: false,
            group: Group::Kept,
            terminal: false,
            bridges: Vec::new(),
            out_of_reach,
        }
    }

    /// What it comes to on this machine. The child's own scratch folder is not in it.
    pub fn grants(&self) -> Grants {
        let has = |profile| self.profiles.contains(&profile);
        let network = match &self.network {
            Some(network) => network.clone(),
            None if has(Sandbox::ControlledNetwork) || self.fetches_code => Network::ANY,
            None => Network::NONE,
        };
        let in_home = |names: &[&str]| -> Vec<PathBuf> {
            let home = self.home.iter();
            home.flat_map(|home| names.iter().map(|name| home.join(name)))
                .collect()
        };
        let mut system: Vec<PathBuf> = SYSTEM.iter().chain(&NAMES).map(PathBuf::from).collect();
        system.extend(in_home(&TOOLCHAINS));
        system.extend(self.programs.iter().cloned());
        let mut system = there(system);
        system.extend(self.program_place());
        let named = self.reads.iter().chain(&self.loads);
        let project = there(vec![self.project.clone()]);
        let mut reads = project.clone();
        reads.extend(named.filter_map(|place| self.real(place)));
        let written = self.writes.iter();
        let mut writes: Vec<PathBuf> = written.filter_map(|place| self.real(place)).collect();
        if has(Sandbox::WriteLocal) || has(Sandbox::ControlledShell) {
            writes.extend(project);
        }
        let caches = package_caches(&self.program).filter(|_| self.fetches_code);
        writes.extend(there(in_home(caches.unwrap_or_default())));
        let hidden = self.hidden();
        // None of them is looked up again: it may be a link by now.
        let allowed = |places: Vec<PathBuf>| -> Vec<PathBuf> {
            let places = places.into_iter().collect::<BTreeSet<_>>().into_iter();
            let is_hidden = |place: &PathBuf| hidden.iter().any(|out| place.starts_with(out));
            places.filter(|place| !is_hidden(place)).collect()
        };
        Grants {
            system: allowed(system),
            reads: allowed(reads),
            writes: allowed(writes),
            devices: there(DEVICES.iter().map(PathBuf::from).collect()),
            terminals: match self.terminal {
                true => there(own_terminals()),
                false => Vec::new(),
            },
            executes_own: has(Sandbox::ControlledShell) || self.fetches_code,
            network,
            fetches_code: self.fetches_code,
        }
    }

    /// What somebody's word cannot grant: what is out of reach, and what a link leads to that a child may have laid.
    pub(super) fn check(&self) -> Result<(), ContainError> {
        let (hidden, fixed) = (self.hidden(), self.fixed());
        let refused = |place: &Path, why: String| ContainError::Place {
            place: place.to_owned(),
            problem: io::Error::other(why),
        };
        let own = [&self.project];
        for place in self.reads.iter().chain(&self.writes).chain(own) {
            let Ok(real) = lexical(Path::new("/"), place).canonicalize() else {
                continue;
            };
            let lies_in =
                |places: &[PathBuf]| places.iter().find(|out| real.starts_with(out)).cloned();
            let written = self.writes.contains(place);
            let out = lies_in(&hidden).or_else(|| lies_in(&fixed).filter(|_| written));
            if let Some(out) = out {
                let out = out.display();
                return Err(refused(
                    place,
                    format!("`{out}` is out of reach of every child"),
                ));
            }
            if self.leads_out(place, &real) {
                let real = real.display();
                let why = format!(
                    "it leads to `{real}` by a link that a program of the project can lay; name that place itself"
                );
                return Err(refused(place, why));
            }
        }
        Ok(())
    }

    /// Where a place really lies; nothing where it leads out of what children write, and so may be another's word than
    /// that of whoever named it. Looked up once: it may be another a moment later.
    pub fn real(&self, place: &Path) -> Option<PathBuf> {
        // Without `..`, which a link before it would lead elsewhere.
        let place = lexical(Path::new("/"), place);
        let real = place.canonicalize().ok()?;
        (!self.leads_out(&place, &real)).then_some(real)
    }

    /// Whether a place lies where children write, and really somewhere else.
    fn leads_out(&self, place: &Path, real: &Path) -> bool {
        let written = self.writes.iter().chain(&self.alterable);
        let mut written = written.chain([&self.project]);
        written.any(|folder| leads_out_of(folder, place, real))
    }

    /// What is hidden, with what the system itself keeps from everybody but root.
    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        let secrets = SYSTEM_SECRETS.iter().map(PathBuf::from);
        let home = self.home.iter();
        let in_home = home.flat_map(|home| HOME_SECRETS.iter().map(|name| home.join(name)));
        let own = self.out_of_reach.all_hidden().cloned();
        there(own.chain(secrets).chain(in_home).collect())
    }

    /// What is read and not written.
    pub(super) fn fixed(&self) -> Vec<PathBuf> {
        there(self.out_of_reach.fixed.clone())
    }

    /// Where a program is that is not the system's: its installation, if that is a folder of its own, else
    /// the file alone.
    fn program_place(&self) -> Vec<PathBuf> {
        let Ok(real) = self.program.canonicalize() else {
            return Vec::new();
        };
        let folder = real.parent();
        let installation = match folder {
            Some(bin) if bin.ends_with("bin") => bin.parent(),
            folder => folder,
        };
        let is_too_much = |place: &Path| {
            let holds = |inner: &Path| inner.starts_with(place);
            self.home.as_deref().is_some_and(holds)
                || holds(&self.project)
                || self.out_of_reach.all_hidden().any(|hidden| holds(hidden))
                || place
                    .parent()
                    .is_none_or(|parent| parent.parent().is_none())
        };
        // Toolchains of another home than this process has, by the program itself or on the path that the child is given: a
        // shim finds its program in there, and a script its interpreter.
        let in_toolchain = |place: &&Path| TOOLCHAINS.iter().any(|name| place.ends_with(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let toolchain = real.ancestors().skip(1).find(in_toolchain);
        let others = on_path
            .iter()
            .filter_map(|folder| folder.ancestors().find(in_toolchain));
        let others: Vec<PathBuf> = others.filter_map(|place| self.real(place)).collect();
        // A link in the project may be a child's: what it leads to runs if it is the system's or a toolchain's.
        let leads_out = self.leads_out(&self.program, &real);
        let installation = installation.filter(|_| !leads_out);
        let places = installation.into_iter().chain(toolchain);
        let places = places.chain(others.iter().map(PathBuf::as_path));
        let places = places.filter(|place| !is_too_much(place));
        let places: Vec<PathBuf> = places.map(Path::to_owned).collect();
        let file = (!leads_out).then_some(real);
        places.into_iter().chain(file).collect()
    }
}

/// Whether a place lies in a folder by its name, and really somewhere else.
pub fn leads_out_of(folder: &Path, place: &Path, real: &Path) -> bool {
    let (named, folder_named) = (
        lexical(Path::new("/"), place),
        lexical(Path::new("/"), folder),
    );
    let lies_in = named.starts_with(&folder_named) && named != folder_named;
    let really = || folder.canonicalize();
    lies_in && !really().is_ok_and(|folder| real.starts_with(folder))
}

/// Whether a program fetches a package and runs it: such a one has the network and its caches, whatever its profile.
pub fn fetches_code(program: &Path) -> bool {
    package_caches(program).is_some()
}
