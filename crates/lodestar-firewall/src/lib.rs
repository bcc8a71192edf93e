//! The memory firewall: what was read is not believed.
#![deny(missing_docs)]

pub mod extract;
pub mod provenance;
