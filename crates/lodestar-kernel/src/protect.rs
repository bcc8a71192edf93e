//! Self-protection: no governed tool reaches Lodestar itself.
//!
//! A path argument, or a word of a command, that leads to Lodestar's own files makes the action L5,
//! whatever its grade. It is judged by its text and by where links really lead; a text that is written,
//! sent or said is never judged for what it mentions. What a permitted program does once it runs is
//! beyond any rule about arguments: that is for the operating system to contain.

pub(crate) mod repository;
mod spelling;
mod way;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::contract::{ArgumentRole, Contract, Permission, Sandbox};
use lodestar_core::fingerprint::MAX_PATH_LEN;
use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use lodestar_core::contract::arguments::{role, texts, texts_and_names};

use crate::contain::{Host, Hosting, OutOfReach};
pub(crate) use way::lexical;
use way::{Base, Name, Walked, Written, names, walk};

/// What is Lodestar's or decides what Lodestar governs, wherever it lies: runs of path components.
pub(crate) const PROTECTED: [&[&str]; 24] = [
    &[".lodestar"],
    &["lodestar.toml"],
    &["lodestar.json"],
    &[".git", "hooks"],
    &[".git", "config"],
    &[".git", "config.worktree"],
    &[".git", "commondir"],
    &[".mcp.json"],
    &["mcp.json"],
    &[".cursor", "mcp.json"],
    &[".cursor", "hooks.json"],
    &[".vscode", "mcp.json"],
    &[".claude", "settings.json"],
    &[".claude", "settings.local.json"],
    &[".claude.json"],
    &["managed-settings.json"],
    &[".codex", "config.toml"],
    &[".codex", "hooks.json"],
    &[".codex", "managed_config.toml"],
    &[".codex", "requirements.toml"],
    &[".gemini", "settings.json"],
    &[".gemini", "trustedfolders.json"],
    &[".gemini", ".env"],
    &["claude_desktop_config.json"],
];

/// Those among them that their client spells with capitals: files have their exact names.
const SPELT_WITH_CAPITALS: [&str; 1] = [".gemini/trustedFolders.json"];

/// Those among them that programs have to read, and that must not change.
pub(crate) const READ_BY_PROGRAMS: [&str; 3] = [".git", "lodestar.toml", "lodestar.json"];

/// What no child may reach, for a project at this root: by the same names that no argument may lead to.
/// `hidden` and `fixed` are what a configuration names beyond them.
pub fn out_of_reach(
    root: &Path,
    keys: Option<&Path>,
    hidden: impl IntoIterator<Item = PathBuf>,
    fixed: impl IntoIterator<Item = PathBuf>,
) -> OutOfReach {
    let root = lexical(Path::new("/"), root);
    let mut out = OutOfReach {
        keys: keys.map(Path::to_owned),
        lodestar: Some(root.join(".lodestar")),
        own: Vec::new(),
        clients: Vec::new(),
        hidden: hidden
            .into_iter()
            .map(|path| lexical(&root, &path))
            .collect(),
        fixed: fixed
            .into_iter()
            .map(|path| lexical(&root, &path))
            .collect(),
    };
    out.fixed.extend(repository::governing(&root));
    let home = std::env::home_dir();
    let everywhere = |name: &Path| {
        let home = home.iter().map(|home| home.join(name));
        home.chain([root.join(name)]).collect::<Vec<_>>()
    };
    for run in PROTECTED {
        let name: PathBuf = run.iter().collect();
        if READ_BY_PROGRAMS.contains(&run[0]) {
            out.fixed.push(root.join(&name));
        } else if run[0] != ".lodestar" {
            out.clients.extend(everywhere(&name));
        }
    }
    for name in SPELT_WITH_CAPITALS {
        out.clients.extend(everywhere(Path::new(name)));
    }
    out
}

/// What only reading may touch: git runs what it finds in many places below `.git`, also in one that is
/// a file, and a folder that holds a protected file can be moved away with it.
pub(crate) const NOT_WRITTEN: &str = ".git";

/// Folders that are not moved or written as a whole, because of what may lie in them.
pub(crate) const NOT_MOVED: [&str; 5] = [".cursor", ".vscode", ".claude", ".codex", ".gemini"];

