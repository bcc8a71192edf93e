//! The kernel: what may be called, what the world looks like before, and the one way to call it.
//!
//! | part | role |
//! |---|---|
//! | [`Kernel`] | propose, clear, execute, finish: each takes the one before it |
//! | [`tool`] | what a tool is, and the form in which it is called |
//! | [`command`] | shell command lines, read and graded by their strictest part |
//! | [`grade`], [`registry`] | what the operator says of tools; contracts with floors |
//! | [`measure`] | preconditions, measured by the kernel |
//! | [`protect`] | no tool reaches Lodestar itself |
//! | [`contain`] | what children can reach, enforced by the operating system |
//! | [`image`] | what stood where an act writes, so that it can be undone |
//! | [`halt`], [`stop`] | stopping a session, stopping a call |
//! | [`record`], [`step`] | what is written to the log, and when |
//! | [`native`] | the tools in the box |
#![deny(missing_docs)]

pub mod command;
pub mod contain;
pub mod grade;
pub mod halt;
pub mod image;
mod kernel;
pub mod measure;
pub mod native;
pub mod opening;
pub mod protect;
mod random;
pub mod record;
pub mod registry;
pub mod step;
pub mod stop;
pub mod terse;
pub mod tool;

pub use kernel::{
    ClearError, Clearance, Draft, HeldWorld, Kernel, Limits, NotOfProposal, Parts, ProposeError,
    Proposed, Ran,
};
