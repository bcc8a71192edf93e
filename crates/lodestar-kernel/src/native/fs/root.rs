//! A directory that nothing leaves.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use lodestar_core::name::Excerpt;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How often a resolution is tried again that a rename elsewhere disturbed. The kernel asks for it
/// with `EAGAIN`; somebody who renames without end gets an error, not a hang.
const RESOLVE_TRIES: usize = 64;

/// What happens to symbolic links on the way to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Links {
    /// A path that goes through one is refused.
    #[default]
    Refuse,
    /// They are followed as long as they stay below the root. Needs `openat2`; where it is
    /// missing, they are refused all the same.
    FollowBelow,
}

/// By what means paths are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// One system call that stays beneath a directory.
    Beneath,
    /// Component by component, no links. For systems without that call.
    Walk,
}

/// A directory that was opened once; paths are resolved beneath it, and nowhere else.
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    /// The root as the operator wrote it: agents name files by that, too.
    spelling: PathBuf,
    links: Links,
    resolution: Resolution,
}

/// Why a directory cannot be a root.
#[derive(Debug, Error)]
pub enum RootError {
    /// It is relative, so it would depend on where the proxy was started.
    #[error("the root `{path}` is relative; write it as an absolute path")]
    Relative {
        /// The root, inert.
        path: Excerpt,
    },
    /// It cannot be opened as a directory.
    #[error("the root `{path}` cannot be opened as a directory: {source}")]
    Unreadable {
        /// The root, inert.
        path: Excerpt,
        /// What the system says.
        source: io::Error,
    },
}

/// Why a path is refused before anything is opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathRefused {
    /// No characters.
    #[error("the path is empty; name a file below the root")]
    Empty,
    /// A NUL, at which the system would end it.
    #[error("the path `{path}` has a NUL byte in it")]
    Nul {
        /// The path, inert.
        path: Excerpt,
    },
    /// `..` goes above the root, or an absolute path lies elsewhere.
    #[error("the path `{path}` lies outside the root; name something below it")]
    Outside {
        /// The path, inert.
        path: Excerpt,
    },
    /// It is the root.
    #[error("the path `{path}` is the root itself; name something below it")]
    TheRoot {
        /// The path, inert.
        path: Excerpt,
    },
}

/// A path below a root: normal components only, at least one unless it stands for the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Below(PathBuf);

impl Below {
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// The directory that it is in, and its name there; nothing for the root.
    pub(crate) fn split(&self) -> Option<(Self, &OsStr)> {
        let name = self.0.file_name()?;
        Some((Self(self.0.parent()?.to_owned()), name))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter()
    }

    pub(crate) fn shown(&self) -> Excerpt {
        shown(&self.0)
    }
}

/// A path, inert.
pub(crate) fn shown(path: &Path) -> Excerpt {
    Excerpt::of(&path.to_string_lossy())
}

impl Root {
    /// Opens a directory as a root.
    pub fn open(path: &Path, links: Links) -> Result<Self, RootError> {
        if !path.is_absolute() {
            return Err(RootError::Relative { path: shown(path) });
        }
        let unreadable = |source: io::Error| RootError::Unreadable {
            path: shown(path),
            source,
        };
        let canonical = path.canonicalize().map_err(unreadable)?;
        let directory = rustix::fs::open(&canonical, DIRECTORY, Mode::empty())
            .map_err(|errno| unreadable(errno.into()))?;
        let resolution = resolution_of(&directory);
        Ok(Self {
            directory,
            path: canonical,
            spelling: path.to_owned(),
            links,
            resolution,
        })
    }

    /// Where it is, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root itself, as a path below it.
    pub(crate) fn top(&self) -> Below {
        Below(PathBuf::new())
    }

    #[cfg(test)]
    pub(crate) fn walking(mut self) -> Self {
        self.resolution = Resolution::Walk;
        self
    }

    /// The path below the root that the text means, by its characters alone.
    pub(crate) fn below(&self, text: &str) -> Result<Below, PathRefused> {
        let path = || Excerpt::of(text);
        if text.is_empty() {
            return Err(PathRefused::Empty);
        }
        if text.contains('\0') {
            return Err(PathRefused::Nul { path: path() });
        }
        self.path_below(Path::new(text))
            .ok_or_else(|| PathRefused::Outside { path: path() })
    }

