//! Self-protection: no governed tool reaches Lodestar itself.
//!
//! A path argument, or a word of a command, that leads to Lodestar's own files makes the action L5,
//! whatever its grade. It is judged by its text and by where links really lead; a text that is written,
//! sent or said is never judged for what it mentions. What a permitted program does once it runs is
//! beyond any rule about arguments: that is for the operating system to contain.

mod spelling;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use lodestar_core::contract::{ArgumentRole, Contract, Permission, Sandbox};
use lodestar_core::fingerprint::MAX_PATH_LEN;
use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use lodestar_core::contract::arguments::{role, texts, texts_and_names};

/// What is Lodestar's or decides what Lodestar governs, wherever it lies: runs of path components.
const PROTECTED: [&[&str]; 16] = [
    &[".lodestar"],
    &["lodestar.toml"],
    &["lodestar.json"],
    &[".git", "hooks"],
    &[".git", "config"],
    &[".git", "config.worktree"],
    &[".mcp.json"],
    &["mcp.json"],
    &[".cursor", "mcp.json"],
    &[".vscode", "mcp.json"],
    &[".claude", "settings.json"],
    &[".claude", "settings.local.json"],
    &[".claude.json"],
    &[".codex", "config.toml"],
    &[".gemini", "settings.json"],
    &["claude_desktop_config.json"],
];

/// What only reading may touch: git runs what it finds in many places below `.git`, also in one that is
/// a file, and a folder that holds a protected file can be moved away with it.
const NOT_WRITTEN: &str = ".git";

/// Folders that are not moved or written as a whole, because of what may lie in them.
const NOT_MOVED: [&str; 5] = [".cursor", ".vscode", ".claude", ".codex", ".gemini"];

/// Names below `/proc/PID` that lead wherever that process is: nobody can say where from here.
const PROCESS_LINKS: [&str; 6] = ["cwd", "root", "fd", "task", "map_files", "exe"];

/// Most readings of texts against folders that are looked at for one argument.
const MAX_LOOKS: usize = 100_000;

/// Most links that are followed, as systems have it.
const MAX_LINKS: usize = 40;

/// How an argument reaches Lodestar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Which argument.
    pub argument: String,
    /// The text in it, inert and bounded.
    pub text: String,
    /// What it leads to.
    pub to: String,
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the argument `{}` leads to `{}`, which no tool may reach",
            Excerpt::of(&self.argument),
            Excerpt::of(&self.to)
        )
    }
}

/// What a tool does with places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Reads,
    Writes,
}

impl Use {
    /// By its contract; where in doubt, it writes.
    fn of(contract: &Contract) -> Self {
        let writes = contract.required_level >= Rung::L2
            || contract.sandbox != Sandbox::Read
            || contract.permissions.contains(&Permission::WriteFiles)
            || contract.permissions.contains(&Permission::RunPrograms);
        if writes { Self::Writes } else { Self::Reads }
    }
}

/// A folder that relative paths start from.
#[derive(Debug, Clone)]
struct Base {
    /// As it is written, without `.` and `..`.
    written: PathBuf,
    /// Where it really lies.
    real: PathBuf,
    has_a_processes_name: bool,
}

impl Base {
    fn at(written: PathBuf) -> Self {
        Self {
            real: walk(Path::new("/"), &written).path,
            has_a_processes_name: has_a_processes_name(&written),
            written,
        }
    }

    /// One that was walked to.
    fn real(real: PathBuf) -> Self {
        Self {
            written: real.clone(),
            has_a_processes_name: has_a_processes_name(&real),
            real,
        }
    }
}

/// What is protected.
#[derive(Debug, Clone)]
pub struct Protected {
    root: Base,
    home: Option<PathBuf>,
    /// Files and folders that the configuration names, as written and as they really lie: their names,
    /// folded.
    places: Vec<Vec<String>>,
    /// The files among them, by device and inode: another name for one is still that file.
    inodes: Vec<(u64, u64)>,
}

