//! A verdict with its reasons: the payload of `action.judged@1`.

use std::collections::BTreeSet;
use std::time::Duration;

use lodestar_core::digest::Digest;
use lodestar_core::id::ActionId;
use lodestar_core::ladder::{CedarAnswer, Severity, Verdict};
use lodestar_core::name::PolicyId;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What the gate answered, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The action.
    pub action: ActionId,
    /// The answer.
    pub verdict: Verdict,
    /// What the policies said to both questions.
    pub answer: CedarAnswer,
    /// The policies that decided, in the order of their ids.
    pub policies: Vec<PolicyId>,
    /// What could not be evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<EvaluationError>,
    /// What tightened the policies' answer, in the order it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tightened: Vec<Tightened>,
    /// What the gate's own arbiters saw, also what tightened nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
    /// What sentinels saw that only observe: it changed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Signal>,
    /// What others had seen before the gate answered. It cannot be derived again, only heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Signal>,
    /// What a human's approval needs; there if the verdict is hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<Requirement>,
    /// The policy, by digest.
    pub policy: Digest,
}

/// A judgement, as `action.judged@1` has it: the policy is the session's, and an allow has its usual
/// answer unless it says otherwise.
#[derive(Serialize)]
pub(crate) struct JudgedLine<'a> {
    action: ActionId,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<CedarAnswer>,
    policies: &'a [PolicyId],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [EvaluationError],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tightened: &'a [Tightened],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    signals: &'a [Signal],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    observed: &'a [Signal],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    heard: &'a [Signal],
    #[serde(skip_serializing_if = "Option::is_none")]
    requirement: Option<&'a Requirement>,
}

impl<'a> JudgedLine<'a> {
    pub(crate) fn of(judgement: &'a Judgement) -> Self {
        let is_usual =
            judgement.verdict == Verdict::Allow && judgement.answer == CedarAnswer::PERMITTED;
        Self {
            action: judgement.action,
            verdict: judgement.verdict,
            answer: (!is_usual).then_some(judgement.answer),
            policies: &judgement.policies,
            errors: &judgement.errors,
            tightened: &judgement.tightened,
            signals: &judgement.signals,
            observed: &judgement.observed,
            heard: &judgement.heard,
            requirement: judgement.requirement.as_ref(),
        }
    }
}

/// What tightened a verdict, and from where to where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tightened {
    /// What did.
    pub by: Tightener,
    /// The verdict before.
    pub from: Verdict,
    /// The verdict after.
    pub to: Verdict,
}

/// What can tighten a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tightener {
    /// A policy that could not be evaluated, or arguments of another type than declared.
    EvaluationError,
    /// The ladder.
    Floor,
    /// An arbiter, by its name.
    Arbiter(String),
}

/// Something that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EvaluationError {
    /// What it was.
    pub kind: ErrorKind,
    /// The policy; none where the request itself could not be put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyId>,
    /// In words.
    pub message: String,
}

/// What could not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A permit: at least a hold.
    Permit,
    /// A forbid: a deny.
    Forbid,
    /// An argument that is not of its declared type: at least a hold.
    Argument,
    /// The question itself: a deny.
    Request,
}

impl ErrorKind {
    /// The laxest verdict that still stands after it.
    pub const fn at_least(self) -> Verdict {
        match self {
            Self::Permit | Self::Argument => Verdict::Hold,
            Self::Forbid | Self::Request => Verdict::Deny,
        }
    }
}

/// What an arbiter saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The arbiter's name, such as `untrusted-argument`.
    pub arbiter: String,
    /// How grave.
    pub severity: Severity,
    /// In words, inert.
    pub reason: String,
}

/// What a human's approval needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// Roles, each of which has to be among the approvers'; empty means any registered approver.
    pub roles: BTreeSet<String>,
    /// How many distinct approvers.
    pub quorum: u32,
    /// How long the request stays open, in seconds.
    pub expires_seconds: u64,
}

impl Requirement {
    /// How long the request stays open.
    pub const fn expires(&self) -> Duration {
        Duration::from_secs(self.expires_seconds)
    }

    /// When a request that is opened at this moment is over.
    pub fn expires_from(&self, opened_at: Timestamp) -> Timestamp {
        let expires_at = opened_at.checked_add(self.expires());
        expires_at.unwrap_or(Timestamp::MAX)
    }
}
