//! Containment: what a child of Lodestar can reach, enforced by the operating system.
//!
//! A [`Plan`] says what a child is for: the profiles of its contracts, the project, what is out of reach. A
//! [`Cell`] is that plan made ready for this machine, and [`Cell::confine`] puts it around a command: from the
//! moment the program starts, and for whatever it starts in turn.
//!
//! | part | role |
//! |---|---|
//! | [`plan`] | which places and ways out a set of profiles comes to |
//! | `places` | the places of a machine, by what they are for |
//! | [`host`] | what this kernel can enforce, found out by trying |
//! | `rules` | files and TCP ports, as Landlock rules |
//! | `cover` | what lies inside of what is granted and is not: hidden or fixed by mounts of the child's own |
//! | `filter` | system calls that no child needs and that lead around the rest |
//! | `bridge` | listeners in a child's own network that are served from outside |
//! | `enter` | the steps between fork and exec, and nothing else |
//! | `canary` | what is tried in the very process that becomes the program, before it does |
//! | `watch` | what mounts cannot hold: what appears, links that change, covers that fall |
//! | `undertaker` | what ends everything that a child left behind, in one step |
//! | [`record`] | what was in force and what was refused, for the log |
//! | [`page`] | all that as a page of the reference |
//! | [`nursery`] | the thread that children are started from, since they end with it |
//!
//! Nothing here needs root or another program. Where a layer is missing the rest still holds, and the record
//! says so; on other systems a cell is [`State::Absent`], which is never passed over in silence.

#[cfg(target_os = "linux")]
mod bridge;
#[cfg(target_os = "linux")]
mod canary;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(not(target_os = "linux"))]
#[path = "contain/elsewhere.rs"]
mod cell;
#[cfg(target_os = "linux")]
mod cover;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod filter;
pub mod host;
pub mod nursery;
pub mod page;
mod places;
pub mod plan;
pub mod record;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod scratch;
#[cfg(target_os = "linux")]
mod undertaker;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "contain/watch_elsewhere.rs"]
mod watch;

pub use cell::{Cell, Confined};
pub use host::{Host, Hosting};
pub use places::on_path;
pub use plan::{Grants, Group, Network, OutOfReach, Plan, Strictness};
pub use record::{Attempt, Containment, Declared, State, Tried};
pub use watch::{Planted, Watch};

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no cell.
#[derive(Debug, Error)]
pub enum ContainError {
    /// A place that the child needs cannot be looked at.
    #[error("`{}` cannot be granted to a child: {problem}", place.display())]
    Place {
        /// Which.
        place: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// It has to be whole, and is not.
    #[error("it has to be contained and can only be so in part: {0}")]
    InPart(String),
    /// The kernel refused a rule that it should know.
    #[error("the sandbox cannot be made: {0}")]
    Rules(String),
    /// The system refused a pipe, a folder or a socket.
    #[error("the sandbox cannot be made ready: {0}")]
    System(#[from] io::Error),
}