impl Protected {
    /// Lodestar's own files in a project at this root, and those that its configuration names.
    pub fn new(root: &Path, named: impl IntoIterator<Item = PathBuf>) -> Self {
        let root = lexical(Path::new("/"), root);
        let own = [".lodestar", ".git/hooks", ".git/config", ".mcp.json"];
        let mut places: Vec<PathBuf> = own.iter().map(|name| root.join(name)).collect();
        places.extend(named.into_iter().map(|path| lexical(&root, &path)));
        let real: Vec<_> = places
            .iter()
            .filter_map(|p| p.canonicalize().ok())
            .collect();
        let inodes = real
            .iter()
            .filter_map(|path| path.metadata().ok())
            .filter(|metadata| metadata.is_file())
            .map(|metadata| (metadata.dev(), metadata.ino()))
            .collect();
        places.extend(real);
        let owned = |place: &PathBuf| {
            let names = names(place).into_iter();
            names.map(|name| name.text.into_owned()).collect()
        };
        let mut places: Vec<Vec<String>> = places.iter().map(owned).collect();
        places.sort();
        places.dedup();
        Self {
            root: Base::at(root),
            home: std::env::home_dir(),
            places,
            inodes,
        }
    }

    /// Whether an action reaches Lodestar, by its arguments; relative paths start from `base`. The names
    /// of arguments count too, where the tool's schema does not declare them.
    pub fn reached_by(
        &self,
        arguments: &Map<String, Value>,
        roles: &BTreeMap<String, ArgumentRole>,
        schema: &Value,
        contract: &Contract,
        base: &Path,
    ) -> Option<Reach> {
        let runs_commands = contract.sandbox == Sandbox::ControlledShell
            || contract.permissions.contains(&Permission::RunPrograms);
        let look = Look {
            protected: self,
            bases: self.bases(arguments, roles, schema, base),
            usage: Use::of(contract),
        };
        arguments.iter().find_map(|(name, value)| {
            let role = role(name, roles);
            if role == Some(ArgumentRole::Payload) {
                return None;
            }
            let texts = texts_and_names(value);
            if texts.len() * look.bases.len() > MAX_LOOKS {
                return Some(Reach {
                    argument: name.clone(),
                    text: format!("{} texts", texts.len()),
                    to: "more places than can be looked at".to_owned(),
                });
            }
            let as_command = role == Some(ArgumentRole::Argv) || (runs_commands && role.is_none());
            let mut texts = texts;
            if role.is_none() && !is_declared(name, schema) {
                texts.push(name);
            }
            texts.into_iter().find_map(|text| {
                let to = if as_command {
                    let words = spelling::words(text);
                    words.iter().find_map(|word| look.leads_to(word))
                } else if role.is_none() && text.trim().contains(char::is_whitespace) {
                    // Nobody said what it is. Words that are also a path that is there are one.
                    look.leads_to_what_is_there(text)
                } else {
                    look.leads_to(text)
                };
                to.map(|to| Reach {
                    argument: name.clone(),
                    text: Excerpt::of(text).to_string(),
                    to: to.to_string_lossy().into_owned(),
                })
            })
        })
    }

    /// Folders that a relative path may start from: where the tool starts, the project's root, and any
    /// folder that is itself an argument.
    fn bases(
        &self,
        arguments: &Map<String, Value>,
        roles: &BTreeMap<String, ArgumentRole>,
        schema: &Value,
        base: &Path,
    ) -> Vec<Base> {
        let mut bases = vec![self.root.clone()];
        if base != self.root.written {
            bases.push(Base::at(lexical(&self.root.written, base)));
        }
        let is_a_place = |(name, value): &(&String, &Value)| {
            let has_text = value.is_string() || value.is_array() || value.is_object();
            role(name, roles) != Some(ArgumentRole::Payload)
                && (has_text || !is_declared(name, schema))
        };
        let mut places = arguments.iter().filter(is_a_place);
        if let (Some((_, Value::String(_))), None) = (places.next(), places.next()) {
            // Nothing else is there that could start from it.
            return bases;
        }
        let starts = bases.clone();
        let folders = arguments
            .iter()
            .filter(|(name, _)| role(name, roles) == Some(ArgumentRole::Path))
            .flat_map(|(_, value)| texts(value))
            .filter(|text| !text.contains('\0') && text.len() <= MAX_PATH_LEN)
            .flat_map(|text| {
                let walked = move |start: &Base| walk(&start.real, Path::new(text));
                starts.iter().map(walked)
            })
            .filter(|walked| walked.is_there && walked.path.is_dir())
            .map(|walked| walked.path);
        for folder in folders {
            if !bases.iter().any(|base| base.written == folder) {
                bases.push(Base::real(folder));
            }
        }
        bases
    }

