//! The firewall of a session, and which beliefs came from which observation. What tools return is taken
//! in behind their calls: see [`backlog`](super::backlog).
//!
//! Stores block, and the shared one brings a runtime of its own: so whatever touches them runs off the
//! caller's threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestar_core::chain::{ContentBlock, EvidenceQuality, Observation};
use lodestar_core::contract::arguments;
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
use lodestar_kernel::step::{Step, Steps};
use lodestar_policy::Dependency;
use serde_json::Value;

use super::backlog::Backlog;
use crate::error::GuardError;
use crate::recorder::SessionRecorder;

/// What is larger is taken in before its call returns, so that what waits stays small.
const LARGE: usize = 64 << 10;

#[derive(Debug, Clone)]
pub(super) struct Memory {
    inner: Arc<Mutex<Remembered>>,
    backlog: Arc<Backlog>,
}

#[derive(Debug)]
struct Remembered {
    firewall: Firewall,
    /// Kept so that nobody else has them.
    _seats: Seats,
    recorder: SessionRecorder,
    classes: Classes,
}

/// Whether the classes of beliefs stand beside what rests on them: only where somebody looks at them, for
/// every proposal would carry them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Classes {
    Named,
    LeftOut,
}

/// What a tool returned, owned, to be taken in on another thread.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) observation: Arc<Observation>,
    pub(crate) server: ServerIdentity,
    pub(crate) arguments: Value,
    pub(crate) definition: lodestar_core::digest::Digest,
    pub(crate) reviewed: bool,
    pub(crate) is_error: bool,
    pub(crate) scope: Scope,
    /// The event that recorded the observation, for what came of a call whose end is recorded too.
    pub(crate) recorded: Option<u64>,
}

/// What became of something that was put in the queue.
pub(super) enum Put {
    /// It waits for others to come along.
    Small,
    /// It is waited for.
    Large,
}

impl Put {
    pub(super) async fn settled(self, memory: &Memory) -> Result<(), GuardError> {
        match self {
            Self::Small => Ok(()),
            Self::Large => memory.backlog.settled().await,
        }
    }
}

impl Taken {
    fn intake(&self) -> Intake<'_> {
        let call = ToolCall {
            invocation: self.observation.invocation_id,
            server: &self.server,
            tool: &self.observation.tool,
            arguments: &self.arguments,
            definition: self.definition,
            reviewed: self.reviewed,
            is_error: self.is_error,
        };
        Intake {
            call,
            observation: &self.observation,
            scope: &self.scope,
            recorded: self.recorded,
        }
    }

    /// Anything but a few texts of ordinary length, together with short arguments.
    fn is_large(&self) -> bool {
        let texts = self.observation.content.iter().map(|block| match block {
            ContentBlock::Text { text, rest } if rest.is_empty() => text.len(),
            _ => LARGE,
        });
        let arguments = self.arguments.as_object();
        let mut length = arguments.map_or(0, |given| arguments::size(given).bytes);
        texts.for_each(|text| length = length.saturating_add(text));
        length >= LARGE
    }
}

/// Takes in what tools returned, in this order; gives the beliefs of each.
pub(crate) fn take_in(
    firewall: &mut Firewall,
    recorder: &mut SessionRecorder,
    taken: &[Taken],
) -> Result<Vec<Box<[BeliefId]>>, GuardError> {
    let intakes: Vec<_> = taken.iter().map(Taken::intake).collect();
    let outcomes = firewall.observe_all(&intakes, recorder)?;
    let beliefs = outcomes.iter().map(|outcome| {
        let beliefs = outcome.beliefs().iter();
        beliefs.map(|belief| belief.id).collect()
    });
    Ok(beliefs.collect())
}

impl Memory {
    pub(super) fn new(
        firewall: Firewall,
        seats: Seats,
        recorder: SessionRecorder,
        steps: Steps,
        classes: Classes,
    ) -> Result<Self, GuardError> {
        let inner = Arc::new(Mutex::new(Remembered {
            firewall,
            _seats: seats,
            recorder,
            classes,
        }));
        let remembered = Arc::clone(&inner);
        let backlog = Backlog::start(Box::new(move |taken| {
            let mut remembered = lock(&remembered);
            let Remembered {
                firewall, recorder, ..
            } = &mut *remembered;
            let beliefs = take_in(firewall, recorder, taken)?;
            taken.iter().for_each(|_| steps.made(Step::Believed));
            Ok(beliefs)
        }))?;
        Ok(Self {
            inner,
            backlog: Arc::new(backlog),
        })
    }

