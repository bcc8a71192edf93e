//! What decides what git runs for a project, wherever its repository lies.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::lexical;

/// What decides what git runs, in a repository.
const IN_REPOSITORY: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/// Most repositories below one that are looked for, and how deep.
const MAX_REPOSITORIES: usize = 500;
const MAX_DEPTH: usize = 6;

/// Most of a file that is read as the path of a repository.
const MAX_POINTER: u64 = 64 << 10;

/// All of it, for a project at this root; `.git/hooks` and its kin are known by their names alone.
pub(super) fn governing(root: &Path) -> Vec<PathBuf> {
    let git = root.join(".git");
    let mut found = of_other_repositories(&git);
    if !git.is_dir() {
        // A file of that name says where the repository is, and so what git runs.
        found.push(git);
    }
    found.extend(elsewhere(root));
    found
}

/// That of a repository that is not the folder `.git`: one that a file of that name leads to, and the project itself where
/// it is a bare one.
pub(super) fn elsewhere(root: &Path) -> Vec<PathBuf> {
    let mut repositories = Vec::new();
    if let Some(named) = pointed_to(&root.join(".git"), "gitdir: ") {
        repositories.extend(pointed_to(&named.join("commondir"), ""));
        repositories.push(named);
    }
    if is_repository(root) {
        repositories.push(root.to_owned());
    }
    let mut found = Vec::new();
    for repository in repositories {
        found.extend(IN_REPOSITORY.iter().map(|name| repository.join(name)));
        found.extend(of_other_repositories(&repository));
    }
    found
}

/// Whether git takes a folder for a repository, or would once the child has put back what it took away.
pub(crate) fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).exists();
    folder.join("HEAD").symlink_metadata().is_ok() && (has("objects") || has("commondir"))
}

/// The folder that a file names, as git reads it.
fn pointed_to(file: &Path, before: &str) -> Option<PathBuf> {
    let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
    let opened = fs::File::open(file).ok().filter(|_| is_file)?;
    let mut text = String::new();
    opened.take(MAX_POINTER).read_to_string(&mut text).ok()?;
    let named = text.strip_prefix(before)?.trim_end_matches(['\n', '\r']);
    Some(lexical(file.parent()?, Path::new(named)))
}

/// What git runs, or is told where to find it, in the repositories of submodules and worktrees.
fn of_other_repositories(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(git.join("modules"), 0), (git.join("worktrees"), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let entries = entries.filter_map(Result::ok);
        let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for entry in entries.map(|entry| entry.path()) {
            if found.len() >= MAX_REPOSITORIES * IN_REPOSITORY.len() || depth >= MAX_DEPTH {
                // Too many to be told apart: none of them is written.
                return vec![git.join("modules"), git.join("worktrees")];
            }
            // One of them is enough: a child may have taken the others away for a while.
            let parts = ["HEAD", "config", "objects", "refs", "gitdir"];
            if parts
                .iter()
                .any(|part| entry.join(part).symlink_metadata().is_ok())
            {
                found.extend(IN_REPOSITORY.iter().map(|name| entry.join(name)));
                // Submodules have submodules.
                folders.push((entry.join("modules"), depth + 1));
            } else {
                // A submodule's name may have folders in it.
                folders.push((entry, depth + 1));
            }
        }
    }
    found
}