    /// The protected place that an absolute path without `..` lies in, by its names.
    fn by_names(&self, path: &Path, usage: Use) -> bool {
        let components = names(path);
        let named = |names: &[&str]| {
            components.windows(names.len()).any(|window| {
                let mut pairs = window.iter().zip(names);
                pairs.all(|(found, name)| found.may_be(name))
            })
        };
        if PROTECTED.iter().any(|run| named(run)) {
            return true;
        }
        let last = components.last();
        let is_kept = |kept: &str| last.is_some_and(|last| last.may_be(kept));
        if usage == Use::Writes && (named(&[NOT_WRITTEN]) || NOT_MOVED.into_iter().any(is_kept)) {
            return true;
        }
        self.places.iter().any(|place| {
            let mut pairs = components.iter().zip(place);
            components.len() >= place.len() && pairs.all(|(found, name)| found.may_be(name))
        })
    }

    fn by_inode(&self, path: &Path) -> bool {
        let Ok(metadata) = path.metadata() else {
            return false;
        };
        metadata.is_file() && self.inodes.contains(&(metadata.dev(), metadata.ino()))
    }
}

fn is_declared(argument: &str, schema: &Value) -> bool {
    schema["properties"].get(argument).is_some()
}

/// One look at the arguments of one action.
struct Look<'a> {
    protected: &'a Protected,
    bases: Vec<Base>,
    usage: Use,
}

impl Look<'_> {
    /// What protected place a text leads to, in any of its spellings.
    fn leads_to(&self, text: &str) -> Option<PathBuf> {
        if text.is_empty() {
            return None;
        }
        // Programs that take detours out of a path first can open one that is too long as written.
        let short;
        let text = if text.len() > MAX_PATH_LEN {
            short = lexical(&self.protected.root.written, Path::new(text));
            if short.as_os_str().len() > MAX_PATH_LEN {
                return None;
            }
            short.to_str()?
        } else {
            text
        };
        spelling::of(text, self.protected.home.as_deref())
            .into_iter()
            .find_map(|spelt| {
                let path = Path::new(spelt.as_ref());
                self.bases.iter().find_map(|base| self.place(base, path))
            })
    }

    /// The same, for a text that is a path only if something is there.
    fn leads_to_what_is_there(&self, text: &str) -> Option<PathBuf> {
        if text.len() > MAX_PATH_LEN || text.contains('\0') {
            return None;
        }
        let mut paths = self.bases.iter().map(|base| base.written.join(text));
        if paths.any(|path| path.symlink_metadata().is_ok()) {
            return self.leads_to(text);
        }
        // Programs that take detours out of a path first get there without the way being there.
        let is_spelt_as_a_path =
            text.starts_with(['/', '.', '~']) || text.split('/').any(|step| step == "..");
        let mut by_text = self
            .bases
            .iter()
            .filter(|_| is_spelt_as_a_path)
            .map(|base| lexical(&base.written, Path::new(text)));
        by_text.find(|path| self.protected.by_names(path, self.usage))
    }

    /// The protected place that a path leads to, in both readings: `..` taken out of the text, and `..`
    /// from where links led.
    fn place(&self, base: &Base, path: &Path) -> Option<PathBuf> {
        let by_text = lexical(&base.written, path);
        if self.protected.by_names(&by_text, self.usage) || passes_a_process(base, path) {
            return Some(by_text);
        }
        let Walked {
            path: by_links,
            is_there,
            passed_a_process,
        } = walk(&base.real, path);
        let by_names = || by_links != by_text && self.protected.by_names(&by_links, self.usage);
        let found =
            passed_a_process || by_names() || (is_there && self.protected.by_inode(&by_links));
        found.then_some(by_links)
    }
}

/// One name of a path, folded.
struct Name<'a> {
    text: Cow<'a, str>,
    /// Whether some of its characters may stand for others.
    is_pattern: bool,
}

