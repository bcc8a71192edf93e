//! Projections of a log: what a session comes to, for people and for other systems.
#![deny(missing_docs)]

pub mod otel;
