//! The few ways in which a device's files are read and written: whole or not at all, and nobody else's.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use thiserror::Error;
use zeroize::Zeroizing;

/// Keys, tokens and what is known of a run take a few thousand bytes.
const MOST: u64 = 64 << 10;

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system refused.
    #[error("`{}`: {problem}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// It holds a secret, and others can read it.
    #[error(
        "`{}` is open to others (mode {mode:04o}), so what is in it is no secret; if nobody else can have read it, give it mode 600",
        path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is a link, no file, or another user's.
    #[error("`{}` is no regular file of this user; name the file itself, not a link to it", .0.display())]
    NotOwn(PathBuf),
    /// It is larger than such a file can be, or no text.
    #[error("`{}` is no text of at most {MOST} bytes, so it cannot be what was expected", .0.display())]
    NotText(PathBuf),
}

impl FileError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { problem, .. } if problem.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |problem| Self::Io { path, problem }
    }
}

/// Opens a file for reading: a regular file, of this user, and not through a link. Somebody else's could lead to
/// what they cannot read themselves, and have it shown where they like.
fn open(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.bits().cast_signed());
    let file = match options.open(path) {
        Err(problem) if problem.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(FileError::NotOwn(path.to_owned()));
        }
        opened => opened.map_err(FileError::at(path))?,
    };
    let found = file.metadata().map_err(FileError::at(path))?;
    match found.is_file() && found.uid() == geteuid().as_raw() {
        true => Ok(file),
        false => Err(FileError::NotOwn(path.to_owned())),
    }
}

/// Reads small text.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    read_open(&open(path)?, path)
}

/// Reads small text with a secret in it, which nobody else may be able to read.
pub(crate) fn read_private(path: &Path) -> Result<Zeroizing<String>, FileError> {
    let file = open(path)?;
    // Of the file that was opened, not of what the name stands for by now.
    let mode = file.metadata().map_err(FileError::at(path))?;
    let mode = mode.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(FileError::OpenToOthers {
            path: path.to_owned(),
            mode: mode & 0o7777,
        });
    }
    read_open(&file, path).map(Zeroizing::new)
}

fn read_open(file: &File, path: &Path) -> Result<String, FileError> {
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let expected = file.metadata().map_or(0, |it| it.len()).min(MOST);
    let mut text = String::with_capacity(expected as usize + 1);
    match file.take(MOST + 1).read_to_string(&mut text) {
        Err(problem) if problem.kind() == io::ErrorKind::InvalidData => {
            Err(FileError::NotText(path.to_owned()))
        }
        Err(problem) => Err(FileError::at(path)(problem)),
        Ok(read) if read as u64 > MOST => Err(FileError::NotText(path.to_owned())),
        Ok(_) => Ok(text),
    }
}

/// A folder that only its owner enters, with its missing parents.
pub(crate) fn private_folder(path: &Path) -> Result<(), FileError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(FileError::at(path))
}

/// Writes a file that must not be there yet.
pub(crate) fn create_private(path: &Path, text: &str) -> Result<(), FileError> {
    let written = written(path, text)?;
    let kept = written.persist_noclobber(path);
    kept.map_err(|it| FileError::at(path)(it.error))?;
    sync_folder(path)
}

/// Writes a file in the place of the one before.
pub(crate) fn replace_private(path: &Path, text: &str) -> Result<(), FileError> {
    let written = written(path, text)?;
    let kept = written.persist(path);
    kept.map_err(|it| FileError::at(path)(it.error))?;
    sync_folder(path)
}

/// The text beside where it belongs, on disk.
fn written(path: &Path, text: &str) -> Result<tempfile::NamedTempFile, FileError> {
    let at = || FileError::at(path);
    // Its mode is 0600.
    let file = tempfile::Builder::new()
        .prefix(".new-")
        .tempfile_in(folder(path));
    let mut file = file.map_err(at())?;
    file.write_all(text.as_bytes()).map_err(at())?;
    file.as_file().sync_all().map_err(at())?;
    Ok(file)
}

fn sync_folder(path: &Path) -> Result<(), FileError> {
    let folder = File::open(folder(path)).map_err(FileError::at(path))?;
    folder.sync_all().map_err(FileError::at(path))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
