//! Governed sessions: log, firewall, gate and kernel, joined.
//!
//! | part | role |
//! |---|---|
//! | [`wrap`] | runs an agent loop inside a governed session: the entry for people who own their loop |
//! | [`Session`], [`Setup`] | the session beneath it |
//! | [`attend`] | what makes a session a run of a gateway, from outside |
//! | [`channel`] | the ways by which people outside are asked and answer |
//! | [`config`] | the configuration, one file |
//! | [`confirmations`] | what operators said before they were asked |
//! | [`heavy`] | what is better done beside the caller's thread |
//! | [`hook`] | the built-in tools of clients that one does not own |
//! | [`script`] | a scripted agent, for rehearsals and tests |
//! | [`in_the_box`] | the tools that come along, without a configuration |
//! | [`installation`], [`Keys`] | the user's own keys, outside every project |
//! | [`recipe`] | what a run was to do, as digests |
//! | [`OperatorSession`] | what people do at a command line, as a session of its own |
#![deny(missing_docs)]

pub mod attend;
pub mod channel;
pub mod config;
pub mod confirmations;
mod error;
pub mod heavy;
pub mod hook;
mod in_force;
pub mod installation;
mod keys;
mod operator;
pub mod recipe;
mod recorder;
mod recover;
pub mod script;
mod session;
mod surroundings;
mod toolbox;
mod tools;
mod wrap;

pub use config::Config;
pub use error::GuardError;
pub use installation::Installation;
pub use keys::Keys;
pub use operator::{Operator, OperatorSession};
pub use recorder::SessionRecorder;
pub use recover::Abandoned;
pub use session::{
    CallOptions, Counts, DecideError, Holds, OpenError, Outcome, Reply, Resolver, Resolving,
    Session, Setup,
};
pub use surroundings::SystemSurroundings;
pub use toolbox::{Toolbox, in_the_box};
pub use wrap::{WrapError, Wrapped, wrap};
