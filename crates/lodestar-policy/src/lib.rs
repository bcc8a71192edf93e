//! The gate: Cedar policies, the ladder's floor, arbiters, and what a human has to approve.
#![deny(missing_docs)]

mod annotation;
mod approval;
mod arbiter;
mod check;
pub mod confirmation;
mod explain;
mod facts;
mod finding;
mod gate;
mod judgement;
mod location;
mod policy;
mod reads;
mod request;
mod ruling;
mod schema;
mod settings;
mod slice;
mod suite;
mod text;
mod trail;
mod value;

pub use approval::{
    Answer, ApprovalRequest, Approver, Approvers, ApproversError, Book, Card, Closed, Closing,
    Counted, Denial, Desk, Heard, Hearing, NotSpendable, Refusal, Requests, Signed, Standing,
    Unreadable,
};
pub use arbiter::{Alert, Arbiter, ArbiterError, ArbiterRules, Mode, Setting};
pub use check::check;
pub use explain::explain;
pub use facts::{Agent, Dependency, Facts, ToolShape};
pub use finding::{Finding, Gravity, render};
pub use gate::{Gate, GateError};
pub use judgement::{
    ErrorKind, EvaluationError, Judgement, Requirement, Signal, Tightened, Tightener,
};
pub use location::Location;
pub use policy::{
    MAX_POLICY_LEN, Policy, PolicyError, SIGNATURE_SUFFIX, SignatureState, Unsigned, sign,
    signature_path,
};
pub use ruling::{Denied, Held, Permit, Revoked, Ruling};
pub use schema::{CedarSchema, SchemaError};
pub use settings::parse_duration;
pub use suite::{
    Case, CaseAgent, CaseBelief, CaseError, CaseResult, Ending, Suite, SuiteError, SuiteResult,
    Summary, json_of_toml,
};
pub use trail::{SEQUENCE_STEPS, StepKind, Trail};
