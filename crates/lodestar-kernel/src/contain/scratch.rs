//! A folder of a child's own, gone with its cell.

use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Temporary files of one child.
#[derive(Debug)]
pub(super) struct Scratch(TempDir);

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        // Mode 0700: others of this machine have no business in it.
        tempfile::Builder::new()
            .prefix("lodestar-")
            .tempdir()
            .map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}
