//! One call, end to end.

use std::sync::Arc;
use std::time::Duration;

use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
use lodestar_core::contract::arguments::{self, Size};
use lodestar_core::event::EventType;
use lodestar_core::id::{DecisionId, InvocationId, ObservationId};
use lodestar_core::ladder::{Severity, Verdict};
use lodestar_core::name::ToolName;
use lodestar_core::provenance::{ArgumentProvenance, Label};
use lodestar_core::time::Timestamp;
use lodestar_kernel::record::Rejection;
use lodestar_kernel::registry::Entry;
use lodestar_kernel::step::Step;
use lodestar_kernel::stop::Stop;
use lodestar_kernel::terse::ObservedLine;
use lodestar_kernel::tool::{Beside, Output, Progress, ToolError};
use lodestar_kernel::{ClearError, Draft, HeldWorld, Limits, ProposeError, Proposed, Ran};
use lodestar_log::Receipt;
use lodestar_policy::{Closing, Denied, Dependency, Permit, Ruling, Signal, explain};
use serde_json::{Map, Value};

use super::memory::Taken;
use super::reply::{Outcome, Reply};
use super::{Counted, Open, Session};
use crate::error::GuardError;
use crate::heavy::{aside, is_heavy};

/// How one call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The decision it carries out; without one, a decision is synthesised from where its arguments
    /// came from.
    pub decision: Option<DecisionId>,
    /// How long it may take; the session's own limit where nothing is said.
    pub deadline: Option<Duration>,
    /// A switch that stops it early.
    pub stop: Stop,
    /// What monitors saw before the gate answers. It can only tighten.
    pub signals: Vec<Signal>,
    /// Whoever wants to know how far it is.
    pub progress: Option<Arc<dyn Progress>>,
    /// What the tool is told beside its arguments.
    pub beside: Option<Beside>,
}

/// Most beliefs that a synthesised decision names. A call whose arguments touch more is held: nobody
/// could say on what it rests.
const MAX_DEPENDENCIES: usize = 512;

/// Most that the arguments of one call may take: a large file, written whole.
const MAX_BYTES: usize = 4 << 20;

/// Most texts and names in the arguments of one call: each is looked at for where it leads and where it
/// came from.
const MAX_TEXTS: usize = 10_000;

/// How deep arguments may nest: records and cards hold them some levels further down, and have a limit
/// of their own.
const MAX_NESTING: usize = 64;

/// What a call carries out, and what that rests on.
pub(super) struct Ground {
    /// The decision, and the event that recorded it; none where it is that of making the call.
    pub(super) decision: Option<(DecisionId, u64)>,
    pub(super) dependencies: Vec<Dependency>,
    /// How many beliefs more it rests on than are named.
    pub(super) left_out: usize,
}

impl Ground {
    /// What is not named was not looked at, and counts as the worst that can be looked at.
    fn overflow(&self) -> Option<Signal> {
        (self.left_out > 0).then(|| Signal {
            arbiter: "too-many-dependencies".to_owned(),
            severity: Severity::Warning,
            reason: format!(
                "the call rests on {} beliefs more than are named",
                self.left_out
            ),
        })
    }
}

