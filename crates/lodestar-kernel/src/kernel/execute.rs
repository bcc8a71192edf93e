//! Executing: the one place where a tool is called.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestar_core::chain::OutcomeResult;
use lodestar_core::event::EventType;
use lodestar_core::id::{ActionId, ObservationId};
use lodestar_log::{AppendError, Receipt};
use serde_json::{Map, Value};

use super::unended::{Reached, Unended};
use super::{Clearance, Kernel};
use crate::image::{Sight, State};
use crate::record::Proposal;
use crate::step::Step;
use crate::stop::Stop;
use crate::terse::FinishedLine;
use crate::tool::{Beside, Call, Effect, Output, Progress, Tool, ToolError};

/// How long a call may take, and what can stop it earlier.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long.
    pub deadline: Duration,
    /// The caller's own switch.
    pub stop: Stop,
    /// Whoever wants to know how far it is.
    pub progress: Option<Arc<dyn Progress>>,
    /// What the tool is told beside its arguments.
    pub beside: Option<Beside>,
}

/// Longest a call takes where nobody says otherwise: test suites run for minutes, and what hangs
/// should not hang for an hour.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(300);

/// Longest deadline there is: a bound that keeps the clock from overflowing.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// How long a tool that was told to stop may take to say so.
const GRACE: Duration = Duration::from_secs(2);

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: DEFAULT_DEADLINE,
            stop: Stop::new(),
            progress: None,
            beside: None,
        }
    }
}

/// A tool was called; what came of it is not yet in the log.
#[derive(Debug)]
#[must_use = "until it is finished, the log does not say what came of the call"]
pub struct Ran {
    proposal: Proposal,
    unended: Unended,
    duration: Duration,
    result: Result<Output, ToolError>,
    left: Vec<State>,
}

impl Ran {
    /// The action.
    pub fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// The event that recorded its clearance.
    pub fn cleared(&self) -> u64 {
        self.unended.cleared()
    }

    /// What came back.
    pub fn result(&self) -> Result<&Output, &ToolError> {
        self.result.as_ref()
    }

    /// Its action's id.
    pub fn action(&self) -> ActionId {
        self.proposal.action.id
    }
}

impl Kernel {
    /// Calls the tool. Whatever it does, this returns: with its result, or when the deadline passes,
    /// the caller stops it or the session is halted.
    pub async fn execute(&self, clearance: Clearance, limits: &Limits) -> Ran {
        let Clearance {
            proposal,
            entry,
            mut unended,
            sight,
            ..
        } = clearance;
        unended.reached = Reached::Called;
        let began = Instant::now();
        let deadline = began + limits.deadline.min(LONGEST);
        let arguments = &proposal.action.arguments;
        let result = self.run(entry.tool(), arguments, deadline, limits).await;
        unended.reached = Reached::Returned;
        self.steps.made(Step::Returned);
        let duration = began.elapsed();
        let left = match (&result, sight) {
            // What was started may still go on: what is seen now is not what it leaves.
            (Err(error), _) if error.effect == Effect::Unknown => Vec::new(),
            (_, None) => Vec::new(),
            (_, Some(sight)) => self.left(sight).await,
        };
        Ran {
            duration,
            unended,
            proposal,
            result,
            left,
        }
    }

    /// What stands at the paths of its image, now that the call is over.
    async fn left(&self, sight: Sight) -> Vec<State> {
        let looking = tokio::task::spawn_blocking(move || sight.look());
        // Whoever undoes it is told that nobody saw it.
        looking.await.unwrap_or_default()
    }

    /// Runs the call to its end, or until it has to stop.
    async fn run(
        &self,
        tool: &dyn Tool,
        arguments: &Map<String, Value>,
        deadline: Instant,
        limits: &Limits,
    ) -> Result<Output, ToolError> {
        // Whatever was thrown before this moment keeps the tool from starting at all.
        if limits.stop.is_stopped() || self.halt.is_halted() {
            return Err(ToolError::stopped(Effect::None));
        }
        if Instant::now() >= deadline {
            return Err(ToolError::deadline(Effect::None));
        }
        // The tool's own switch: thrown by the caller's, by a halt, and when the time is over.
        let stop = Stop::new();
        let call = Call::new(arguments, &stop, deadline)
            .with(limits.progress.clone(), limits.beside.clone())
            .keeping(self.protected.out_of_reach(), self.protected.hosting());
        let mut calling = std::pin::pin!(guarded(async move { tool.call(call).await }));
        let late = tokio::time::sleep_until(deadline.into());
        let given_up = tokio::select! {
            biased;
            result = &mut calling => return result,
            () = limits.stop.stopped() => ToolError::stopped(Effect::Unknown),
            () = self.halt.halted() => ToolError::stopped(Effect::Unknown),
            () = late => ToolError::deadline(Effect::Unknown),
        };
        stop.stop();
        // A tool that listens can say what it knows of its effect.
        let grace = tokio::time::timeout(GRACE, calling).await;
        grace.unwrap_or(Err(given_up))
    }

    /// Records what came of it, with what was observed.
    pub fn finish(
        &self,
        mut ran: Ran,
        observations: Vec<ObservationId>,
    ) -> Result<(Receipt, Result<Output, ToolError>), AppendError> {
        let (kind, result) = match &ran.result {
            Ok(output) if output.is_error => (EventType::ACTION_COMPLETED, OutcomeResult::Failure),
            Ok(_) => (EventType::ACTION_COMPLETED, OutcomeResult::Success),
            Err(error) => match error.effect {
                Effect::None => (EventType::ACTION_FAILED, OutcomeResult::Failure),
                Effect::Unknown => (EventType::ACTION_FAILED, OutcomeResult::Unknown),
            },
        };
        let line = FinishedLine::new(
            kind,
            ran.proposal.action.id,
            result,
            ran.duration,
            &observations,
            ran.result.as_ref().err(),
        )
        .leaving(&ran.left);
        let receipt = self
            .log
            .append(kind, self.actor(), &[ran.cleared()], &line)?;
        ran.unended.ended();
        self.steps.made(Step::Finished);
        Ok((receipt, ran.result))
    }
}

/// A tool that panics has failed; the session goes on.
async fn guarded<F>(calling: F) -> Result<Output, ToolError>
where
    F: Future<Output = Result<Output, ToolError>>,
{
    let mut calling = std::pin::pin!(calling);
    std::future::poll_fn(move |context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| calling.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            std::task::Poll::Ready(Err(ToolError::failed(Effect::Unknown, "the tool panicked")))
        })
    })
    .await
}
