//! The few ways in which files outside the log are read and written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::failure::Failure;
use crate::inert;

pub(crate) use lodestar_guard::installation::files::{SMALL, read, read_private};

/// Writes a file that is replaced only once its new content is whole. What is no plain file, such
/// as a device or a pipe, is written to as it is.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // A link keeps pointing where it points.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    replace_at(&target, path, 0o666, write)
}

/// The same for what holds content of a log: only its owner may read it, and it goes through no link to
/// another file, which somebody else may have put there.
pub(crate) fn replace_private<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let is_link = path.symlink_metadata().is_ok_and(|it| it.is_symlink());
    // `/dev/stdout` and the like are links too.
    let is_no_file = path.metadata().is_ok_and(|it| !it.is_file());
    if is_link && !is_no_file {
        let shown = inert::path(path);
        return Err(
            Failure::usage(format!("`{shown}` is a link, and is not written through"))
                .help("name the file itself"),
        );
    }
    replace_at(path, path, 0o600, write)
}

fn replace_at<T>(
    target: &Path,
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |e| Failure::io(path)(e);
    if target.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let file = OpenOptions::new().write(true).open(target);
        return write_buffered(&mut file.map_err(failed)?, path, write);
    }
    let dir = match target.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut temporary = tempfile::Builder::new()
        .prefix(".lodestar-")
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(dir)
        .map_err(|e| failed(without_path(&e)))?;
    let done = write_buffered(temporary.as_file_mut(), path, write)?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(target).map_err(|e| failed(e.error))?;
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
