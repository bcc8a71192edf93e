//! A folder of a child's own, gone with its cell.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::cover::text;
use super::enter::SHARED_MEMORY;

/// The folder for memory that the child's processes share.
pub(super) const SHARED: &str = ".shared-memory";

/// Temporary files of one child.
#[derive(Debug)]
pub(super) struct Scratch(Option<TempDir>);

/// How much room there is to go down: whoever removes goes down one call for each folder, and a child can make as many as
/// it may hold open.
const STACK: usize = 256 << 20;

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(folder) = self.0.take() else { return };
        // By descriptors, as the library does it: a child that still runs could lay links meanwhile.
        let removing = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || drop(folder));
        if let Ok(removing) = removing {
            let _ = removing.join();
        }
    }
}

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        // Mode 0700: others of this machine have no business in it.
        tempfile::Builder::new()
            .prefix("lodestar-")
            .tempdir()
            .map(|folder| Self(Some(folder)))
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
        let folder = self.0.as_ref();
        folder.expect("INVARIANT: taken when it is dropped").path()
    }
}
