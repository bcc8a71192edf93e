//! What a report says, as data. The renderers add no statement of their own; the JSON form is this, field
//! by field, and [`schema`](crate::schema) describes it.
//!
//! Text that others wrote stands here as it was written, but bounded with a mark of how much is left out:
//! whoever shows it makes it inert.

mod action;
mod belief;
mod cited;
mod execution;
mod integrity;
mod signals;

use lodestar_core::digest::Digest;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_log::verify::SessionState;
use serde::Serialize;

pub use action::{
    Action, AnswerKind, Answered, Argument, CanUndo, Ended, From, ImageKept, Judged, RefusedCall,
    Rejected, Request, Spent, Undoes,
};
pub use belief::{Belief, Beliefs, Decision, Ground, Move, Tally};
pub use execution::{Execution, Fact};
pub use integrity::{Integrity, KeyUsed, Recovered, Redaction};
pub(crate) use signals::in_words;
pub use signals::{Alert, Calibration, CalibrationInForce, Contained, Drift, ServerNote};

/// What a JSON report says it is.
pub const FORMAT: &str = "lodestar.report/1";

/// The numbers of events that a statement rests on.
pub type Events = Vec<u64>;

/// A session, for somebody who has to say yes or no.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: &'static str,
    /// Content that is more sensitive than this is not in here.
    pub ceiling: Sensitivity,
    /// Which session.
    pub session: Session,
    /// What an auditor asks first.
    pub answers: Answers,
    /// How much there was.
    pub counts: Counts,
    /// Every action, in the order in which they were proposed.
    pub actions: Vec<Action>,
    /// What people were asked, and what they said.
    pub requests: Vec<Request>,
    /// Calls that did not become actions.
    pub refused_calls: Vec<RefusedCall>,
    /// Statements that did not count, and results in somebody else's name.
    pub forged: Vec<Forged>,
    /// What is believed.
    pub beliefs: Beliefs,
    /// Decisions that were declared, and those that rest on something.
    pub decisions: Vec<Decision>,
    /// Content that somebody has to be wary of, and that the log keeps as it came.
    pub hostile: Vec<Hostile>,
    /// What sentinels saw.
    pub alerts: Vec<Alert>,
    /// Tools that are not what they were.
    pub drift: Vec<Drift>,
    /// How servers were contained when they started, and which failed.
    pub servers: Vec<ServerNote>,
    /// Calibrations that were recorded.
    pub calibrations: Vec<Calibration>,
    /// What a gateway said of the run that it was; there where it was graded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// How the log stands.
    pub integrity: Integrity,
    /// What this report does not say.
    pub limits: Vec<Limit>,
}

/// The session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Session {
    /// The project.
    pub project: ProjectId,
    /// Its id.
    pub id: SessionId,
    /// Whether it is being written, open or closed.
    pub state: SessionState,
    /// What it was opened for, as it says.
    pub purpose: String,
    /// Who acted.
    pub actor: String,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When its last event was written.
    pub last_at: Timestamp,
    /// Its policy; none for a session that has no actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyInForce>,
    /// The calibration that it was opened under; there where a sentinel looks at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationInForce>,
    /// How sensitive its content is by default.
    pub sensitivity: Sensitivity,
    /// What the operator stated as the task.
    pub tasks: Vec<Said>,
    /// Who halted it, and why.
    pub halted: Vec<Said>,
    /// How it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<Said>,
}

/// The policy that the verdicts rest on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyInForce {
    /// By digest.
    pub digest: Digest,
    /// `signed`, `unsigned` or `preset`.
    pub signature: &'static str,
    /// The key that signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How many approvers are registered.
    pub approvers: u64,
    /// How many tools there are.
    pub tools: u64,
    /// Tools that nobody graded.
    pub ungraded: Vec<String>,
    /// The event.
    pub seq: u64,
}

/// Something that somebody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The event.
    pub seq: u64,
    /// In their words.
    pub text: String,
}

