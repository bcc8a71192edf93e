//! The few ways in which files outside the log are read and written.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::inert;

/// Keys, signed heads and checkpoints are a few hundred bytes.
pub(crate) const SMALL: u64 = 64 << 10;

/// Reads a file that has to be small.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let file = File::open(path).map_err(Failure::io(path))?;
    read_open(&file, path, limit)
}

/// Reads small text.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path, SMALL)?)
        .map_err(|_| Failure::usage(format!("`{}` is not UTF-8 text", inert::path(path))))
}

/// Reads a file with a secret in it, which nobody else may be able to read.
pub(crate) fn read_private(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let file = File::open(path).map_err(Failure::io(path))?;
    // Of the file that was opened, not of what the name stands for by now.
    let mode = file
        .metadata()
        .map_err(Failure::io(path))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        let shown = inert::path(path);
        return Err(Failure::not_authorised(format!(
            "`{shown}` is open to others (mode {:04o}), so what is in it is no secret",
            mode & 0o7777
        ))
        .help(format!(
            "if nobody else can have read it: chmod 600 {shown}"
        )));
    }
    let bytes = Zeroizing::new(read_open(&file, path, SMALL)?);
    let text = str::from_utf8(&bytes)
        .map_err(|_| Failure::usage(format!("`{}` is not UTF-8 text", inert::path(path))))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn read_open(file: &File, path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let expected = file.metadata().map_or(0, |m| m.len()).min(limit);
    let mut bytes = Vec::with_capacity(expected as usize + 1);
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(Failure::io(path))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!(
            "`{}` is larger than {limit} bytes, so it cannot be what was expected",
            inert::path(path)
        )));
    }
    Ok(bytes)
}

/// Creates a directory that only its owner can enter, and its missing parents.
pub(crate) fn create_private_dir(dir: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(Failure::io(dir))
}

/// Creates a file that must not be there yet, whole or not at all.
pub(crate) fn create_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
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

/// Writes a file that is replaced only once its new content is whole. What is no plain file, such
/// as a device or a pipe, is written to as it is.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |e| Failure::io(path)(e);
    // A link keeps pointing where it points.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let file = OpenOptions::new().write(true).open(&target);
        return write_buffered(&mut file.map_err(failed)?, path, write);
    }
    let dir = match target.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut temporary = tempfile::Builder::new()
        .prefix(".lodestar-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(dir)
        .map_err(|e| failed(without_path(&e)))?;
    let done = write_buffered(temporary.as_file_mut(), path, write)?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(&target).map_err(|e| failed(e.error))?;
    Ok(done)
}

/// The error alone: `tempfile` adds the name of a file that is nobody's business.
fn without_path(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let text = text.split(" at path ").next().unwrap_or_default();
    io::Error::new(error.kind(), text)
}

/// Errors of writing name the file that was asked for.
struct Named<'a> {
    file: &'a mut File,
    path: &'a Path,
}

impl Named<'_> {
    fn named(&self, error: &io::Error) -> io::Error {
        let path = inert::path(self.path);
        io::Error::new(error.kind(), format!("`{path}`: {error}"))
    }
}

impl Write for Named<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write(buf).map_err(|e| self.named(&e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| self.named(&e))
    }
}

fn write_buffered<T>(
    file: &mut File,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut buffered = io::BufWriter::new(Named { file, path });
    let done = write(&mut buffered)?;
    buffered.flush()?;
    Ok(done)
}
