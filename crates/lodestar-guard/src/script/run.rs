//! Following a script.

use std::fmt;

use lodestar_core::chain::ContentBlock;
use lodestar_core::id::{ActionId, ObservationId};
use lodestar_core::ladder::Verdict;
use serde_json::{Map, Value};

use super::{Act, Ending, Expected, Script, Step, failure_kind};
use crate::error::GuardError;
use crate::session::{Outcome, Reply, Session};

/// What came of a step.
#[derive(Debug, Clone)]
pub enum Done {
    /// A call was made.
    Called {
        /// The tool.
        tool: String,
        /// What came of it.
        reply: Reply,
    },
    /// Content was taken in.
    Observed {
        /// From where.
        source: String,
        /// As which observation.
        observation: ObservationId,
    },
}

/// A step that ended otherwise than it was to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// What was to come of it.
    pub expected: Expected,
    /// What came of it.
    pub found: Ending,
    /// Of which kind.
    pub kind: Option<&'static str>,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |ending: Ending, kind: Option<&str>| match kind {
            Some(kind) => format!("`{ending}` ({kind})"),
            None => format!("`{ending}`"),
        };
        write!(
            f,
            "expected {}, found {}",
            named(self.expected.ending, self.expected.kind.as_deref()),
            named(self.found, self.kind)
        )
    }
}

/// One step, and what came of it.
#[derive(Debug, Clone)]
pub struct StepRun {
    /// Which, from 1.
    pub number: usize,
    /// The line it starts on.
    pub line: usize,
    /// What it is there for.
    pub note: Option<String>,
    /// What came of it.
    pub done: Done,
    /// How it ended otherwise than it was to, if it did.
    pub missed: Option<Missed>,
}

/// A script that was followed.
#[derive(Debug, Clone)]
pub struct ScriptRun {
    /// Step by step.
    pub steps: Vec<StepRun>,
}

impl ScriptRun {
    /// Whether every step ended as it was to.
    pub fn met(&self) -> bool {
        self.missed() == 0
    }

    /// How many steps ended otherwise.
    pub fn missed(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| step.missed.is_some())
            .count()
    }
}

impl StepRun {
    /// The action, where the step became one.
    pub fn action(&self) -> Option<ActionId> {
        match &self.done {
            Done::Called { reply, .. } => reply.action,
            Done::Observed { .. } => None,
        }
    }

    /// Whether the tool was called. It may have been held before: what came of it does not tell.
    pub fn was_run(&self) -> bool {
        match &self.done {
            Done::Called { reply, .. } => !matches!(reply.outcome, Outcome::Refused(_)),
            Done::Observed { .. } => false,
        }
    }

    /// What the gate said, where what came of it tells: that it did not run because somebody has to be
    /// asked, or may not. None where it was not asked, and where the tool was called, by its leave or by
    /// that of people.
    pub fn verdict(&self) -> Option<Verdict> {
        let Done::Called { reply, .. } = &self.done else {
            return None;
        };
        match &reply.outcome {
            Outcome::Returned(_) | Outcome::Failed(_) => None,
            Outcome::Refused(_) => reply.verdict,
        }
    }
}

impl Script {
    /// Takes every step in its order; a step that is refused is an answer, and the next one follows.
    /// `told` hears of each as soon as it is over.
    pub async fn follow(
        &self,
        session: &Session,
        mut told: impl FnMut(&StepRun),
    ) -> Result<ScriptRun, GuardError> {
        let mut steps = Vec::with_capacity(self.steps.len());
        for (step, number) in self.steps.iter().zip(1..) {
            let (done, missed) = take(step, session).await?;
            let run = StepRun {
                number,
                line: step.line,
                note: step.note.clone(),
                done,
                missed,
            };
            told(&run);
            steps.push(run);
        }
        Ok(ScriptRun { steps })
    }
}

async fn take(step: &Step, session: &Session) -> Result<(Done, Option<Missed>), GuardError> {
    match &step.act {
        Act::Call { tool, args, expect } => {
            let reply = session.call(tool, Value::Object(args.clone())).await?;
            let missed = expect
                .as_ref()
                .and_then(|expected| compare(expected, &reply));
            let tool = tool.clone();
            Ok((Done::Called { tool, reply }, missed))
        }
        Act::Observe { source, text } => {
            let content = vec![ContentBlock::Text {
                text: text.clone(),
                rest: Map::new(),
            }];
            let observation = session.observe(source, content).await?;
            let source = source.clone();
            Ok((
                Done::Observed {
                    source,
                    observation,
                },
                None,
            ))
        }
    }
}

fn compare(expected: &Expected, reply: &Reply) -> Option<Missed> {
    let (found, kind) = match &reply.outcome {
        Outcome::Returned(_) => (Ending::Returned, None),
        Outcome::Failed(error) => (Ending::Failed, Some(failure_kind(error))),
        Outcome::Refused(why) => (Ending::Refused, Some(why.kind())),
    };
    let as_expected =
        found == expected.ending && (expected.kind.is_none() || expected.kind.as_deref() == kind);
    (!as_expected).then(|| Missed {
        expected: expected.clone(),
        found,
        kind,
    })
}
