//! The memory firewall: what was read is not believed.
//!
//! Begun, and not yet whole: [`extract`] draws claims out of a tool's result, [`provenance`] tells
//! where the values of an action's arguments came from. Adoption, moves, stores and retrieval are
//! still to come.
#![deny(missing_docs)]

pub mod extract;
pub mod provenance;
