//! A git directory of ours around somebody's repository.
//!
//! Git reads hooks, drivers and addresses from the configuration in its directory. So it gets one
//! that was made a moment ago, readable by the user alone: our configuration, a copy of `HEAD`, and
//! links to the references. Objects and index are named by variables. What is taken over of the
//! repository's own configuration, [`Settings`] says.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use lodestar_core::contract::Sandbox;
use rustix::fs::OFlags;
use tempfile::TempDir;

use super::command::{Git, variable};
use super::config::GitError;
use super::settings::{Settings, entry};
use crate::native::fs::{Reins, Root, shown};
use crate::native::shell::process::{Clients, Confines};

/// Largest of the small files of a repository (configuration, exclusions, `HEAD`).
const MAX_SMALL_FILE: u64 = 1024 * 1024;

/// Where the parts of a repository are. Checked: directories and files, no links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// What belongs to this working tree: `HEAD` and the index.
    pub(crate) git_dir: PathBuf,
    /// What is shared between working trees: objects, references, configuration.
    pub(crate) common_dir: PathBuf,
}

impl Layout {
    pub(crate) fn find(root: &Path, pinned: Option<&Path>) -> Result<Self, GitError> {
        let dot_git = root.join(".git");
        let kind = fs::symlink_metadata(&dot_git)
            .map_err(|_| GitError::NotARepository { path: shown(root) })?;
        let layout = if kind.is_dir() {
            if is_there(&dot_git.join("commondir")) {
                return odd(&dot_git.join("commondir"), "only linked worktrees have it");
            }
            Self {
                common_dir: dot_git.clone(),
                git_dir: dot_git,
            }
        } else if kind.is_file() {
            Self::linked(root, &dot_git, pinned)?
        } else {
            return odd(&dot_git, "it is neither a directory nor a file");
        };
        layout.check()?;
        Ok(layout)
    }

    fn linked(root: &Path, dot_git: &Path, pinned: Option<&Path>) -> Result<Self, GitError> {
        let text = small_file(dot_git)?;
        let to = text
            .strip_prefix(b"gitdir: ")
            .map(<[u8]>::trim_ascii_end)
            .map(|to| root.join(std::ffi::OsStr::from_bytes(to)));
        let Some(to) = to else {
            return odd(dot_git, "it does not say where the repository is");
        };
        let git_dir = to.canonicalize().map_err(|source| GitError::Io {
            path: shown(&to),
            source,
        })?;
        let accepted = pinned.and_then(|pinned| pinned.canonicalize().ok());
        if accepted.as_ref() != Some(&git_dir) {
            return Err(GitError::Elsewhere {
                path: shown(root),
                to: shown(&git_dir),
            });
        }
        let commondir = git_dir.join("commondir");
        let common_dir = if is_there(&commondir) {
            let text = small_file(&commondir)?;
            let to = git_dir.join(std::ffi::OsStr::from_bytes(text.trim_ascii_end()));
            to.canonicalize().map_err(|source| GitError::Io {
                path: shown(&to),
                source,
            })?
        } else {
            git_dir.clone()
        };
        Ok(Self {
            git_dir,
            common_dir,
        })
    }

    fn check(&self) -> Result<(), GitError> {
        for directory in [self.objects(), self.common_dir.join("refs")] {
            if !fs::symlink_metadata(&directory).is_ok_and(|kind| kind.is_dir()) {
                return odd(&directory, "it is not a directory");
            }
        }
        if !fs::symlink_metadata(self.git_dir.join("HEAD")).is_ok_and(|kind| kind.is_file()) {
            return odd(&self.git_dir.join("HEAD"), "it is not a file");
        }
        for file in [self.index(), self.common_dir.join("packed-refs")] {
            if fs::symlink_metadata(&file).is_ok_and(|kind| !kind.is_file()) {
                return odd(&file, "it is not a file");
            }
        }
        Ok(())
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// Refuses links on the way to what a commit on the branch writes: git follows them.
    pub(crate) fn check_branch(&self, branch: &str) -> Result<(), GitError> {
        let of_branch = format!("refs/heads/{branch}");
        let of_log = format!("logs/{of_branch}");
        for (start, path) in [
            (&self.common_dir, of_branch.as_str()),
            (&self.common_dir, of_log.as_str()),
            (&self.git_dir, "logs/HEAD"),
        ] {
            let mut here = start.clone();
            for name in path.split('/') {
                here.push(name);
                if fs::symlink_metadata(&here).is_ok_and(|kind| kind.is_symlink()) {
                    return odd(&here, "it is a symbolic link");
                }
            }
        }
        Ok(())
    }

    /// The configuration that all working trees share, where there is one.
    pub(crate) fn shared_configuration(&self) -> Option<PathBuf> {
        Some(self.common_dir.join("config")).filter(|path| is_there(path))
    }

    /// The configuration of this working tree alone, where there is one.
    pub(crate) fn own_configuration(&self) -> Option<PathBuf> {
        Some(self.git_dir.join("config.worktree")).filter(|path| is_there(path))
    }
}

fn odd<T>(path: &Path, reason: &'static str) -> Result<T, GitError> {
    Err(GitError::Odd {
        path: shown(path),
        reason,
    })
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reads a small regular file that is no link.
pub(crate) fn small_file(path: &Path) -> Result<Vec<u8>, GitError> {
    let io = |source: io::Error| GitError::Io {
        path: shown(path),
        source,
    };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(|_| io(io::ErrorKind::Unsupported.into()))?;
    let file = fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return odd(path, "it is not a regular file");
    }
    let mut bytes = Vec::new();
    file.take(MAX_SMALL_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > MAX_SMALL_FILE {
        return odd(path, "it is too large");
    }
    Ok(bytes)
}

/// A temporary git directory. Gone when dropped.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    directory: TempDir,
    pub(crate) layout: Layout,
    /// What `HEAD` says.
    pub(crate) head: Vec<u8>,
    format: String,
}

impl PrivateDir {
    /// One around the repository, for everything but pushing.
    pub(crate) fn around(
        layout: Layout,
        git: &Git,
        root: &Root,
        reins: &Reins,
    ) -> Result<Self, GitError> {
        let own = Settings::read(&layout, git, root, reins)?;
        let head = small_file(&layout.git_dir.join("HEAD"))?;
        let directory = temporary()?;
        let at = directory.path();
        let fill = || -> io::Result<()> {
            fs::write(at.join("config"), own.text("false"))?;
            fs::write(at.join("HEAD"), &head)?;
            symlink(layout.common_dir.join("refs"), at.join("refs"))?;
            symlink(
                layout.common_dir.join("packed-refs"),
                at.join("packed-refs"),
            )?;
            fs::create_dir(at.join("logs"))?;
            for (own, name) in [
                (&layout.git_dir, "logs/HEAD"),
                (&layout.common_dir, "logs/refs"),
            ] {
                if own.join(name).exists() {
                    symlink(own.join(name), at.join(name))?;
                }
            }
            fs::create_dir(at.join("info"))?;
            Ok(())
        };
        fill().map_err(|source| GitError::Io {
            path: shown(at),
            source,
        })?;
        let private = Self {
            layout,
            head,
            format: own.format,
            directory,
        };
        private.copy("shallow")?;
        private.copy("info/exclude")?;
        Ok(private)
    }

