//! The fold over logs: what a belief store holds follows from the sessions of its project.
//!
//! - [`catch_up`]: a store that lags behind, after a crash or a copy, follows what was recorded
//! - [`rebuild`]: a store that was lost or edited is made again, from verified logs
//! - [`follow_alone`]: what one session came to, whatever it lacked
//! - [`examine`]: does a store say what its logs say?
//! - [`Results`]: what the calls of a session returned, and what adopting it means
//! - [`calibration`]: which beliefs were settled, and what was measured of them
//! - [`Defences`]: did a session have all of them?
//! - [`derive`]: does a session follow from its own log, verdict by verdict?
//! - [`terms`]: did a run keep to what its owner registered before?
//!
//! A session counts only if the ledger knows it and its own chain, checkpoint and payloads verify;
//! one that does not is named and passed over.
#![deny(missing_docs)]

pub mod calibration;
mod defences;
mod examine;
mod follow;
mod results;
mod session;
pub mod terms;

pub use defences::Defences;
pub use examine::{StoreFinding, StoreReport, examine};
pub use follow::{Followed, Refused, ReplayError, StoreProgress, catch_up, follow_alone, rebuild};
pub use results::{Adoption, Called, Recorded, Results, Returned, UnreadableBeliefs, extractors};
pub use session::{
    DeriveError, Difference, Otherwise, Patience, Seen, SessionReplay, derive, derive_alone,
    derive_seen,
};
