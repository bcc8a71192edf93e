//! What a call gives back.

use lodestar_core::chain::ContentBlock;
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Verdict;
use lodestar_kernel::record::Rejection;
use lodestar_kernel::tool::{Output, ToolError};

/// What came of one call.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The action; none where it did not become one.
    pub action: Option<ActionId>,
    /// The event to look at: the last that the call wrote.
    pub seq: Option<u64>,
    /// What the gate said, where it was asked.
    pub verdict: Option<Verdict>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a call. A refusal is an answer, not an error: the agent reads it and goes on.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The tool returned.
    Returned(Output),
    /// The tool failed.
    Failed(ToolError),
    /// It did not run.
    Refused(Rejection),
}

impl Reply {
    /// Whether the tool was called and returned.
    pub fn ran(&self) -> bool {
        matches!(self.outcome, Outcome::Returned(_))
    }

    /// Why it did not run.
    pub fn refusal(&self) -> Option<&Rejection> {
        match &self.outcome {
            Outcome::Refused(why) => Some(why),
            Outcome::Returned(_) | Outcome::Failed(_) => None,
        }
    }

    /// What the agent is told, as text: what came back, or why nothing did and what it may do.
    pub fn for_agent(&self) -> String {
        match &self.outcome {
            Outcome::Returned(output) => joined(&output.content),
            Outcome::Failed(error) => format!("The call failed: {error}"),
            Outcome::Refused(why) => {
                // Some reasons are whole sentences, and others are parts of one.
                let said = why.to_string();
                let said = said.trim_end_matches('.');
                format!("Not run ({}): {said}. {}", why.kind(), advice(why))
            }
        }
    }
}

fn joined(content: &[ContentBlock]) -> String {
    let texts = content.iter().map(|block| match block.text() {
        Some(text) => text.to_owned(),
        None => block.to_wire().to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What an agent may sensibly do about a refusal.
fn advice(why: &Rejection) -> &'static str {
    match why {
        Rejection::PolicyDenied { .. } | Rejection::ReachesLodestar { .. } => {
            "Do not repeat it; find another way or tell the user."
        }
        Rejection::ApprovalRequired { .. } | Rejection::ApprovalTimeout { .. } => {
            "A human decides: tell the user what waits, and that `lodestar approve list` shows it. Go on with other \
             work; once it is approved, make exactly the same call again."
        }
        Rejection::ApprovalDenied { .. } => "Do not repeat it; tell the user.",
        Rejection::PreconditionFailed { .. } => {
            "Look at the world again, then propose the call anew."
        }
        Rejection::InvalidArguments { .. } => "Correct the arguments and call again.",
        Rejection::DefinitionDrift { .. } => {
            "Do not call it again; tell the user that the tool has changed."
        }
        Rejection::Irreversible { .. } => {
            "Do not repeat it; leave that file as it is, or tell the user, who can grade the tool L4 and decide."
        }
        Rejection::ToolNotAdvertised => "Use one of the tools that are listed.",
        Rejection::Stopped => "Nothing happened; go on as you were told.",
        Rejection::Halted | Rejection::SessionClosed | Rejection::NotRecorded { .. } => {
            "Stop here and tell the user."
        }
    }
}
