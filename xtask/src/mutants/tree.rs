//! A copy of the workspace, with the mutants in it, and a target directory of its own.
//!
//! A file is written only where it differs, so that the next build compiles what has changed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failure, because};

/// Where the work is done.
#[derive(Debug)]
pub(super) struct Tree {
    /// The copy.
    pub(super) root: PathBuf,
    /// Its target directory.
    pub(super) build: PathBuf,
    /// What is kept from one run to the next.
    pub(super) notes: PathBuf,
}

impl Tree {
    /// The workspace's files, from its root: all but what belongs to git or can be made again.
    pub(super) fn list() -> Result<Vec<String>, Failure> {
        let root = shell::workspace();
        let made = [".git", "target", "node_modules", ".lodestar"];
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        let cannot = |e: io::Error| because(format!("cannot list the workspace: {e}"));
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).map_err(cannot)? {
                let path = entry.map_err(cannot)?.path();
                if path.is_symlink() {
                    continue;
                }
                if !path.is_dir() {
                    let file = path.strip_prefix(root).unwrap_or(&path);
                    files.push(file.to_string_lossy().into_owned());
                } else if !made.iter().any(|made| path.ends_with(made)) {
                    folders.push(path);
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Copies files of the workspace, but for those that are rewritten.
    pub(super) fn copy(
        files: &[String],
        is_rewritten: impl Fn(&str) -> bool,
    ) -> Result<Self, Failure> {
        let target = shell::target().map_err(|e| because(format!("no target directory: {e}")))?;
        let scratch = target.join("mutants");
        let tree = Self {
            root: scratch.join("tree"),
            build: scratch.join("build"),
            notes: scratch,
        };
        let cannot = |e: io::Error| because(format!("cannot copy the workspace: {e}"));
        for file in files.iter().filter(|file| !is_rewritten(file)) {
            let bytes = fs::read(shell::workspace().join(file)).map_err(cannot)?;
            tree.write(file, &bytes).map_err(cannot)?;
        }
        tree.forget_others(files).map_err(cannot)?;
        // To be quicker, not to be right: what cannot be shared is compiled again.
        let _ = share_dependencies(&target.join("debug"), &tree.build.join("debug"));
        Ok(tree)
    }

    /// Writes a file of the copy, if it is not there already.
    pub(super) fn write(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(file);
        if fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)
    }

    /// Removes what an earlier copy had and the workspace has no more.
    fn forget_others(&self, files: &[String]) -> io::Result<()> {
        let kept: BTreeSet<PathBuf> = files.iter().map(|f| self.root.join(f)).collect();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if !kept.contains(&path) {
                    fs::remove_file(path)?;
                }
            }
        }
        Ok(())
    }
}

/// Links the compiled dependencies of the workspace into another target directory. Its own crates
/// have the same names in both and are left out.
fn share_dependencies(from: &Path, to: &Path) -> io::Result<()> {
    if to.join("deps").exists() {
        return Ok(());
    }
    for folder in [".fingerprint", "build", "deps"] {
        fs::create_dir_all(to.join(folder))?;
        for entry in fs::read_dir(from.join(folder))? {
            let name = entry?.file_name();
            if is_dependency(folder, &name.to_string_lossy()) {
                link(&from.join(folder).join(&name), &to.join(folder).join(&name))?;
            }
        }
    }
    Ok(())
}

fn is_dependency(folder: &str, name: &str) -> bool {
    let own = ["lodestar", "liblodestar", "xtask", "libxtask"];
    if own.iter().any(|own| name.starts_with(own)) {
        return false;
    }
    // Binaries and tests have the names of their files.
    folder != "deps" || name.starts_with("lib") || name.ends_with(".d")
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::hard_link(from, to);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        link(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}
