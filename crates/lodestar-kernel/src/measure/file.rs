//! What lies at a path.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use lodestar_core::digest::{Digest, Hasher};

use super::Found;

/// Largest file that is hashed: reading more would hold every call up for seconds.
const MAX_FILE: u64 = 1 << 30;

/// Looks at a path below the root, or an absolute one; links are followed, and where they led is
/// part of what was found.
pub(super) fn look(root: &Path, path: &str, wants_content: bool) -> Found {
    if path.is_empty() || path.contains('\0') {
        return Found::Unmeasurable {
            because: "the path is empty or has a NUL byte".to_owned(),
        };
    }
    match inspect(&root.join(path), wants_content) {
        Ok(found) => found,
        Err(problem) => Found::Unmeasurable {
            because: problem.to_string(),
        },
    }
}

fn inspect(path: &Path, wants_content: bool) -> io::Result<Found> {
    let resolved = match path.canonicalize() {
        Ok(resolved) => resolved,
        Err(problem) if is_nothing(&problem) => return dangling(path),
        Err(problem) => return Err(problem),
    };
    let at = resolved.to_string_lossy().into_owned();
    let metadata = resolved.metadata()?;
    if !metadata.is_file() {
        return Ok(Found::Other { at });
    }
    if !wants_content {
        return Ok(Found::Other { at });
    }
    Ok(Found::File {
        sha256: hash(&resolved)?,
        at,
    })
}

fn is_nothing(problem: &io::Error) -> bool {
    matches!(
        problem.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Nothing is behind the path; but a link that leads nowhere is something.
fn dangling(path: &Path) -> io::Result<Found> {
    match path.symlink_metadata() {
        Ok(_) => Ok(Found::Other {
            at: path.to_string_lossy().into_owned(),
        }),
        Err(problem) if is_nothing(&problem) => Ok(Found::Nothing),
        Err(problem) => Err(problem),
    }
}

fn hash(path: &Path) -> io::Result<Digest> {
    // What turned into a pipe meanwhile must not block.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no longer a file"));
    }
    let mut limited = file.take(MAX_FILE + 1);
    let mut sha256 = Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut read = 0;
    loop {
        let n = limited.read(&mut buffer)?;
        if n == 0 {
            return Ok(sha256.finish());
        }
        read += n as u64;
        if read > MAX_FILE {
            return Err(io::Error::other(format!(
                "the file has more than {MAX_FILE} bytes"
            )));
        }
        sha256.update(&buffer[..n]);
    }
}
