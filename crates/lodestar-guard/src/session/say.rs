//! What does not come from tools: decisions, content from elsewhere, a person's word, the task.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, PoisonError};

use lodestar_core::chain::{
    Choice, ChoiceError, ContentBlock, Decision, DecisionOrigin, EmptyList, NonEmpty, Observation,
    ObservationTrust,
};
use lodestar_core::digest::sha256;
use lodestar_core::event::EventType;
use lodestar_core::id::{BeliefId, DecisionId, InvocationId, ObservationId};
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::provenance::GivenSource;
use lodestar_core::scope::Scope;
use lodestar_core::statement::Envelope;
use lodestar_firewall::Context;
use lodestar_kernel::terse;
use lodestar_kernel::tool::NATIVE_SERVER;
use lodestar_log::Reader;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::call::Ground;
use super::memory::Taken;
use super::{Open, Session};
use crate::error::GuardError;

/// Why a decision was not recorded.
#[derive(Debug, Error)]
pub enum DecideError {
    /// Decisions rest on beliefs.
    #[error("a decision names at least one belief that it rests on")]
    CitesNothing,
    /// A belief that is not there, or whose row does not count.
    #[error("the decision rests on belief `{0}`, which is not there or does not count")]
    UnknownBelief(BeliefId),
    /// There is nothing to choose from.
    #[error(transparent)]
    NoOptions(#[from] EmptyList),
    /// What was chosen is none of the options.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The session cannot go on.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

/// Who passed on a task that was stated while the session ran: the user of a client, by its prompt.
const PROMPT: &str = "prompt";

/// What a person's signed word is observed as, behind the server's name.
const ASSERT: &str = ".assert";

/// Whose content is that came from no tool of the session.
const OUTSIDE: &str = "outside";

fn is_assertion(tool: &ToolName) -> bool {
    tool.as_str().strip_prefix(NATIVE_SERVER) == Some(ASSERT)
}

/// Content that came from no tool, to be taken in as what it is; nothing for what only a person's
/// signature makes anything of.
pub(crate) fn outside(observation: Arc<Observation>, scope: &Scope) -> Option<Taken> {
    (!is_assertion(&observation.tool)).then(|| Taken {
        server: ServerIdentity::new(OUTSIDE).expect("INVARIANT: a short constant"),
        arguments: json!({}),
        definition: sha256(observation.tool.as_str().as_bytes()),
        // Whoever feeds it in named the source; nobody reviewed what it says.
        reviewed: false,
        is_error: false,
        scope: scope.clone(),
        recorded: None,
        observation,
    })
}

/// Most decisions that are kept at hand; a call that names an older one is told so.
const MAX_DECIDED: usize = 4096;

/// The latest decisions, so that a call can name one.
#[derive(Debug, Default)]
pub(super) struct Decided {
    made: HashMap<DecisionId, (u64, Vec<BeliefId>)>,
    order: VecDeque<DecisionId>,
}

impl Decided {
    fn keep(&mut self, id: DecisionId, seq: u64, beliefs: Vec<BeliefId>) {
        if self.order.len() == MAX_DECIDED
            && let Some(oldest) = self.order.pop_front()
        {
            self.made.remove(&oldest);
        }
        self.order.push_back(id);
        self.made.insert(id, (seq, beliefs));
    }
}

impl Session {
    /// Records a decision of the agent's: what was to be decided, among what, and on which beliefs it
    /// rests. Name it in a call to say what the call carries out.
    pub async fn decide(
        &self,
        question: &str,
        options: Vec<String>,
        chosen: &str,
        beliefs: Vec<BeliefId>,
    ) -> Result<DecisionId, DecideError> {
        if beliefs.is_empty() {
            return Err(DecideError::CitesNothing);
        }
        let choice = Choice::new(NonEmpty::try_from(options)?, chosen.to_owned())?;
        let standings = self.inner.memory.standings(beliefs.clone()).await?;
        if let Some(unknown) = standings.into_iter().find_map(Result::err) {
            return Err(DecideError::UnknownBelief(unknown));
        }
        let (id, now) = self.inner.kernel.stamp(DecisionId::from_parts);
        let decision = Decision {
            id,
            question: question.to_owned(),
            choice,
            belief_dependencies: beliefs.clone(),
            policy_dependencies: Vec::new(),
            made_by: self.inner.actor.clone(),
            made_at: now,
            origin: DecisionOrigin::Declared,
        };
        let seq = self.record_decision(&decision)?;
        let decided = self.inner.decided.lock();
        let mut decided = decided.unwrap_or_else(PoisonError::into_inner);
        decided.keep(id, seq, beliefs);
        Ok(id)
    }

    /// Content that came from elsewhere than a tool of the session: a page the user pasted, a message.
    /// It enters as what it is, unverified.
    pub async fn observe(
        &self,
        source: &str,
        content: Vec<ContentBlock>,
    ) -> Result<ObservationId, GuardError> {
        let tool = ToolName::new(source).map_err(GuardError::Name)?;
        if is_assertion(&tool) {
            return Err(GuardError::OwnSource);
        }
        let observation = Arc::new(self.observation(tool, content));
        let id = observation.id;
        self.record_observation(&observation)?;
        let taken = outside(Arc::clone(&observation), &self.inner.scope);
        let taken = taken.expect("INVARIANT: it is no assertion, as was asked above");
        self.inner.memory.take(taken).await?;
        self.note_reading(observation);
        Ok(id)
    }

    /// Takes in what a person signed: it counts as evidence, and its value as given.
    pub async fn assert(&self, statement: &Envelope) -> Result<BeliefId, GuardError> {
        let text = String::from_utf8_lossy(statement.unverified_payload()).into_owned();
        let content = vec![ContentBlock::Text {
            text,
            rest: Map::new(),
        }];
        let tool = ToolName::new(format!("{NATIVE_SERVER}{ASSERT}"));
        let tool = tool.expect("INVARIANT: a short constant");
        let observation = self.observation(tool, content);
        self.record_observation(&observation)?;
        let memory = &self.inner.memory;
        let belief = memory.assert(statement.clone(), observation).await?;
        // Only now: a statement that does not hold gives nothing.
        let said =
            serde_json::from_slice::<Value>(statement.unverified_payload()).unwrap_or_default();
        if let Some(Value::String(value)) = said.pointer("/subject/predicate/object") {
            let source = GivenSource::Assertion {
                statement: statement.digest(),
            };
            let index = &self.inner.provenance;
            index.with(|known| known.give_value(value, source))?;
        }
        Ok(belief)
    }

    /// What is believed, for a planner: supported, clean, not too old, and nothing that was only read.
    pub async fn context(&self, text: Option<&str>, limit: usize) -> Result<Context, GuardError> {
        let scope = self.inner.scope.clone();
        let text = text.map(str::to_owned);
        self.inner.memory.context(scope, text, limit).await
    }

    /// States the task: values in it count as given.
    pub(super) fn state_task(&self, task: &str) -> Result<(), GuardError> {
        let payload = json!({"statement": task, "signed": false});
        let log = &self.inner.log;
        log.append(EventType::TASK_STATED, &self.inner.actor, &[], &payload)?;
        let index = &self.inner.provenance;
        index.with(|known| known.give_task(task, GivenSource::Task))?;
        Ok(())
    }

    /// What the user of a client says is to be done, as it is said: values in it count as given from now on.
    /// It is the client that passes it on, unsigned. Where there is no room for more given values, what is
    /// in it stays of unknown origin.
    pub(crate) async fn state_prompt(&self, text: &str) -> Result<(), GuardError> {
        let running = self.inner.running.read().await;
        if *running == Open::No {
            return Err(GuardError::Over);
        }
        let payload = json!({"statement": text, "signed": false, "by": PROMPT});
        let log = &self.inner.log;
        log.append(EventType::TASK_STATED, &self.inner.actor, &[], &payload)?;
        self.give_prompt(text);
        Ok(())
    }

    fn give_prompt(&self, text: &str) {
        let index = &self.inner.provenance;
        let _no_room = index.with(|known| known.give_task(text, GivenSource::Task));
    }

    /// What a session that goes on had been given and had read, so that it can say again where a value
    /// came from; and what it had decided.
    pub(super) fn remember(&self, task: Option<&str>) -> Result<(), GuardError> {
        if let Some(task) = task {
            let index = &self.inner.provenance;
            index.with(|known| known.give_task(task, GivenSource::Task))?;
        }
        let dir = self.inner.log.dir();
        let unreadable = |problem: &dyn Display| GuardError::Unreadable(problem.to_string());
        let reader = Reader::open(dir).map_err(|problem| unreadable(&problem))?;
        for event in reader {
            let event = event.map_err(|problem| unreadable(&problem))?;
            let kind = EventType::parse(event.kind.as_bytes());
            let is_reading = kind == Some(EventType::OBSERVATION_RECORDED);
            let is_task = kind == Some(EventType::TASK_STATED);
            if !is_reading && !is_task && kind != Some(EventType::DECISION_MADE) {
                continue;
            }
            let whole = terse::whole(&event, dir, None).map_err(|problem| unreadable(&problem))?;
            let Some(payload) = whole else { continue };
            if is_task {
                // What was configured is given above, as it stands now.
                if let (Some(PROMPT), Some(said)) =
                    (payload["by"].as_str(), payload["statement"].as_str())
                {
                    self.give_prompt(said);
                }
            } else if is_reading {
                if let Ok(observation) = serde_json::from_value::<Observation>(payload) {
                    self.note_reading(Arc::new(observation));
                }
            } else if let Ok(decision) = serde_json::from_value::<Decision>(payload)
                && decision.origin == DecisionOrigin::Declared
            {
                let decided = self.inner.decided.lock();
                let mut decided = decided.unwrap_or_else(PoisonError::into_inner);
                decided.keep(decision.id, event.seq, decision.belief_dependencies);
            }
        }
        Ok(())
    }

    /// A decision that was made earlier, and where what it rests on stands now.
    pub(super) async fn decided(&self, decision: DecisionId) -> Result<Ground, GuardError> {
        let found = {
            let decided = self.inner.decided.lock();
            let decided = decided.unwrap_or_else(PoisonError::into_inner);
            decided.made.get(&decision).cloned()
        };
        let (seq, beliefs) = found.ok_or(GuardError::UnknownDecision(decision))?;
        let standings = self.inner.memory.standings(beliefs).await?;
        let dependencies: Result<Vec<_>, _> = standings.into_iter().collect();
        let dependencies = dependencies.map_err(GuardError::UnknownBelief)?;
        Ok(Ground {
            decision: Some((decision, seq)),
            dependencies,
            left_out: 0,
        })
    }

    fn record_decision(&self, decision: &Decision) -> Result<u64, GuardError> {
        let log = &self.inner.log;
        let receipt = log.append(EventType::DECISION_MADE, &self.inner.actor, &[], decision)?;
        Ok(receipt.seq())
    }

    fn observation(&self, tool: ToolName, content: Vec<ContentBlock>) -> Observation {
        let inner = &self.inner;
        let (id, now) = inner.kernel.stamp(ObservationId::from_parts);
        let (invocation_id, _) = inner.kernel.stamp(InvocationId::from_parts);
        Observation {
            id,
            tool,
            invocation_id,
            captured_at: now,
            session: self.id().clone(),
            project: inner.log.dir().project().clone(),
            actor: inner.actor.clone(),
            trust: ObservationTrust::Raw,
            sensitivity: inner.sensitivity,
            content,
            rest: Map::new(),
        }
    }

    fn record_observation(&self, observation: &Observation) -> Result<u64, GuardError> {
        let inner = &self.inner;
        let kind = EventType::OBSERVATION_RECORDED;
        let receipt = inner.log.append(kind, &inner.actor, &[], observation)?;
        Ok(receipt.seq())
    }
}
