//! The gate: Cedar policies, the ladder's floor, arbiters, and what a human has to approve.
#![deny(missing_docs)]

mod facts;
mod judgement;

pub use facts::{Agent, Dependency, Facts, ToolShape};
pub use judgement::{
    ErrorKind, EvaluationError, Judgement, Requirement, Signal, Tightened, Tightener,
};
