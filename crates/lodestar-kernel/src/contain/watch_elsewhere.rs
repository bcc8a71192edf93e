//! Systems other than Linux: nothing is contained, so that nothing is looked for.

use std::convert::Infallible;
use std::fmt;

use rustix::process::Pid;

/// What happened to a protected place: there is no such thing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted(Infallible);

impl fmt::Display for Planted {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl Planted {
    /// Whether it is open to the child.
    pub fn is_open(&self) -> bool {
        match self.0 {}
    }
}

/// The places to look at: none.
#[derive(Debug, Clone, Default)]
pub struct Watch(());

impl Watch {
    /// Nothing is found.
    pub fn look(&mut self, _: Option<Pid>) -> Vec<Planted> {
        Vec::new()
    }
}