    /// Runs something on the firewall, off this thread.
    async fn on<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Remembered) -> Result<T, GuardError> + Send + 'static,
    ) -> Result<T, GuardError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&mut lock(&inner)));
        done.await.map_err(|_| GuardError::Panicked)?
    }

    /// Lets what came back be taken in: soon, or at once if it is large.
    pub(super) async fn take(&self, taken: Taken) -> Result<(), GuardError> {
        self.room().await?;
        self.put(taken).settled(self).await
    }

    /// Resolves when there is room for one more.
    pub(super) async fn room(&self) -> Result<(), GuardError> {
        self.backlog.room().await
    }

    /// As [`take`](Self::take), for whoever waited for room: at once, so that nothing comes between this
    /// and what was done before.
    #[must_use]
    pub(super) fn put(&self, taken: Taken) -> Put {
        let put = match taken.is_large() {
            true => Put::Large,
            false => Put::Small,
        };
        self.backlog.put(taken);
        put
    }

    /// Waits until everything that came so far was taken in; on a thread that may block.
    pub(super) fn settle(&self) -> Result<(), GuardError> {
        self.backlog.settle()
    }

    /// Takes in what a person signed.
    pub(super) async fn assert(
        &self,
        envelope: Envelope,
        observation: Observation,
    ) -> Result<BeliefId, GuardError> {
        self.backlog.settled().await?;
        let (id, backlog) = (observation.id, &self.backlog);
        let taken_in = self.on(move |remembered| {
            let Remembered {
                firewall, recorder, ..
            } = remembered;
            let project = observation.project.clone();
            let outcome = firewall.assert(&project, &envelope, &observation, recorder)?;
            Ok(outcome.beliefs().iter().map(|belief| belief.id).collect())
        });
        let beliefs: Box<[BeliefId]> = taken_in.await?;
        let first = beliefs.first().copied();
        backlog.remember(id, beliefs);
        first.ok_or(GuardError::NoBelief)
    }

    /// What is believed, for a planner.
    pub(super) async fn context(
        &self,
        scope: Scope,
        text: Option<String>,
        limit: usize,
    ) -> Result<Context, GuardError> {
        self.backlog.settled().await?;
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
        // What still waits may say something about them.
        self.backlog.settled().await?;
        self.on(move |remembered| {
            let standing = |belief| Ok(remembered.standing(belief)?.ok_or(belief));
            beliefs.into_iter().map(standing).collect()
        })
        .await
    }

    /// The beliefs that came from these observations, as far as they are remembered.
    pub(super) async fn of_observations(
        &self,
        observations: &[ObservationId],
    ) -> Result<Vec<BeliefId>, GuardError> {
        self.backlog.beliefs_of(observations).await
    }

    /// The session's log ended with so many events.
    pub(super) fn ended(&self, events: u64) -> Result<(), GuardError> {
        let mut remembered = lock(&self.inner);
        let log: LogName = remembered.recorder.log().clone();
        Ok(remembered.firewall.session_ended(&log, events)?)
    }
}

fn lock(remembered: &Mutex<Remembered>) -> MutexGuard<'_, Remembered> {
    remembered.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remembered {
    fn standing(&mut self, belief: BeliefId) -> Result<Option<Dependency>, GuardError> {
        let found = self.firewall.look_up(belief)?;
        Ok(found
            .filter(|(_, standing)| *standing == Standing::Genuine)
            .map(|(stored, _)| dependency(&stored, self.classes)))
    }
}

fn dependency(stored: &StoredBelief, classes: Classes) -> Dependency {
    let axes = stored.record.axes;
    Dependency {
        belief: stored.record.id,
        truth: axes.truth,
        retrieval: axes.retrieval,
        security: axes.security,
        freshness: axes.freshness,
        confidence: stored.record.confidence,
        rests_on_reading: stored.claim.lineage.quality() == EvidenceQuality::ExternalDocument,
        class: match classes {
            Classes::Named => Some(stored.record.calibration_class.clone()),
            Classes::LeftOut => None,
        },
    }
}

impl BeliefView for Memory {
    fn standing(&self, belief: BeliefId) -> Result<Option<Dependency>, String> {
        let settled = self.backlog.settle();
        let standing = settled.and_then(|()| lock(&self.inner).standing(belief));
        standing.map_err(|problem| problem.to_string())
    }
}
