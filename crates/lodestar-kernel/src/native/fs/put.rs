//! How a file comes to stand under a name: beside it first, then in its place in one step.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::Root;
use super::root::{Below, DIRECTORY};

/// Goes down name by name, and makes what is missing. Links are not followed here.
pub(super) fn open_or_make(
    root: &Root,
    parent: &Below,
    made: &mut MadeDirectories,
) -> Result<OwnedFd, Errno> {
    match root.open_directory(parent) {
        Err(Errno::NOENT) => {}
        answer => return answer,
    }
    let mut here = root.open_directory(&root.top())?;
    for name in parent.names() {
        let next = match rustix::fs::openat(&here, name, DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => made.remember(&here, name)?,
                    // Somebody was faster; what they made has to be a directory, too.
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                rustix::fs::openat(&here, name, DIRECTORY, Mode::empty())?
            }
            answer => answer?,
        };
        here = next;
    }
    Ok(here)
}

/// A name that nobody can guess.
fn unguessable() -> Result<OsString, Errno> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(OsString::from(format!(".lodestar-{hex}.tmp")))
}

/// A file with a name that nobody can guess, in the directory of the target. Gone when dropped.
pub(super) struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    file: File,
}

impl<'a> Temporary<'a> {
    pub(super) fn create(directory: &'a OwnedFd, before: Option<&Stat>) -> Result<Self, Errno> {
        let name = unguessable()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A new file gets what the umask leaves; a copy of an old one is nobody's business until
        // it has the old one's mode.
        let mode = if before.is_some() { 0o600 } else { 0o666 };
        let file = rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(mode))?;
        let temporary = Self {
            directory,
            name,
            file: file.into(),
        };
        if let Some(before) = before {
            temporary.resemble(before)?;
        }
        Ok(temporary)
    }

    fn resemble(&self, before: &Stat) -> Result<(), Errno> {
        let own = rustix::fs::fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid) {
            let (uid, gid) = (
                rustix::fs::Uid::from_raw(before.st_uid),
                rustix::fs::Gid::from_raw(before.st_gid),
            );
            rustix::fs::fchown(&self.file, Some(uid), Some(gid))?;
        }
        // Permission bits only: other content must not inherit setuid, setgid or sticky.
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(before.st_mode & 0o777))
    }

    pub(super) fn chmod(&self, mode: u32) -> Result<(), Errno> {
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    pub(super) fn fill(&self, content: &[u8]) -> std::io::Result<()> {
        (&self.file).write_all(content)?;
        self.file.sync_all()
    }

    /// Puts it where the target is. A target that was absent must still be.
    pub(super) fn put(self, name: &OsStr, replace: bool) -> Result<(), Errno> {
        let directory = self.directory;
        if replace {
            return rustix::fs::renameat(directory, &self.name, directory, name);
        }
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(directory, &self.name, directory, name, flags) {
            // Some file systems cannot; a link does not replace either, and the drop removes the
            // other name.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(directory, &self.name, directory, name, AtFlags::empty())
            }
            answer => answer,
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // Once it was renamed there is nothing by this name.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// A link with a name that nobody can guess. Gone when dropped, unless it was put in place.
pub(super) struct TemporaryLink<'a> {
    directory: &'a OwnedFd,
    name: OsString,
}

impl<'a> TemporaryLink<'a> {
    pub(super) fn create(directory: &'a OwnedFd, to: &Path) -> Result<Self, Errno> {
        let name = unguessable()?;
        rustix::fs::symlinkat(to, directory, &name)?;
        Ok(Self { directory, name })
    }

    pub(super) fn put(self, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::renameat(self.directory, &self.name, self.directory, name)
    }
}

impl Drop for TemporaryLink<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// Directories that this call made: removed again, the last one first, unless it succeeds.
#[derive(Default)]
pub(super) struct MadeDirectories(Vec<(OwnedFd, OsString)>);

impl MadeDirectories {
    fn remember(&mut self, parent: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
        let parent = rustix::io::fcntl_dupfd_cloexec(parent.as_fd(), 0)?;
        self.0.push((parent, name.to_owned()));
        Ok(())
    }

    pub(super) fn keep(&mut self) {
        // A directory survives a crash when the one that it is in was synchronised. Where that
        // fails, the file's own synchronisation says so.
        for (parent, _) in self.0.drain(..) {
            let _ = rustix::fs::fsync(&parent);
        }
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        for (parent, name) in self.0.drain(..).rev() {
            // One that somebody put something into stays.
            let _ = rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR);
        }
    }
}
