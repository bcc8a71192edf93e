//! What is asked and answered, as it is written: both sides of the routes read and write these types, and
//! the API's document is made from them.
//!
//! What is asked has no field that is not known here. What is answered may gain fields, so a client passes
//! over those that it does not know.

mod answered;
mod asked;

pub use answered::*;
pub use asked::*;
