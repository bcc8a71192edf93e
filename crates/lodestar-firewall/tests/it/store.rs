//! The stores, through their traits and past them.

mod conformance;
mod edited;
mod errors;
mod processes;
mod same;
mod sqlite;

pub(crate) mod rows;
