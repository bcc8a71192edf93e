//! A folder of a child's own, gone with its cell.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::cover::text;
use super::enter::SHARED_MEMORY;

/// The folder for memory that the child's processes share.
pub(super) const SHARED: &str = ".shared-memory";

/// Temporary files of one child.
#[derive(Debug)]
pub(super) struct Scratch(TempDir);

impl Drop for Scratch {
    fn drop(&mut self) {
        flatten(self.path());
    }
}

/// Folders that are taken out of one another before all of it is removed: whoever removes goes down one call for each
/// folder, and a child can make very many.
const MAX_DEPTH: usize = 64;

/// Most folders that are looked at.
const MAX_FOLDERS: usize = 200_000;

/// Brings folders up that lie too deep, and opens those that were shut.
fn flatten(top: &Path) {
    let mut next = 0_usize;
    let mut folders = vec![(top.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        seen += 1;
        if seen > MAX_FOLDERS {
            return;
        }
        let open = std::fs::Permissions::from_mode(0o700);
        let _ = std::fs::set_permissions(&folder, open);
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            // A link is no folder here, whatever it leads to.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let (mut path, mut depth) = (entry.path(), depth + 1);
            if depth > MAX_DEPTH {
                let up = top.join(format!(".deep-{next}"));
                next += 1;
                if std::fs::rename(&path, &up).is_ok() {
                    (path, depth) = (up, 1);
                }
            }
            folders.push((path, depth));
        }
    }
}

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        // Mode 0700: others of this machine have no business in it.
        tempfile::Builder::new()
            .prefix("lodestar-")
            .tempdir()
            .map(Self)
    }

    /// What a child writes: its grants, and this.
    pub(super) fn writable(&self, grants: &[PathBuf]) -> io::Result<Vec<CString>> {
        let own = self.path().canonicalize()?;
        let mut places: Vec<&Path> = grants.iter().map(PathBuf::as_path).collect();
        // Outermost first: one that lies in another is mounted over it.
        places.push(&own);
        places.sort_unstable();
        places.into_iter().map(text).collect()
    }

    /// A folder in it that lies where programs share memory, if there is such a place.
    pub(super) fn shared(&self) -> io::Result<Option<CString>> {
        let place = Path::new(OsStr::from_bytes(SHARED_MEMORY.to_bytes()));
        if !place.is_dir() {
            return Ok(None);
        }
        let folder = self.path().join(SHARED);
        std::fs::create_dir(&folder)?;
        text(&folder).map(Some)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}
