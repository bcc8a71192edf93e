//! The memory firewall: what was read is not believed.
//!
//! | part | role |
//! |---|---|
//! | [`Firewall`] | intake, adoption, moves, retrieval: the only way to a belief and to a context |
//! | [`authority`] | who may move beliefs: seats that are handed out once, signatures, the clock |
//! | [`extract`] | claims out of a tool's result |
//! | [`provenance`] | where the values of an action's arguments came from |
//! | [`event`], [`fold`] | what is written to the log, and how a store follows it |
//! | [`row`], [`store`] | signed rows, and the places they are kept |
//! | [`database`] | how databases are reached; the gateway's is reached the same way |
//! | [`rule`] | promotion by an operator's policy |
//! | [`reflect`], [`world`] | looking back; the world as it is believed |
//! | [`import`] | memories of other systems |
//!
//! Truth is computed inside. No way into the crate takes one from a caller:
//!
//! ```compile_fail,E0560
//! use lodestar_core::chain::Truth;
//! use lodestar_firewall::Intake;
//!
//! fn forge(honest: Intake<'_>) -> Intake<'_> {
//!     Intake { truth: Truth::Supported, ..honest }
//! }
//! ```
//! ```compile_fail,E0616
//! use lodestar_firewall::Firewall;
//! use lodestar_firewall::store::MemoryStore;
//!
//! fn swap(firewall: &mut Firewall) {
//!     firewall.store = Box::new(MemoryStore::new());
//! }
//! ```
//! A person's authority is a signature that the firewall itself checks; there is nothing to call
//! with a belief and a status:
//!
//! ```compile_fail,E0599
//! use lodestar_core::chain::Truth;
//! use lodestar_core::id::BeliefId;
//! use lodestar_firewall::Firewall;
//!
//! fn promote(firewall: &mut Firewall, belief: BeliefId) {
//!     firewall.set_truth(belief, Truth::Supported);
//! }
//! ```
#![deny(missing_docs)]

pub mod authority;
pub mod database;
pub mod event;
pub mod extract;
mod firewall;
pub mod fold;
pub mod import;
mod judge;
pub mod provenance;
pub mod reflect;
pub mod row;
pub mod rule;
pub mod store;
pub mod text;
pub mod world;

pub use firewall::{
    Audit, AuditRow, Context, ContextBelief, ContextPolicy, Derivation, Dispute, Finding, Firewall,
    FirewallError, ImportBatch, Intake, Left, MAX_CONTEXT, MAX_WORD_AGE, Measurement, OrderRefused,
    Outcome, Plain, Underivable, around, claim_digest, probe_world,
};
pub use judge::{MoveRefused, WhyRefused};