impl<'a> Name<'a> {
    fn of(name: &'a OsStr) -> Self {
        let text = match name.to_string_lossy() {
            Cow::Borrowed(name) => spelling::fold(name),
            Cow::Owned(name) => Cow::Owned(spelling::fold(&name).into_owned()),
        };
        Self {
            is_pattern: spelling::is_pattern(&text),
            text,
        }
    }

    /// Whether it may mean this name.
    fn may_be(&self, name: &str) -> bool {
        self.text == name || (self.is_pattern && spelling::may_mean(&self.text, name))
    }
}

/// The names of a path.
fn names(path: &Path) -> Vec<Name<'_>> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(Name::of(name)),
            _ => None,
        })
        .collect()
}

/// Whether some name of a path is one that such a place begins with.
fn has_a_processes_name(path: &Path) -> bool {
    let names = names(path);
    let mut names = names.iter();
    names.any(|name| matches!(name.text.as_ref(), "proc" | "dev"))
}

/// `/proc/self/cwd`, `/dev/fd`, `/dev/stdin`: places that are another's for every process.
fn leads_through_a_process(names: &[Name<'_>]) -> bool {
    let names = names.iter().map(|name| name.text.as_ref());
    match names.collect::<Vec<_>>()[..] {
        ["proc", _, link, ..] => PROCESS_LINKS.contains(&link),
        ["dev", "fd" | "stdin" | "stdout" | "stderr", ..] => true,
        _ => false,
    }
}

/// Whether a path comes by such a place on its way, also where a later `..` leads out of it again.
fn passes_a_process(base: &Base, path: &Path) -> bool {
    // Most paths have no such name at all.
    if !base.has_a_processes_name && !has_a_processes_name(path) {
        return false;
    }
    let mut way = PathBuf::from("/");
    base.written.join(path).components().any(|component| {
        match component {
            Component::Normal(name) => way.push(name),
            Component::ParentDir => {
                way.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
        // Only the top of the tree is asked about.
        way.components().count() <= 4 && leads_through_a_process(&names(&way))
    })
}

/// An absolute path without `.` and `..`, by its text alone; `..` at the root stays there.
fn lexical(base: &Path, path: &Path) -> PathBuf {
    let mut found = PathBuf::with_capacity(base.as_os_str().len() + path.as_os_str().len() + 2);
    found.push("/");
    let base = if path.is_absolute() {
        Path::new("/")
    } else {
        base
    };
    for component in base.components().chain(path.components()) {
        match component {
            Component::Normal(name) => found.push(name),
            Component::ParentDir => {
                found.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    found
}

/// Where a path leads.
struct Walked {
    path: PathBuf,
    /// False where it is certain that nothing is there.
    is_there: bool,
    /// Whether a link on the way led through a place that is another's for every process.
    passed_a_process: bool,
}

/// Where a path really leads: component by component as the system does it, links followed before the
/// next `..`, as far as it exists; the rest as written.
///
/// The base is a folder that was walked to before.
fn walk(base: &Path, path: &Path) -> Walked {
    let mut found = base.to_owned();
    let mut steps: Vec<OsString> = path.iter().rev().map(OsStr::to_owned).collect();
    let mut links = 0;
    // Below what is not there nothing is, until `..` leads out of it.
    let mut missing = 0_usize;
    let mut passed_a_process = false;
    while let Some(step) = steps.pop() {
        if step == "/" {
            found = PathBuf::from("/");
            missing = 0;
        } else if step == ".." {
            found.pop();
            missing = missing.saturating_sub(1);
        } else if step != "." {
            found.push(&step);
            if missing > 0 {
                missing += 1;
                continue;
            }
            let top = found.starts_with("/proc") || found.starts_with("/dev");
            passed_a_process |= top && leads_through_a_process(&names(&found));
            match found.read_link() {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    found.pop();
                    steps.extend(target.iter().rev().map(OsStr::to_owned));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing = 1,
                Ok(_) | Err(_) => {}
            }
        }
    }
    Walked {
        path: found,
        is_there: missing == 0,
        passed_a_process,
    }
}

#[cfg(test)]
mod tests;
