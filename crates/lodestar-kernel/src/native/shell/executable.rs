//! A program as it was when the tool was made: by absolute path, and nobody else's to change.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lodestar_core::name::Excerpt;
use rustix::fs::Access;
use thiserror::Error;

use crate::native::fs::shown;

/// The sticky bit: who may write the directory cannot replace what others put there.
const STICKY: u32 = 0o1000;

/// A program that was looked at once and has to stay what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Where it is, without links.
    path: PathBuf,
    /// How the operator wrote it: programs that serve several names look at that.
    spelling: PathBuf,
    identity: Identity,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    place: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            place: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Why a program is not run.
#[derive(Debug, Error)]
pub enum ExecutableError {
    /// Its path is relative, so it would be searched.
    #[error("the program `{path}` is not an absolute path; write where it is")]
    Relative {
        /// The path, inert.
        path: Excerpt,
    },
    /// It cannot be looked at.
    #[error("the program `{path}` cannot be opened: {source}")]
    Unreadable {
        /// The path, inert.
        path: Excerpt,
        /// What the system says.
        source: io::Error,
    },
    /// A directory or device, or without leave to execute.
    #[error("`{path}` is not an executable file")]
    NotExecutable {
        /// The path, inert.
        path: Excerpt,
    },
    /// Somebody else could put another program in its place.
    #[error("`{place}` can be changed by others than its user; take that right away, or move it")]
    Changeable {
        /// The program or a directory above it, inert.
        place: Excerpt,
    },
    /// It is another one than when the tool was made.
    #[error("the program `{path}` changed since the tools were set up; start again to accept it")]
    Changed {
        /// The path, inert.
        path: Excerpt,
    },
}

impl Executable {
    /// Looks at a program and remembers it.
    pub(crate) fn pin(spelling: &Path) -> Result<Self, ExecutableError> {
        if !spelling.is_absolute() {
            return Err(ExecutableError::Relative {
                path: shown(spelling),
            });
        }
        let unreadable = |source| ExecutableError::Unreadable {
            path: shown(spelling),
            source,
        };
        let path = spelling.canonicalize().map_err(unreadable)?;
        let metadata = path.metadata().map_err(unreadable)?;
        let executable = metadata.is_file()
            && metadata.mode() & 0o111 != 0
            && rustix::fs::access(&path, Access::EXEC_OK).is_ok();
        if !executable {
            return Err(ExecutableError::NotExecutable {
                path: shown(spelling),
            });
        }
        check_place(&path, &metadata)?;
        Ok(Self {
            identity: Identity::of(&metadata),
            spelling: spelling.to_owned(),
            path,
        })
    }

    /// Whether it still is what it was.
    pub(crate) fn check(&self) -> Result<(), ExecutableError> {
        match self.path.metadata() {
            Ok(metadata) if Identity::of(&metadata) == self.identity => Ok(()),
            Ok(_) => Err(ExecutableError::Changed {
                path: shown(&self.spelling),
            }),
            Err(source) => Err(ExecutableError::Unreadable {
                path: shown(&self.spelling),
                source,
            }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn spelling(&self) -> &Path {
        &self.spelling
    }
}

/// Nobody but root and the user may change the program; nobody may replace it from above, except
/// by a group that a directory belongs to, which is how distributions share `/usr/local`.
fn check_place(path: &Path, metadata: &Metadata) -> Result<(), ExecutableError> {
    let user = rustix::process::getuid().as_raw();
    let foreign = metadata.uid() != 0 && metadata.uid() != user;
    if foreign || metadata.mode() & 0o022 != 0 {
        return Err(ExecutableError::Changeable { place: shown(path) });
    }
    for directory in path.ancestors().skip(1) {
        let mode = directory
            .metadata()
            .map_err(|source| ExecutableError::Unreadable {
                path: shown(directory),
                source,
            })?
            .mode();
        if mode & 0o002 != 0 && mode & STICKY == 0 {
            return Err(ExecutableError::Changeable {
                place: shown(directory),
            });
        }
    }
    Ok(())
}
