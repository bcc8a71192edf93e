//! One daemon for one device, and one that changes a file at a time: locks that go away with whoever held them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::{DeviceFolder, FileError};

const LOCK: &str = "daemon.lock";

/// How long a daemon that was told to end may take for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why the daemon does not run.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another one does.
    #[error("another daemon runs for this device{}", .0.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Running(Option<u32>),
    /// The lock cannot be had.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Held while a daemon runs. The system lets go of it however the process ends.
#[derive(Debug)]
pub struct DaemonLock {
    _file: File,
}

fn path(folder: &DeviceFolder) -> PathBuf {
    folder.path().join(LOCK)
}

fn open(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true);
    let options = options.truncate(false).mode(0o600);
    options.open(path).map_err(FileError::at(path))
}

/// Waits for a lock that nobody holds for longer than writing a small file takes. Dropped, it is free again.
pub(super) fn for_a_moment(path: &Path) -> Result<File, FileError> {
    let file = open(path)?;
    file.lock().map_err(FileError::at(path))?;
    Ok(file)
}

/// Takes a lock if nobody has it. Dropped, it is free again.
pub(crate) fn if_free(path: &Path) -> Result<Option<File>, FileError> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(problem)) => Err(FileError::at(path)(problem)),
    }
}

impl DaemonLock {
    /// Takes the lock, and says who has it. Whoever is about to end, or only looks, is waited for a moment.
    pub fn take(folder: &DeviceFolder) -> Result<Self, LockError> {
        let mut file = open(&path(folder))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => return Err(LockError::Running(pid(&mut file))),
                Err(TryLockError::Error(problem)) => {
                    return Err(FileError::at(&path(folder))(problem).into());
                }
            }
        }
        let written = file.set_len(0).and_then(|()| file.rewind());
        let written = written.and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(FileError::at(&path(folder)))?;
        Ok(Self { _file: file })
    }
}

/// The process of the daemon that runs for a device; none where none does.
pub fn running(folder: &DeviceFolder) -> Result<Option<u32>, FileError> {
    let path = path(folder);
    let mut file = match OpenOptions::new().read(true).open(&path) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(FileError::at(&path))?,
    };
    // Shared: whoever only looks is in nobody's way for longer than the look takes.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(pid(&mut file).unwrap_or(0))),
        Err(TryLockError::Error(problem)) => Err(FileError::at(&path)(problem)),
    }
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
