//! The firewall of a session, and which beliefs came from which observation.
//!
//! Stores block, and the shared one brings a runtime of its own: so whatever touches them runs off the
//! caller's threads.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestar_core::chain::{EvidenceQuality, Observation};
use lodestar_core::id::{BeliefId, ObservationId};
use lodestar_core::name::ServerIdentity;
use lodestar_core::scope::Scope;
use lodestar_core::statement::Envelope;
use lodestar_firewall::authority::Seats;
use lodestar_firewall::event::LogName;
use lodestar_firewall::extract::ToolCall;
use lodestar_firewall::row::StoredBelief;
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::{Context, ContextPolicy, Firewall, Intake};
use lodestar_kernel::measure::BeliefView;
use lodestar_policy::Dependency;
use serde_json::Value;

use crate::error::GuardError;
use crate::recorder::SessionRecorder;

/// How many observations' beliefs are kept at hand: as many as the provenance index names.
const REMEMBERED: usize = lodestar_firewall::provenance::OBSERVATIONS;

#[derive(Debug, Clone)]
pub(super) struct Memory {
    inner: Arc<Mutex<Remembered>>,
}

#[derive(Debug)]
struct Remembered {
    firewall: Firewall,
    /// Kept so that nobody else has them.
    _seats: Seats,
    recorder: SessionRecorder,
    beliefs: HashMap<ObservationId, Vec<BeliefId>>,
    order: VecDeque<ObservationId>,
}

/// What a tool returned, owned, to be taken in on another thread.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) observation: Observation,
    pub(super) server: ServerIdentity,
    pub(super) arguments: Value,
    pub(super) definition: lodestar_core::digest::Digest,
    pub(super) reviewed: bool,
    pub(super) is_error: bool,
    pub(super) scope: Scope,
}

impl Memory {
    pub(super) fn new(firewall: Firewall, seats: Seats, recorder: SessionRecorder) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Remembered {
                firewall,
                _seats: seats,
                recorder,
                beliefs: HashMap::new(),
                order: VecDeque::new(),
            })),
        }
    }

    /// Runs something on the firewall, off this thread.
    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Remembered) -> Result<T, GuardError> + Send + 'static,
    ) -> Result<T, GuardError> {
        let memory = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&mut memory.lock()));
        done.await.map_err(|_| GuardError::Panicked)?
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a tool returned; gives it back for the index.
    pub(super) async fn take(&self, taken: Taken) -> Result<Taken, GuardError> {
        self.on(move |remembered| {
            let call = ToolCall {
                invocation: taken.observation.invocation_id,
                server: &taken.server,
                tool: &taken.observation.tool,
                arguments: &taken.arguments,
                definition: taken.definition,
                reviewed: taken.reviewed,
                is_error: taken.is_error,
            };
            let intake = Intake {
                call,
                observation: &taken.observation,
                scope: &taken.scope,
            };
            let Remembered {
                firewall, recorder, ..
            } = remembered;
            let outcome = firewall.observe(intake, recorder)?;
            let beliefs = outcome.beliefs().iter().map(|belief| belief.id).collect();
            remembered.remember(taken.observation.id, beliefs);
            Ok(taken)
        })
        .await
    }

    /// Takes in what a person signed.
    pub(super) async fn assert(
        &self,
        envelope: Envelope,
        observation: Observation,
    ) -> Result<BeliefId, GuardError> {
        self.on(move |remembered| {
            let Remembered {
                firewall, recorder, ..
            } = remembered;
            let project = observation.project.clone();
            let outcome = firewall.assert(&project, &envelope, &observation, recorder)?;
            let beliefs: Vec<_> = outcome.beliefs().iter().map(|belief| belief.id).collect();
            let first = beliefs.first().copied();
            remembered.remember(observation.id, beliefs);
            first.ok_or(GuardError::NoBelief)
        })
        .await
    }

    /// What is believed, for a planner.
    pub(super) async fn context(
        &self,
        scope: Scope,
        text: Option<String>,
        limit: usize,
    ) -> Result<Context, GuardError> {
        self.on(move |remembered| {
            let policy = ContextPolicy::default();
            let firewall = &mut remembered.firewall;
            Ok(firewall.context(&policy, &scope, text.as_deref(), limit)?)
        })
        .await
    }

    /// Where beliefs stand, for a decision; one whose row does not count stands nowhere.
    pub(super) async fn standings(
        &self,
        beliefs: Vec<BeliefId>,
    ) -> Result<Vec<Result<Dependency, BeliefId>>, GuardError> {
        if beliefs.is_empty() {
            return Ok(Vec::new());
        }
        self.on(move |remembered| {
            let standing = |belief| Ok(remembered.standing(belief)?.ok_or(belief));
            beliefs.into_iter().map(standing).collect()
        })
        .await
    }

    /// The beliefs that came from these observations, as far as they are remembered.
    pub(super) fn of_observations<'a>(
        &self,
        observations: impl IntoIterator<Item = &'a ObservationId>,
    ) -> Vec<BeliefId> {
        let remembered = self.lock();
        let mut found: Vec<BeliefId> = observations
            .into_iter()
            .filter_map(|observation| remembered.beliefs.get(observation))
            .flatten()
            .copied()
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// The session's log ended with so many events.
    pub(super) fn ended(&self, events: u64) -> Result<(), GuardError> {
        let mut remembered = self.lock();
        let log: LogName = remembered.recorder.log().clone();
        Ok(remembered.firewall.session_ended(&log, events)?)
    }
}

impl Remembered {
    fn remember(&mut self, observation: ObservationId, beliefs: Vec<BeliefId>) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.beliefs.remove(&oldest);
        }
        self.order.push_back(observation);
        self.beliefs.insert(observation, beliefs);
    }

    fn standing(&mut self, belief: BeliefId) -> Result<Option<Dependency>, GuardError> {
        let found = self.firewall.look_up(belief)?;
        Ok(found
            .filter(|(_, standing)| *standing == Standing::Genuine)
            .map(|(stored, _)| dependency(&stored)))
    }
}

fn dependency(stored: &StoredBelief) -> Dependency {
    let axes = stored.record.axes;
    Dependency {
        belief: stored.record.id,
        truth: axes.truth,
        retrieval: axes.retrieval,
        security: axes.security,
        freshness: axes.freshness,
        confidence: stored.record.confidence,
        rests_on_reading: stored.claim.lineage.quality() == EvidenceQuality::ExternalDocument,
    }
}

impl BeliefView for Memory {
    fn standing(&self, belief: BeliefId) -> Result<Option<Dependency>, String> {
        self.lock()
            .standing(belief)
            .map_err(|problem| problem.to_string())
    }
}