impl Session {
    /// Calls a tool, if the gate lets it.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Reply, GuardError> {
        self.call_with(tool, arguments, CallOptions::default())
            .await
    }

    /// As [`call`](Self::call), with more said about it.
    pub async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<Reply, GuardError> {
        // Held to the end of the call, so that a session is closed when its calls are over.
        let running = self.inner.running.read().await;
        if *running == Open::No {
            return Ok(refused(None, None, Rejection::SessionClosed));
        }
        Counted::add(&self.inner.counts.calls);
        let reply = self.run(tool, arguments, options).await?;
        let counter = match reply.outcome {
            Outcome::Refused(_) => &self.inner.counts.refused,
            Outcome::Returned(_) | Outcome::Failed(_) => &self.inner.counts.ran,
        };
        Counted::add(counter);
        Ok(reply)
    }

    async fn run(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<Reply, GuardError> {
        self.note_halt()?;
        let (draft, seen) = match self.draft(tool, arguments, options.decision).await? {
            Ok(drafted) => drafted,
            Err(reply) => return Ok(reply),
        };
        let mut signals = options.signals;
        signals.extend(seen);
        let proposed = match self.propose(draft).await? {
            Ok(proposed) => proposed,
            Err(why) => return Ok(refused(None, None, why)),
        };
        let (inner, facts) = (&self.inner, proposed.facts());
        let ruling = inner
            .gate
            .rule(&facts, &signals, &inner.log, &inner.actor, proposed.seq())?;
        inner.kernel.steps().made(Step::Judged);
        let limits = Limits {
            deadline: options.deadline.unwrap_or(inner.deadline),
            stop: options.stop,
            progress: options.progress,
            beside: options.beside,
        };
        match ruling {
            Ruling::Allowed(permit) => self.go(proposed, permit, None, &limits).await,
            Ruling::Denied(denied) => self.denied(&proposed, &denied),
            Ruling::Held(held) => {
                Counted::add(&inner.counts.held);
                self.hold(proposed, held, &limits).await
            }
        }
    }

    /// Clears and executes, then takes in what came of it.
    pub(super) async fn go(
        &self,
        proposed: Proposed,
        permit: Permit,
        held: Option<&HeldWorld>,
        limits: &Limits,
    ) -> Result<Reply, GuardError> {
        let kernel = &self.inner.kernel;
        let verdict = match held {
            Some(_) => Verdict::Hold,
            None => Verdict::Allow,
        };
        let (action, seq) = (proposed.proposal().action.id, proposed.seq());
        let (entry, request) = (Arc::clone(proposed.entry()), permit.request());
        let clearance = match kernel.clear(proposed, permit, held, &limits.stop).await {
            Ok(clearance) => clearance,
            Err(ClearError::Rejected(why)) => {
                if why == Rejection::Halted {
                    self.note_halt()?;
                }
                if let Some(request) = request {
                    self.not_cleared(request, &why).await?;
                }
                return Ok(refused(Some(action), Some(seq), why));
            }
            Err(ClearError::Log(problem)) => return Err(problem.into()),
            Err(ClearError::OtherAction) => return Err(GuardError::OtherAction),
        };
        let ran = match request {
            Some(request) => {
                // Calls of the same act have to ask anew, and need not wait for the end of this one.
                self.office().ring(request);
                // The act does not wait for whoever is told: the world was looked at just now.
                let telling = self.withdraw(request, Closing::Spent);
                tokio::join!(kernel.execute(clearance, limits), telling).0
            }
            None => {
                self.tell_of(clearance.proposal());
                kernel.execute(clearance, limits).await
            }
        };
        let (receipt, result) = match ran.result().map(size_of_output) {
            Ok(size) if is_heavy(size) => {
                let session = self.clone();
                let observing = aside(move || {
                    let taken = session.observed(&ran, &entry)?;
                    Ok::<_, GuardError>((ran, taken))
                });
                let (ran, taken) = observing.await??;
                self.finish(ran, taken, Heft::Heavy).await?
            }
            _ => {
                let taken = self.observed(&ran, &entry)?;
                self.finish(ran, taken, Heft::Light).await?
            }
        };
        Ok(Reply {
            action: Some(action),
            seq: Some(receipt.seq()),
            verdict: Some(verdict),
            outcome: match result {
                Ok(output) => Outcome::Returned(output),
                Err(error) => Outcome::Failed(error),
            },
        })
    }

    fn denied(&self, proposed: &Proposed, denied: &Denied) -> Result<Reply, GuardError> {
        let action = &proposed.proposal().action;
        let reason = match &proposed.proposal().reaches {
            Some(reach) => reach.to_string(),
            None => explain(denied.judgement()),
        };
        let why = Rejection::PolicyDenied { reason };
        let parents = [proposed.seq(), denied.seq()];
        let kernel = &self.inner.kernel;
        let receipt = kernel.reject(Some(action.id), Some(&action.tool), why.clone(), &parents)?;
        Ok(refused(Some(action.id), Some(receipt.seq()), why))
    }

    /// A call that cannot even be proposed; the log says so.
    fn invalid(&self, tool: Option<&ToolName>, reason: String) -> Result<Reply, GuardError> {
        let why = Rejection::InvalidArguments { reason };
        let kernel = &self.inner.kernel;
        let receipt = kernel.reject(None, tool, why.clone(), &[])?;
        Ok(refused(None, Some(receipt.seq()), why))
    }

    /// Settles tool, arguments, provenance and decision.
    async fn draft(
        &self,
        tool: &str,
        arguments: Value,
        decision: Option<DecisionId>,
    ) -> Result<Result<(Draft, Option<Signal>), Reply>, GuardError> {
        let tool = match ToolName::new(tool) {
            Ok(tool) => tool,
            Err(problem) => {
                let reason = format!("this is no tool's name: {problem}");
                return self.invalid(None, reason).map(Err);
            }
        };
        let Value::Object(arguments) = arguments else {
            let reason = "the arguments of a call are an object".to_owned();
            return self.invalid(Some(&tool), reason).map(Err);
        };
        let size = arguments::size(&arguments);
        if let Some(reason) = too_large(size) {
            return self.invalid(Some(&tool), reason).map(Err);
        }
        let (arguments, provenance) = if is_heavy(size.bytes) {
            let session = self.clone();
            aside(move || session.explain(arguments)).await?
        } else {
            self.explain(arguments)
        };
        let ground = match decision {
            Some(decision) => self.decided(decision).await?,
            None => self.synthesise(&provenance).await?,
        };
        self.inner.kernel.steps().made(Step::Decided);
        let seen = ground.overflow();
        let draft = Draft {
            tool,
            arguments,
            decision: ground.decision.map(|(decision, _)| decision),
            decided: ground.decision.map(|(_, seq)| seq),
            provenance,
            dependencies: ground.dependencies,
        };
        Ok(Ok((draft, seen)))
    }

    fn explain(
        &self,
        arguments: Map<String, Value>,
    ) -> (Map<String, Value>, Vec<ArgumentProvenance>) {
        let arguments = Value::Object(arguments);
        let index = &self.inner.provenance;
        let provenance = index.with(|known| known.explain(&arguments));
        let Value::Object(arguments) = arguments else {
            unreachable!("it was made an object above")
        };
        (arguments, provenance)
    }

    /// The beliefs behind what was read, and where they stand.
    async fn synthesise(&self, provenance: &[ArgumentProvenance]) -> Result<Ground, GuardError> {
        let read = provenance.iter().flat_map(|argument| {
            let inside = argument.inside.iter().map(|inside| &inside.label);
            std::iter::once(&argument.label).chain(inside)
        });
        let observations: Vec<ObservationId> = read
            .filter_map(|label| match label {
                Label::Read { observations, .. } => Some(observations),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        let mut beliefs = self.inner.memory.of_observations(&observations).await?;
        let left_out = beliefs.len().saturating_sub(MAX_DEPENDENCIES);
        beliefs.truncate(MAX_DEPENDENCIES);
        // What does not count any more is left out; the rest still explains the call.
        let standings = self.inner.memory.standings(beliefs).await?;
        let dependencies: Vec<_> = standings.into_iter().flatten().collect();
        Ok(Ground {
            decision: None,
            dependencies,
            left_out,
        })
    }

    async fn propose(&self, draft: Draft) -> Result<Result<Proposed, Rejection>, GuardError> {
        let kernel = &self.inner.kernel;
        let measures = kernel.registry().get(&draft.tool).is_some_and(|entry| {
            let preconditions = &entry.record().contract.preconditions;
            preconditions.iter().len() > 0
        });
        // Measuring may hash a file or start git: not on the caller's thread.
        let proposed = if measures || is_heavy(arguments::size(&draft.arguments).bytes) {
            let kernel = Arc::clone(kernel);
            aside(move || kernel.propose(draft)).await?
        } else {
            kernel.propose(draft)
        };
        match proposed {
            Ok(proposed) => Ok(Ok(proposed)),
            Err(ProposeError::Rejected(why)) => Ok(Err(why)),
            Err(ProposeError::Log(problem)) => Err(problem.into()),
        }
    }

    /// Records what came back, verbatim; nothing did where the tool failed.
    fn observed(&self, ran: &Ran, entry: &Entry) -> Result<Option<Taken>, GuardError> {
        let Ok(output) = ran.result() else {
            return Ok(None);
        };
        let (inner, action) = (&self.inner, &ran.proposal().action);
        let id = ObservationId::of_action(action.id);
        let mut observation = Observation {
            id,
            tool: action.tool.clone(),
            invocation_id: InvocationId::of_action(action.id),
            // The time of its line counts.
            captured_at: Timestamp::MIN,
            session: self.id().clone(),
            project: inner.log.dir().project().clone(),
            actor: inner.actor.clone(),
            trust: ObservationTrust::Raw,
            sensitivity: inner.sensitivity.under(action.contract.data_sensitivity),
            content: output.content.clone(),
            rest: output.rest.clone(),
        };
        let kind = EventType::OBSERVATION_RECORDED;
        let parents = [ran.cleared()];
        let line = ObservedLine::of(action.id, &observation);
        let receipt = inner.log.append(kind, &inner.actor, &parents, &line)?;
        observation.captured_at = receipt.time();
        inner.kernel.steps().made(Step::Observed);
        Ok(Some(Taken {
            observation: Arc::new(observation),
            server: action.server.clone(),
            arguments: Value::Object(action.arguments.clone()),
            definition: ran.proposal().definition,
            reviewed: entry.record().is_graded(),
            is_error: output.is_error,
            scope: inner.scope.clone(),
            recorded: Some(receipt.seq()),
        }))
    }

    /// Records the end of a call, and lets the firewall make of its result what it is: a rumour. What is
    /// believed of it stands behind the end of its call in the log, and is not waited for.
    async fn finish(
        &self,
        ran: Ran,
        taken: Option<Taken>,
        heft: Heft,
    ) -> Result<(Receipt, Result<Output, ToolError>), GuardError> {
        let (kernel, memory) = (&self.inner.kernel, &self.inner.memory);
        let Some(taken) = taken else {
            return Ok(kernel.finish(ran, Vec::new())?);
        };
        memory.room().await?;
        let observation = Arc::clone(&taken.observation);
        // From here to the end nothing waits: whoever gives up the call leaves no result behind that has
        // ended and is never taken in.
        let finished = kernel.finish(ran, vec![observation.id])?;
        let put = memory.put(taken);
        // Last, so that whoever finds it in the index finds what is believed of it too.
        match heft {
            Heft::Light => self.note_reading(observation),
            Heft::Heavy => {
                let session = self.clone();
                aside(move || session.inner.provenance.add_in_pieces(&observation)).await?;
            }
        }
        put.settled(memory).await?;
        Ok(finished)
    }

    /// The index knows what was read, so that it can say later where a value came from.
    pub(super) fn note_reading(&self, observation: Arc<Observation>) {
        if self.inner.provenance.add(observation) {
            // Not a handle of its own: it keeps no session alive.
            let session = Arc::downgrade(&self.inner);
            tokio::spawn(async move {
                // On one thread the answer is on its way by then.
                tokio::task::yield_now().await;
                if let Some(inner) = session.upgrade() {
                    inner.provenance.look_through();
                }
            });
        }
    }
}

/// What is wrong with arguments of this size.
fn too_large(size: Size) -> Option<String> {
    let Size {
        bytes,
        texts,
        depth,
    } = size;
    if bytes > MAX_BYTES {
        Some(format!(
            "the arguments take {bytes} bytes; the limit is {MAX_BYTES}"
        ))
    } else if texts > MAX_TEXTS {
        Some(format!(
            "the arguments hold {texts} texts; the limit is {MAX_TEXTS}"
        ))
    } else if depth > MAX_NESTING {
        Some(format!(
            "the arguments nest {depth} levels deep; the limit is {MAX_NESTING}"
        ))
    } else {
        None
    }
}

/// What came back, in bytes: as it came, or as the texts that a tool of Lodestar's own gave.
fn size_of_output(output: &Output) -> usize {
    match &output.verbatim {
        Some(verbatim) => verbatim.bytes(),
        None => {
            let texts = output.content.iter().filter_map(ContentBlock::text);
            texts.map(str::len).sum()
        }
    }
}

/// Whether what came back is worth a thread of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heft {
    Light,
    Heavy,
}

pub(super) fn refused(
    action: Option<lodestar_core::id::ActionId>,
    seq: Option<u64>,
    why: Rejection,
) -> Reply {
    Reply {
        action,
        seq,
        verdict: verdict_of(&why),
        outcome: Outcome::Refused(why),
    }
}

/// What the gate had said of a call that did not run, where its refusal tells.
fn verdict_of(why: &Rejection) -> Option<Verdict> {
    match why {
        Rejection::PolicyDenied { .. } => Some(Verdict::Deny),
        Rejection::ApprovalRequired { .. }
        | Rejection::ApprovalDenied { .. }
        | Rejection::ApprovalTimeout { .. } => Some(Verdict::Hold),
        Rejection::PreconditionFailed { .. }
        | Rejection::ReachesLodestar { .. }
        | Rejection::InvalidArguments { .. }
        | Rejection::DefinitionDrift { .. }
        | Rejection::Irreversible { .. }
        | Rejection::ToolNotAdvertised
        | Rejection::Halted
        | Rejection::Stopped
        | Rejection::SessionClosed
        | Rejection::NotRecorded { .. } => None,
    }
}
