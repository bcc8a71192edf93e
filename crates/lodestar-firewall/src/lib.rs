//! The memory firewall: what was read is not believed.
//!
//! Begun, and not yet whole: [`extract`] draws claims out of a tool's result, [`provenance`] tells
//! where the values of an action's arguments came from. Adoption, moves, stores and retrieval are
//! still to come.
#![deny(missing_docs)]

pub mod event;
pub mod extract;
pub mod fold;
pub mod import;
pub mod provenance;
pub mod row;
pub mod rule;
pub mod store;
pub mod text;
