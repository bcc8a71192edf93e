//! The few file operations whose order decides what survives a crash.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// Makes a directory's entries durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a directory and its missing parents, each made durable in its parent. What is recorded
/// is nobody else's to read, whatever the umask says.
pub(crate) fn create_dirs(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let create = || fs::DirBuilder::new().mode(0o700).create(dir);
    let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) else {
        return create();
    };
    create_dirs(parent)?;
    match create() {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => sync_dir(parent),
    }
}

/// Options that follow no link, wait for no pipe, and create files for their owner alone.
fn careful() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits().cast_signed()).mode(0o600);
    options
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is not a regular file",
        )),
    }
}

/// Opens a file of the log for reading: a regular file, and not through a link.
pub(crate) fn open_read(path: &Path) -> io::Result<File> {
    regular(careful().read(true).open(path)?)
}

/// Opens a file of the log for reading and writing, on the same terms.
pub(crate) fn open_update(path: &Path) -> io::Result<File> {
    regular(careful().read(true).write(true).open(path)?)
}

/// Creates a file that is new; what stood under its name before is removed, not followed.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    careful().write(true).create_new(true).open(path)
}

/// How long a lock is waited for: an append holds it for a few syncs.
const LOCK_WAIT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Tries until the lock is there or it takes too long.
pub(crate) fn wait_for_lock(
    mut attempt: impl FnMut() -> Result<(), TryLockError>,
) -> io::Result<()> {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_WAIT => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process has held the ledger's lock for too long",
                ));
            }
        }
    }
}

/// Replaces `dir/name` so that a crash leaves either the old content or the new, whole.
pub(crate) fn replace(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    write_whole(dir, &temporary, content)?;
    put_in_place(dir, &temporary, name)
}

/// Writes `dir/name` and waits until its content is on disk; its entry may not be yet.
pub(crate) fn write_whole(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut file = create_new(&dir.join(name))?;
    file.write_all(content)?;
    file.sync_all()
}

/// Renames `dir/from` to `dir/to`, durably.
pub(crate) fn put_in_place(dir: &Path, from: &str, to: &str) -> io::Result<()> {
    fs::rename(dir.join(from), dir.join(to))?;
    sync_dir(dir)
}

/// Removes what an interrupted write left: every `*.tmp` directly in `dir`.
pub(crate) fn sweep(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "tmp") && path.is_file() {
            erase_file(&path)?;
        }
    }
    Ok(())
}

/// Overwrites a range with zeros.
pub(crate) fn zero(file: &mut File, range: Range<u64>) -> io::Result<()> {
    file.seek(SeekFrom::Start(range.start))?;
    io::copy(&mut io::repeat(0).take(range.end - range.start), file)?;
    Ok(())
}

/// Removes a file, overwritten with zeros where it is a plain file with no other name. What was
/// put under the name instead (a link, a pipe) only loses the name.
pub(crate) fn erase_file(path: &Path) -> io::Result<()> {
    if let Ok(mut file) = careful().write(true).open(path).and_then(regular)
        && file.metadata()?.nlink() == 1
    {
        let len = file.metadata()?.len();
        zero(&mut file, 0..len)?;
        file.sync_all()?;
    }
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Opens a file for appending, creating it where it is missing.
pub(crate) fn open_append(path: &Path) -> io::Result<File> {
    regular(careful().create(true).append(true).read(true).open(path)?)
}

/// Reads a file that has to be small; `None` where there is none.
pub(crate) fn read_small(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_read(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("larger than the limit of {limit} bytes"),
        ));
    }
    Ok(Some(content))
}
