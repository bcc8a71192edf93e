//! Governed sessions: the log and the firewall, joined.
//!
//! So far the sessions of people at a command line, [`OperatorSession`]: what they promote, import
//! or set apart is recorded in a session of its own, like everything else.
#![deny(missing_docs)]

mod operator;
mod recorder;
mod surroundings;

pub use operator::{GuardError, Operator, OperatorSession};
pub use recorder::SessionRecorder;
pub use surroundings::SystemSurroundings;
