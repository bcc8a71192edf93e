//! Self-protection: no governed tool reaches Lodestar itself.
//!
//! A path argument, or a word of a command, that leads to Lodestar's own files makes the action L5,
//! whatever its grade. It is judged by its text and by where links really lead; a text that is written,
//! sent or said is never judged for what it mentions. What a permitted program does once it runs is
//! beyond any rule about arguments: that is for the operating system to contain.

mod spelling;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use lodestar_core::contract::{ArgumentRole, Contract, Permission, Sandbox};
use lodestar_core::name::Excerpt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::arguments::{role, texts, texts_and_names};

/// Longest text that is looked at as a path: no system opens a longer one.
const MAX_PATH: usize = 4096;

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

/// What is protected.
#[derive(Debug, Clone)]
pub struct Protected {
    root: PathBuf,
    home: Option<PathBuf>,
    /// Files and folders that the configuration names, as written and as they really lie.
    places: Vec<PathBuf>,
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
        places.sort();
        places.dedup();
        Self {
            root,
            home: std::env::home_dir(),
            places,
            inodes,
        }
    }

    /// Whether an action reaches Lodestar, by its arguments.
    pub fn reached_by(
        &self,
        arguments: &Map<String, Value>,
        roles: &BTreeMap<String, ArgumentRole>,
        contract: &Contract,
    ) -> Option<Reach> {
        let runs_commands = contract.sandbox == Sandbox::ControlledShell
            || contract.permissions.contains(&Permission::RunPrograms);
        let bases = self.bases(arguments, roles);
        arguments.iter().find_map(|(name, value)| {
            let role = role(name, roles);
            if role == Some(ArgumentRole::Payload) {
                return None;
            }
            let as_command = role == Some(ArgumentRole::Argv) || (runs_commands && role.is_none());
            texts_and_names(value).into_iter().find_map(|text| {
                let to = if as_command {
                    spelling::words(text)
                        .into_iter()
                        .find_map(|word| self.leads_to(&word, &bases))
                } else if role.is_none() && text.contains(char::is_whitespace) {
                    // Nobody said what it is. Words that are also a path that is there are one.
                    self.leads_to_what_is_there(text, &bases)
                } else {
                    self.leads_to(text, &bases)
                };
                to.map(|to| Reach {
                    argument: name.clone(),
                    text: Excerpt::of(text).to_string(),
                    to: to.to_string_lossy().into_owned(),
                })
            })
        })
    }

    /// Folders that a relative path may start from: the root, and any folder that is itself an
    /// argument.
    fn bases(
        &self,
        arguments: &Map<String, Value>,
        roles: &BTreeMap<String, ArgumentRole>,
    ) -> Vec<PathBuf> {
        let mut bases = vec![self.root.clone()];
        let folders = arguments
            .iter()
            .filter(|(name, _)| role(name, roles) == Some(ArgumentRole::Path))
            .flat_map(|(_, value)| texts(value))
            .filter(|text| !text.contains('\0') && text.len() <= MAX_PATH)
            .map(|text| lexical(&self.root, Path::new(text)))
            .filter(|path| *path != self.root && path.is_dir());
        bases.extend(folders);
        bases
    }

    /// What protected place a text leads to, in any of its spellings.
    fn leads_to(&self, text: &str, bases: &[PathBuf]) -> Option<PathBuf> {
        if text.is_empty() || text.len() > MAX_PATH {
            return None;
        }
        spelling::of(text, self.home.as_deref())
            .into_iter()
            .find_map(|spelt| {
                bases
                    .iter()
                    .find_map(|base| self.place(&lexical(base, Path::new(spelt.as_ref()))))
            })
    }

    /// The same, for a text that is a path only if something is there.
    fn leads_to_what_is_there(&self, text: &str, bases: &[PathBuf]) -> Option<PathBuf> {
        if text.len() > MAX_PATH || text.contains('\0') {
            return None;
        }
        let there = bases
            .iter()
            .map(|base| base.join(text))
            .any(|path| path.symlink_metadata().is_ok());
        there.then(|| self.leads_to(text, bases)).flatten()
    }

    /// The protected place that an absolute path without `..` lies in.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        if let Some(found) = self.place_by_text(path) {
            return Some(found);
        }
        let real = really(path);
        if real != path
            && let Some(found) = self.place_by_text(&real)
        {
            return Some(found);
        }
        let metadata = real.metadata().ok()?;
        let inode = (metadata.dev(), metadata.ino());
        let is_same = metadata.is_file() && self.inodes.contains(&inode);
        is_same.then_some(real)
    }

    fn place_by_text(&self, path: &Path) -> Option<PathBuf> {
        let components: Vec<String> = path
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(spelling::fold(&name.to_string_lossy())),
                _ => None,
            })
            .collect();
        let by_name = PROTECTED.iter().any(|names| {
            components.windows(names.len()).any(|window| {
                let pairs = window.iter().zip(names.iter());
                pairs
                    .into_iter()
                    .all(|(found, name)| spelling::may_name(found, name))
            })
        });
        if by_name {
            return Some(path.to_owned());
        }
        let place = self.places.iter().find(|place| {
            let mut names = place.components().filter_map(|component| match component {
                Component::Normal(name) => Some(spelling::fold(&name.to_string_lossy())),
                _ => None,
            });
            let mut found = components.iter();
            names.all(|name| {
                found
                    .next()
                    .is_some_and(|found| spelling::may_name(found, &name))
            })
        });
        place.cloned()
    }
}

/// An absolute path without `.` and `..`, by its text alone; `..` at the root stays there.
fn lexical(base: &Path, path: &Path) -> PathBuf {
    let mut found = PathBuf::from("/");
    for component in base.join(path).components() {
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

/// Where a path really leads: links followed as far as it exists, the rest as written.
fn really(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut there = path;
    loop {
        // A link that leads nowhere yet is followed by hand: what is written to it lands there.
        if let Ok(target) = there.read_link() {
            let base = there.parent().unwrap_or(Path::new("/"));
            let next = lexical(&really(base), &target);
            if next != there {
                let found = next.canonicalize().unwrap_or(next);
                return rest.iter().rev().fold(found, |path, name| path.join(name));
            }
        }
        if let Ok(real) = there.canonicalize() {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
            return path.to_owned();
        };
        rest.push(name.to_owned());
        there = parent;
    }
}

#[cfg(test)]
mod tests;