    /// The same for a path that need not be text; none if it lies outside.
    pub(crate) fn path_below(&self, whole: &Path) -> Option<Below> {
        if !whole.is_absolute() {
            return normal(whole).map(Below);
        }
        let whole = normal(whole)?;
        [&self.path, &self.spelling]
            .into_iter()
            .filter_map(|root| normal(root))
            .find_map(|root| whole.strip_prefix(root).map(Path::to_owned).ok())
            .map(Below)
    }

    /// Like [`Self::below`], but not the root itself.
    pub(crate) fn file_below(&self, text: &str) -> Result<Below, PathRefused> {
        let below = self.below(text)?;
        if below.is_root() {
            return Err(PathRefused::TheRoot {
                path: Excerpt::of(text),
            });
        }
        Ok(below)
    }

    /// Opens a file to read. Never blocks: a FIFO without a writer opens, and is refused later.
    pub(crate) fn open_file(&self, path: &Below) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        self.resolve(path, flags).map(File::from)
    }

    /// Opens a directory.
    pub(crate) fn open_directory(&self, path: &Below) -> Result<OwnedFd, Errno> {
        if path.is_root() {
            return rustix::fs::openat(&self.directory, ".", DIRECTORY, Mode::empty());
        }
        self.resolve(path, DIRECTORY)
    }

    fn resolve(&self, path: &Below, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.resolution {
            Resolution::Beneath => beneath(&self.directory, path.as_path(), flags, self.links),
            Resolution::Walk => walk(&self.directory, path, flags),
        }
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Root").field(&self.path).finish()
    }
}

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The path without `.`, `..` and doubled slashes, and without its leading slash; none if `..`
/// climbs above where it starts.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir | Component::RootDir => {}
            // Above `/` is `/` to the system, but nobody means that by a path.
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

#[cfg(target_os = "linux")]
fn resolution_of(directory: &OwnedFd) -> Resolution {
    match beneath(directory, Path::new("."), DIRECTORY, Links::Refuse) {
        Err(Errno::NOSYS | Errno::PERM) => Resolution::Walk,
        _ => Resolution::Beneath,
    }
}

#[cfg(not(target_os = "linux"))]
fn resolution_of(_: &OwnedFd) -> Resolution {
    Resolution::Walk
}

#[cfg(target_os = "linux")]
fn beneath(
    directory: &OwnedFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;

    let (flags, resolve) = match links {
        Links::Refuse => (flags | OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS),
        Links::FollowBelow => (flags.difference(OFlags::NOFOLLOW), ResolveFlags::empty()),
    };
    let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut last = Errno::AGAIN;
    for _ in 0..RESOLVE_TRIES {
        match rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve) {
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
            answer => return answer,
        }
    }
    Err(last)
}

#[cfg(not(target_os = "linux"))]
fn beneath(_: &OwnedFd, _: &Path, _: OFlags, _: Links) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn walk(directory: &OwnedFd, path: &Below, flags: OFlags) -> Result<OwnedFd, Errno> {
    let (parent, name) = path.split().ok_or(Errno::INVAL)?;
    let mut here: Option<OwnedFd> = None;
    for step in parent.names() {
        let from = here.as_ref().unwrap_or(directory);
        here = Some(rustix::fs::openat(from, step, DIRECTORY, Mode::empty())?);
    }
    let from = here.as_ref().unwrap_or(directory).as_fd();
    rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// What an error of a resolution means for whoever named the path.
pub(crate) fn explain(path: &Below, errno: Errno) -> crate::tool::ToolError {
    use crate::tool::{Effect, ToolError};

    let path = path.shown();
    match errno {
        Errno::NOENT => ToolError::failed(Effect::None, format!("`{path}` does not exist")),
        Errno::LOOP => ToolError::refused(format!(
            "`{path}` goes through a symbolic link; name the file itself"
        )),
        // A device or socket that nobody serves: not a file in any case.
        Errno::XDEV => ToolError::refused(format!("`{path}` leads out of the root")),
        Errno::NXIO | Errno::NODEV => ToolError::refused(format!("`{path}` is not a regular file")),
        Errno::NOTDIR => ToolError::refused(format!(
            "a part of `{path}` is not a directory, or is a symbolic link; name the file itself"
        )),
        Errno::NAMETOOLONG => ToolError::invalid(format!("`{path}` is too long for a path")),
        errno => ToolError::failed(
            Effect::None,
            format!("`{path}` cannot be opened: {}", io::Error::from(errno)),
        ),
    }
}
