//! Systems other than Linux: nothing is contained, so that nothing is looked for.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// What appeared, while a child ran that could make it, where nothing was and nothing may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// Where it was.
    pub place: PathBuf,
    /// Its name now; none where it could not be moved.
    pub aside: Option<OsString>,
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` appeared while it ran", self.place.display())
    }
}

/// The places to look at: none.
#[derive(Debug, Clone, Default)]
pub struct Absent(());

impl Absent {
    /// Nothing is found.
    pub fn set_aside(&self) -> Vec<Planted> {
        Vec::new()
    }
}