/// Most readings of texts against folders that are looked at for one argument.
const MAX_LOOKS: usize = 100_000;

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
    /// In a harness alone.
    taken_out: bool,
    /// The same for children, whom no rule about arguments holds.
    out_of_reach: Arc<OutOfReach>,
    hosting: Hosting,
}

impl Protected {
    /// Lodestar's own files in a project at this root, and those that its configuration names.
    pub fn new(root: &Path, named: impl IntoIterator<Item = PathBuf>) -> Self {
        let root = lexical(Path::new("/"), root);
        let own = [".lodestar", ".git/hooks", ".git/config", ".mcp.json"];
        let mut places: Vec<PathBuf> = own.iter().map(|name| root.join(name)).collect();
        places.extend(repository::elsewhere(&root));
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
            taken_out: false,
            out_of_reach: Arc::new(OutOfReach::default()),
            hosting: Host::here,
        }
    }

    /// With what children cannot reach.
    #[must_use]
    pub fn keeping(self, out_of_reach: OutOfReach) -> Self {
        Self {
            out_of_reach: Arc::new(out_of_reach),
            ..self
        }
    }

    /// What children cannot reach.
    pub fn out_of_reach(&self) -> &Arc<OutOfReach> {
        &self.out_of_reach
    }

    /// What enforces that.
    pub(crate) fn hosting(&self) -> Hosting {
        self.hosting
    }

    /// For a harness that takes [`Defence::Containment`](lodestar_core::defence::Defence) out: the programs of tools
    /// reach what their user reaches.
    #[must_use]
    pub fn uncontained(self) -> Self {
        Self {
            hosting: Host::enforcing_nothing,
            ..self
        }
    }

    /// For a harness that takes [`Defence::SelfProtection`](lodestar_core::defence::Defence) out: nothing is
    /// protected.
    #[must_use]
    pub fn taken_out(self) -> Self {
        Self {
            taken_out: true,
            ..self
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
        if self.taken_out {
            return None;
        }
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
    ) -> Vec<Cow<'_, Base>> {
        let mut bases = vec![Cow::Borrowed(&self.root)];
        if base.as_os_str() != self.root.written.as_os_str() {
            bases.push(Cow::Owned(Base::at(lexical(&self.root.written, base))));
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
                let walked = move |start: &Cow<'_, Base>| walk(&start.real, Path::new(text));
                starts.iter().map(walked)
            })
            .filter(|walked| walked.is_there && walked.path.is_dir())
            .map(|walked| walked.path);
        for folder in folders {
            if !bases.iter().any(|base| base.written == folder) {
                bases.push(Cow::Owned(Base::real(folder)));
            }
        }
        bases
    }

    /// Whether an absolute path without `..` lies in a protected place, by its names.
    fn by_names(&self, components: &[&Name<'_>], usage: Use) -> bool {
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
    bases: Vec<Cow<'a, Base>>,
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
                let written = Written::new(spelt.as_ref());
                let mut bases = self.bases.iter();
                bases.find_map(|base| self.place(base, &written))
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
        by_text.find(|path| self.lies_in(path))
    }

    /// The protected place that a path leads to, in both readings: `..` taken out of the text, and `..`
    /// from where links led.
    fn place(&self, base: &Base, written: &Written<'_>) -> Option<PathBuf> {
        written.by_text(base, |by_text, names| {
            let named = self.protected.by_names(names, self.usage);
            if named || written.passes_a_process(base) {
                return Some(by_text.to_owned());
            }
            let Walked {
                path: by_links,
                is_there,
                passed_a_process,
            } = walk(&base.real, written.path);
            let is_elsewhere = by_links.as_os_str() != by_text.as_os_str();
            let found = passed_a_process
                || is_elsewhere && self.lies_in(&by_links)
                || is_there && self.protected.by_inode(&by_links);
            found.then_some(by_links)
        })
    }

    fn lies_in(&self, path: &Path) -> bool {
        let names = names(path);
        let names: Vec<_> = names.iter().collect();
        self.protected.by_names(&names, self.usage)
    }
}

#[cfg(test)]
mod tests;