    /// An empty one that has the repository's objects and nothing else of it.
    pub(crate) fn with_objects_of(around: &Self) -> Result<Self, GitError> {
        let directory = temporary()?;
        let at = directory.path();
        let objects = around.layout.objects();
        if objects.as_os_str().as_bytes().contains(&b'\n') {
            return odd(&objects, "there is a line break in its path");
        }
        let head = b"ref: refs/heads/nothing\n".to_vec();
        let settings = Settings::bare(&around.format);
        let fill = || -> io::Result<()> {
            fs::write(at.join("config"), settings.text("true"))?;
            fs::write(at.join("HEAD"), &head)?;
            fs::create_dir(at.join("refs"))?;
            fs::create_dir_all(at.join("objects/info"))?;
            let mut line = objects.as_os_str().as_bytes().to_vec();
            line.push(b'\n');
            fs::write(at.join("objects/info/alternates"), line)
        };
        fill().map_err(|source| GitError::Io {
            path: shown(at),
            source,
        })?;
        let private = Self {
            layout: around.layout.clone(),
            head,
            format: settings.format,
            directory,
        };
        private.copy("shallow")?;
        Ok(private)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The variables by which git works in here, on the repository's objects and index.
    pub(crate) fn environment(&self, root: &Path) -> Vec<(OsString, OsString)> {
        vec![
            variable("GIT_DIR", self.path()),
            variable("GIT_WORK_TREE", root),
            variable("GIT_INDEX_FILE", self.layout.index()),
            variable("GIT_OBJECT_DIRECTORY", self.layout.objects()),
        ]
    }

    /// What git reaches when it works in here: the working tree and the repository around it, and what else is
    /// named. Hooks and configuration of the repository stay as they are.
    pub(crate) fn confines(&self, worktree: &Path, more: &[&Path]) -> Confines {
        let layout = &self.layout;
        let own = [self.path(), &layout.git_dir, &layout.common_dir];
        let writes = own.into_iter().chain(more.iter().copied());
        Confines {
            profile: Sandbox::Read,
            project: worktree.to_owned(),
            reads: Vec::new(),
            writes: writes.map(Path::to_owned).collect(),
            clients: Clients::Fixed,
        }
    }

    /// Adds entries to the configuration in here.
    pub(crate) fn configure(&self, entries: &[(String, String)]) -> Result<(), GitError> {
        let path = self.path().join("config");
        let text: String = entries
            .iter()
            .map(|(key, value)| entry(key, value))
            .collect();
        fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| GitError::Io {
                path: shown(&path),
                source,
            })
    }

    /// Takes over a file that is data only.
    fn copy(&self, name: &str) -> Result<(), GitError> {
        let from = self.layout.common_dir.join(name);
        if !is_there(&from) {
            return Ok(());
        }
        let bytes = small_file(&from)?;
        fs::write(self.path().join(name), bytes).map_err(|source| GitError::Io {
            path: shown(&from),
            source,
        })
    }
}

fn temporary() -> Result<TempDir, GitError> {
    tempfile::Builder::new()
        .prefix("lodestar-git-")
        .tempdir()
        .map_err(|source| GitError::Io {
            path: shown(&std::env::temp_dir()),
            source,
        })
}