/// The four answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Did untrusted input become trusted?
    pub untrusted_became_trusted: Answer,
    /// Did anything irreversible run without approval?
    pub irreversible_without_approval: Answer,
    /// Is the log intact?
    pub log_intact: Answer,
    /// Which execution trust level?
    pub execution_trust: Answer,
}

impl Answers {
    /// All four, in the order in which they are asked.
    pub fn all(&self) -> [&Answer; 4] {
        [
            &self.untrusted_became_trusted,
            &self.irreversible_without_approval,
            &self.log_intact,
            &self.execution_trust,
        ]
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What is asked.
    pub question: &'static str,
    /// In a word.
    pub answer: Word,
    /// What it comes to for whoever has to decide.
    pub standing: Standing,
    /// Why.
    pub because: String,
    /// The events that prove it.
    pub events: Events,
}

/// An answer in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Nobody can.
    CannotTell,
    /// There is none.
    None,
    /// A level of the execution ladder, by a gateway's word.
    #[serde(untagged)]
    Level(ExecutionLevel),
}

impl Word {
    /// As people read it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::CannotTell => "cannot tell",
            Self::None => "none",
            Self::Level(level) => level.as_str(),
        }
    }
}

/// Whether an answer is the one that is hoped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is.
    Good,
    /// It is not.
    Bad,
    /// It is neither.
    Open,
}

/// How much there was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Actions that were proposed.
    pub proposed: u64,
    /// Of them, by verdict.
    pub allowed: u64,
    /// Held.
    pub held: u64,
    /// Denied.
    pub denied: u64,
    /// Cleared, so that their tool may have been called.
    pub cleared: u64,
    /// Completed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Called, and nobody saw the end.
    pub unknown: u64,
    /// Not run.
    pub rejected: u64,
    /// What was read or returned.
    pub observations: u64,
    /// Beliefs that were adopted.
    pub beliefs: u64,
    /// Decisions that nobody declared and that rest on nothing that is known.
    pub groundless_decisions: u64,
}

/// Somebody spoke in another's name, or a genuine word did not count for what it met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forged {
    /// The event that kept it.
    pub seq: u64,
    /// What it was to be.
    pub what: ForgedKind,
    /// For which action it was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<u64>,
    /// How sensitive what the event says is.
    pub sensitivity: Sensitivity,
    /// The first check that failed.
    pub reason: String,
}

/// What did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgedKind {
    /// Somebody's approval.
    Approval,
    /// Somebody's confirmation.
    Confirmation,
    /// An operator's genuine word against the act: not forged.
    Declined,
    /// A genuine confirmation of another act, spent before, or out of its time: not forged.
    Unfitting,
    /// Lodestar's own word, in a result of a tool.
    LodestarsWord,
}

impl ForgedKind {
    /// Whether somebody spoke in another's name.
    pub fn is_forged(self) -> bool {
        !matches!(self, Self::Declined | Self::Unfitting)
    }

    /// As people read it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Approval => "an approval that does not count",
            Self::Confirmation => "a confirmation that does not count",
            Self::Declined => "an operator's genuine word against it",
            Self::Unfitting => "a genuine confirmation that does not fit",
            Self::LodestarsWord => "a result that speaks in Lodestar's name",
        }
    }
}

/// Content to be wary of. It stands in the log as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hostile {
    /// The event that keeps it.
    pub seq: u64,
    /// Why it is here.
    pub because: Vec<Wary>,
    /// Where it came from.
    pub source: String,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// SHA-256 of its text; none above the ceiling, where somebody could guess it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// How it begins; none above the ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
}

/// Why somebody has to be wary of content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Wary {
    /// Calls that were held or did not run took values from it.
    FedCalls {
        /// Their proposals.
        events: Events,
    },
    /// It has characters that act instead of being seen.
    HiddenCharacters {
        /// How many.
        count: u64,
    },
    /// What it says was set apart.
    SetApart {
        /// By these events.
        events: Events,
    },
    /// It speaks in Lodestar's name.
    Forges,
    /// It is the definition of a tool that is not the pinned one.
    DriftedDefinition,
}

/// Something that this report does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// In words.
    pub limit: String,
    /// The events that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Events,
}
