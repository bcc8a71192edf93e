//! Actions, what was said of them, and what became of them.

use lodestar_core::chain::{ActionState, OutcomeResult};
use lodestar_core::contract::{BlastRadius, Reversibility};
use lodestar_core::digest::Digest;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::ladder::{Rung, Verdict};
use lodestar_core::name::PolicyId;
use lodestar_core::provenance::ValueKind;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_kernel::contain::State;
use serde::Serialize;

use super::{Events, Said};

/// One action.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action {
    /// Its id.
    pub id: ActionId,
    /// The event that proposed it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// The tool.
    pub tool: String,
    /// The server.
    pub server: String,
    /// Its rung.
    pub level: Rung,
    /// How far it reaches.
    pub blast_radius: BlastRadius,
    /// Whether it can be taken back.
    pub reversibility: Reversibility,
    /// How sensitive what it handles is.
    pub sensitivity: Sensitivity,
    /// Its arguments, value by value.
    pub arguments: Vec<Argument>,
    /// How far it came.
    pub phase: ActionState,
    /// The verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// What people were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// The event that cleared it, and whose word was spent on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<Spent>,
    /// What was kept of what it writes over, so that it can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageKept>,
    /// The act that it undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Undoes>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Why it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejected>,
}

impl Action {
    /// Whether its tool may have been called.
    pub fn may_have_run(&self) -> bool {
        self.cleared.is_some()
    }
}

/// One value among the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
    /// Its beginning; none above the ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What kind of value it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueKind>,
    /// Where it came from.
    pub from: From,
    /// The events with the content that it was read in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_in: Events,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The operator gave it.
    Given,
    /// Lodestar measured it.
    Measured,
    /// It stands in content that was read.
    Read,
    /// Nobody knows.
    Unknown,
    /// Nobody asked.
    Untraced,
}

impl From {
    /// In a word.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Measured => "measured",
            Self::Read => "read",
            Self::Unknown => "unknown",
            Self::Untraced => "not traced",
        }
    }
}

/// The gate's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The event.
    pub seq: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The policies that decided.
    pub policies: Vec<PolicyId>,
    /// Why, in words.
    pub reason: String,
}

/// A clearance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// The event.
    pub seq: u64,
    /// The request whose grants were spent; none for what needed none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestId>,
    /// The grants, by digest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Digest>,
}

/// What was kept of what an act writes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageKept {
    /// The event.
    pub seq: u64,
    /// At how many paths; none where that was redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<u64>,
    /// Whether the act can be undone with it.
    pub undo: CanUndo,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether an act can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CanUndo {
    /// All that it writes over was kept.
    Yes,
    /// Some of it could not be kept.
    No,
    /// What was kept was redacted.
    Redacted,
}

impl CanUndo {
    /// Every answer there is.
    pub const ALL: &[Self] = &[Self::Yes, Self::No, Self::Redacted];
}

/// The act that another undoes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undoes {
    /// The act.
    pub action: ActionId,
    /// The session that it was an act of.
    pub session: String,
}

/// A question to people, and what they said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The request.
    pub id: RequestId,
    /// The event that asked.
    pub seq: u64,
    /// The proposal that it was asked for; others of the same act may have joined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<u64>,
    /// How many people had to agree.
    pub quorum: u32,
    /// Until when.
    pub expires_at: Timestamp,
    /// What they said, in the order in which it was heard.
    pub answers: Vec<Answered>,
    /// How it ended, in words, and the event that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<Said>,
}

/// What somebody said to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// The event.
    pub seq: u64,
    /// What it came to.
    pub kind: AnswerKind,
    /// Who, as the registry names the key; as the statement says where it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// The key that signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The statement, by digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<Digest>,
    /// Why, in their words, or why it does not count.
    pub reason: String,
}

/// What an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A yes that counts.
    Granted,
    /// A yes that was given beforehand and counts.
    Confirmed,
    /// A no that counts.
    Denied,
    /// It does not count.
    Refused,
}

impl AnswerKind {
    /// In a word.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Confirmed => "confirmed beforehand",
            Self::Denied => "denied",
            Self::Refused => "refused",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The event.
    pub seq: u64,
    /// What came of it.
    pub result: OutcomeResult,
    /// How long it took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
    /// What it returned: the event with the observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<u64>,
    /// How far the program was contained that it started, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contained: Option<State>,
    /// What the program did to protected places, and what became of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planted: Vec<String>,
    /// What went wrong, or why nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Why an action did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// The event.
    pub seq: u64,
    /// The kind, as the agent reads it.
    pub kind: String,
    /// In words.
    pub reason: String,
}

/// A call that did not become an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedCall {
    /// The event.
    pub seq: u64,
    /// What was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How sensitive what the event says is.
    pub sensitivity: Sensitivity,
    /// The kind, as the agent reads it.
    pub kind: String,
    /// In words.
    pub reason: String,
}
