//! Systems other than Linux: nothing is contained, and it is said.

use std::io;
use std::process::Command;

use super::{ContainError, Containment, Host, Plan, Strictness, Watch};

const WHY: &str = "this system has no Landlock; children run with your rights";

/// A cell with no walls.
#[derive(Debug)]
pub struct Cell(());

/// A child that nothing contains.
#[derive(Debug)]
pub struct Confined(Watch);

impl Cell {
    /// There is nothing to make ready.
    pub fn of(plan: &Plan, _: Host) -> Result<Self, ContainError> {
        match plan.strictness {
            Strictness::Wholly => Err(ContainError::InPart(WHY.to_owned())),
            Strictness::AsFarAsItCan => Ok(Self(())),
        }
    }

    /// Leaves the command as it is.
    pub fn confine(self, _: &mut Command) -> Confined {
        Confined(Watch::default())
    }
}

impl Confined {
    /// Says that nothing is contained.
    pub fn started(&mut self) -> Containment {
        Containment::absent(WHY)
    }

    /// There are none.
    pub fn bridges(&mut self) -> io::Result<Vec<std::net::TcpListener>> {
        Ok(Vec::new())
    }

    /// Nothing is looked for.
    pub fn watch(&mut self) -> &mut Watch {
        &mut self.0
    }

    /// Nothing is left behind for that.
    pub fn end_all(&mut self, _: std::time::Duration) -> bool {
        false
    }

    /// The error of a start, as it is.
    pub fn explain(&mut self, problem: io::Error) -> io::Error {
        problem
    }
}
