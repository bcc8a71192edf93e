//! The kernel: what may be called, what the world looks like before, and the one way to call it.
//!
//! | part | role |
//! |---|---|
//! | [`tool`] | what a tool is, and the form in which it is called |
//! | [`native`] | the tools in the box |
#![deny(missing_docs)]

pub mod native;
pub mod stop;
pub mod tool;
