//! Folders and files that others may have put there: no link is followed, nothing that is no plain
//! file is opened for long, nothing is read without a bound, and what is written appears whole.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Most names that are given; a folder with more was filled by nobody who means well.
pub(crate) const MOST_NAMES: usize = 100_000;
/// Most names that are passed by on the way to those.
const MOST_PASSED: usize = 2_000_000;

/// Names in a folder.
pub(crate) struct Listed {
    pub(crate) names: Vec<String>,
    /// Whether the end of the folder was reached.
    pub(crate) is_all: bool,
}

/// A folder that is open, wherever its name leads by now.
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// What a plain file held.
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: Stamp,
}

/// Tells whether a file is the one that was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, u64),
}

impl Stamp {
    fn of(stat: &fs::Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }

    /// In bytes.
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.size).unwrap_or(0)
    }
}

/// Whether missing folders are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Made,
    Refused,
}

fn named(path: &Path) -> impl Fn(Errno) -> io::Error + use<> {
    let path = path.to_owned();
    move |errno| {
        let error = io::Error::from(errno);
        let (kind, problem) = match errno {
            Errno::LOOP | Errno::NOTDIR => (
                io::ErrorKind::NotADirectory,
                "is no folder (links are not followed); remove it".to_owned(),
            ),
            _ => (error.kind(), error.to_string()),
        };
        io::Error::new(kind, format!("`{}`: {problem}", path.display()))
    }
}

impl Folder {
    /// Opens the folder at the end of a chain of names, none of which may be a link.
    pub(crate) fn open(root: &Path, below: &[&str], missing: Missing) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = fs::open(root, flags, Mode::empty()).map_err(named(root))?;
        let mut folder = Self {
            fd,
            path: root.to_owned(),
        };
        for name in below {
            folder = folder.enter(name, missing)?;
        }
        Ok(folder)
    }

    /// A folder inside this one.
    pub(crate) fn enter(&self, name: &str, missing: Missing) -> io::Result<Self> {
        let path = self.path.join(name);
        let failed = named(&path);
        if missing == Missing::Made {
            match fs::mkdirat(&self.fd, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat(&self.fd, name, flags, Mode::empty()).map_err(failed)?;
        Ok(Self { fd, path })
    }

    /// Keeps others out of it, also where somebody made it otherwise.
    pub(crate) fn keep_private(&self) -> io::Result<()> {
        let failed = named(&self.path);
        let stat = fs::fstat(&self.fd).map_err(&failed)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            let problem = format!("`{}` belongs to somebody else", self.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        match Mode::from_raw_mode(stat.st_mode) {
            Mode::RWXU => Ok(()),
            _ => fs::fchmod(&self.fd, Mode::RWXU).map_err(failed),
        }
    }

    /// Some of the names in it, those that are text: of the ones that are looked for, all after the first
    /// `after`, and no more than `most`. What is looked for is told by its name and its type, which is
    /// unknown where the system does not say it.
    pub(crate) fn list(
        &self,
        (after, most): (usize, usize),
        is_looked_for: impl Fn(&str, FileType) -> bool,
    ) -> io::Result<Listed> {
        let failed = named(&self.path);
        let dir = Dir::read_from(&self.fd).map_err(&failed)?;
        let mut names = Vec::new();
        let (mut left, mut passed) = (after, 0);
        for entry in dir {
            let entry = entry.map_err(&failed)?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") {
                continue;
            }
            passed += 1;
            let is_meant = is_looked_for(name, entry.file_type());
            if passed > MOST_PASSED || (is_meant && left == 0 && names.len() == most) {
                let is_all = false;
                return Ok(Listed { names, is_all });
            }
            match left {
                _ if !is_meant => {}
                0 => names.push(name.to_owned()),
                _ => left -= 1,
            }
        }
        let is_all = true;
        Ok(Listed { names, is_all })
    }

    /// Tells a plain file from the one that was there before; `None` for all that is none.
    pub(crate) fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_plain(&stat) => Ok(Some(Stamp::of(&stat))),
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(named(&self.path.join(name))(errno)),
        }
    }

    /// Reads at most `limit` bytes of a plain file; `None` for all that is none, or is not there.
    pub(crate) fn read(&self, name: &str, limit: usize) -> io::Result<Option<Content>> {
        // A pipe without a writer must not make anybody wait.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let failed = named(&self.path.join(name));
        let fd = match fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
                return Ok(None);
            }
            Err(errno) => return Err(failed(errno)),
        };
        let stat = fs::fstat(&fd).map_err(failed)?;
        if !is_plain(&stat) {
            return Ok(None);
        }
        let size = usize::try_from(stat.st_size).unwrap_or(0);
        let mut bytes = Vec::with_capacity(size.min(limit));
        let mut file = File::from(fd).take(limit as u64);
        file.read_to_end(&mut bytes).map_err(|problem| {
            let path = self.path.join(name);
            io::Error::new(problem.kind(), format!("`{}`: {problem}", path.display()))
        })?;
        Ok(Some(Content {
            bytes,
            stamp: Stamp::of(&stat),
        }))
    }

    /// Puts a file there, whole, in place of one that may be there.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let failed = named(&self.path.join(name));
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let temporary = format!(".{:016x}.new", u64::from_le_bytes(random));
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = fs::openat(&self.fd, &temporary, flags, mode).map_err(&failed)?;
        let written = File::from(fd)
            .write_all(content)
            .and_then(|()| fs::renameat(&self.fd, &temporary, &self.fd, name).map_err(&failed));
        if written.is_err() {
            let _ = fs::unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        written
    }

    /// Adds to the end of a plain file and tells how long it is then; `None` where there is none.
    pub(crate) fn append(&self, name: &str, content: &[u8]) -> io::Result<Option<u64>> {
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let Ok(fd) = fs::openat(&self.fd, name, flags, Mode::empty()) else {
            return Ok(None);
        };
        let stat = fs::fstat(&fd).map_err(named(&self.path.join(name)))?;
        if !is_plain(&stat) {
            return Ok(None);
        }
        File::from(fd).write_all(content)?;
        Ok(Some(Stamp::of(&stat).size() + content.len() as u64))
    }

    /// Removes a file; one that is not there is as good as removed.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(named(&self.path.join(name))(errno)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A second name would let a file from elsewhere be read through this folder.
fn is_plain(stat: &fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1
}
