//! Projections of a log: what a session comes to, for people and for other systems.
//!
//! - [`Examination`]: a log is verified, derived again, and told as a [`Report`](model::Report), or what is
//!   wrong with it is
//! - [`markdown`], [`html`], [`schema`]: forms of a report beside JSON
//! - [`bundle`]: a report's events with their proofs, to be checked elsewhere
//! - [`inert`], [`json`], [`words`], [`calibration`]: text of others made safe to look at; numbers as people read them
#![deny(missing_docs)]

mod answers;
mod bounded;
pub mod bundle;
pub mod calibration;
mod examine;
mod fold;
mod graded;
pub mod html;
pub mod inert;
pub mod json;
mod limits;
pub mod markdown;
pub mod model;
pub mod otel;
pub mod schema;
mod text;
pub mod words;

pub use examine::{Because, Examination, Projection, Refusal, Refused, ReportError, Wrong};
pub use limits::NOT_DEFENDED;
