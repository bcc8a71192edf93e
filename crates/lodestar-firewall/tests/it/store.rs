//! The stores, through their traits and past them.

mod cluster;
mod conformance;
mod edited;
mod errors;
mod ledger;
mod postgres;
mod processes;
mod same;
mod server;
mod sqlite;

pub(crate) mod rows;
