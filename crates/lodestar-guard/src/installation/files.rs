//! The few ways in which key files are read and written.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

/// Keys, signed heads and checkpoints are a few hundred bytes.
pub const SMALL: u64 = 64 << 10;

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system refused.
    #[error("`{}`: {problem}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// It holds a secret, and others can read it.
    #[error(
        "`{}` is open to others (mode {mode:04o}), so what is in it is no secret; if nobody else can have read it, give it mode 600",
        .path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is larger than such a file can be.
    #[error("`{}` is larger than {limit} bytes, so it cannot be what was expected", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it may have.
        limit: u64,
    },
    /// It is no text.
    #[error("`{}` is not UTF-8 text", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |problem| Self::Io { path, problem }
    }
}

/// Whether there is such a file; a directory that cannot be looked into says nothing of it.
pub fn is_there(path: &Path) -> Result<bool, FileError> {
    path.try_exists().map_err(FileError::io(path))
}

/// Reads a file that has to be small.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let file = File::open(path).map_err(FileError::io(path))?;
    read_open(&file, path, limit)
}

/// Reads small text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    String::from_utf8(read(path, SMALL)?).map_err(|_| not_text(path))
}

/// Reads a file with a secret in it, which nobody else may be able to read.
pub fn read_private(path: &Path) -> Result<Zeroizing<String>, FileError> {
    let file = File::open(path).map_err(FileError::io(path))?;
    // Of the file that was opened, not of what the name stands for by now.
    let metadata = file.metadata().map_err(FileError::io(path))?;
    let mode = metadata.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(FileError::OpenToOthers {
            path: path.to_owned(),
            mode: mode & 0o7777,
        });
    }
    let bytes = Zeroizing::new(read_open(&file, path, SMALL)?);
    let text = str::from_utf8(&bytes).map_err(|_| not_text(path))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn not_text(path: &Path) -> FileError {
    FileError::NotText {
        path: path.to_owned(),
    }
}

fn read_open(file: &File, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let expected = file.metadata().map_or(0, |m| m.len()).min(limit);
    let mut bytes = Vec::with_capacity(expected as usize + 1);
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::io(path))?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(bytes)
}

/// Creates a directory that only its owner can enter, and its missing parents.
pub fn create_private_dir(dir: &Path) -> Result<(), FileError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(FileError::io(dir))
}

/// Creates a file that must not be there yet, whole or not at all.
pub fn create_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let temporary = dir.join(format!(".new-{:016x}", u64::from_le_bytes(random)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)?;
    // A link, unlike a rename, never replaces what is there.
    let linked = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&temporary, path));
    let removed = std::fs::remove_file(&temporary);
    linked.and(removed)?;
    File::open(dir)?.sync_all()
}
