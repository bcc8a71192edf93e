//! Governed sessions: log, firewall, gate and kernel, joined.
//!
//! | part | role |
//! |---|---|
//! | [`wrap`] | runs an agent loop inside a governed session: the entry for people who own their loop |
//! | [`Session`], [`Setup`] | the session beneath it |
//! | [`config`] | the configuration, one file |
//! | [`OperatorSession`] | what people do at a command line, as a session of its own |
#![deny(missing_docs)]

pub mod config;
mod error;
mod keys;
mod operator;
mod recorder;
mod recover;
mod session;
mod surroundings;
mod tools;
mod wrap;

pub use config::Config;
pub use error::GuardError;
pub use keys::Keys;
pub use operator::{Operator, OperatorSession};
pub use recorder::SessionRecorder;
pub use session::{
    CallOptions, Counts, DecideError, Holds, OpenError, Outcome, Reply, Resolver, Resolving,
    Session, Setup,
};
pub use surroundings::SystemSurroundings;
pub use wrap::{WrapError, Wrapped, wrap};
