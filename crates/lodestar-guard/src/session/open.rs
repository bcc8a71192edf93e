//! Opening a governed session.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::digest::sha256;
use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use lodestar_core::provenance::GivenSource;
use lodestar_firewall::Firewall;
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::provenance::{Limits as IndexLimits, ProvenanceIndex};
use lodestar_kernel::grade::Grade;
use lodestar_kernel::opening::{Opening, RunTicket};
use lodestar_kernel::registry::{RegisterError, Registry};
use lodestar_kernel::step::Steps;
use lodestar_kernel::stop::Stop;
use lodestar_kernel::tool::Tool;
use lodestar_kernel::{Kernel, Parts};
use lodestar_policy::{Agent, Arbiter, Desk, Gate, GateError, PolicyError};
use thiserror::Error;
use tokio::sync::RwLock;

use super::beforehand::Beforehand;
use super::begin::{
    Begun, calibration, keep_out_of_git, known_values, normal_root, policy_record, project_log,
    protected, random_key, versions, world,
};
use super::hold::Office;
use super::index::Index;
use super::memory::{Classes, Memory};
use super::{Counted, Holds, Inner, Open, Session};
use crate::attend::Attendant;
use crate::config::{Backend, BadScope, Ceiling, Config};
use crate::error::GuardError;
use crate::keys::Keys;
use crate::recorder::SessionRecorder;
use crate::recover::Ended;
use crate::tools;

/// What a session is opened with.
pub struct Setup {
    config: Config,
    keys: Keys,
    tools: Vec<Given>,
    absent: Vec<String>,
    holds: Option<Holds>,
    purpose: &'static str,
    execution: &'static str,
    steps: Steps,
    ceiling: Option<Ceiling>,
    task: Option<String>,
    conversation: Option<String>,
    run: Option<RunTicket>,
    attendant: Option<Arc<dyn Attendant>>,
    without: Vec<Defence>,
    kin: Option<&'static str>,
}

/// A tool of one's own, and the grade that it has where the configuration says nothing.
pub(crate) struct Given {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) otherwise: Option<Grade>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Why a session was not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The tools do not fit together.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A grade does not fit its tool.
    #[error("{place}: {problem}")]
    Grade {
        /// Where in the configuration.
        place: String,
        /// What does not fit.
        problem: RegisterError,
    },
    /// A tool in the box cannot be set up.
    #[error("tool `{tool}`: {problem}")]
    Tool {
        /// Which.
        tool: &'static str,
        /// Why.
        problem: String,
    },
    /// The policy does not load.
    #[error("policy `{}`: {problem}", .file.display())]
    Policy {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: PolicyError,
    },
    /// A file that the configuration names cannot be read.
    #[error("{}: {problem}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// The policy does not fit the tools.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Something can be held, and nobody was named who is asked.
    #[error(
        "calls of `{tool}` can be held, and nobody is there to ask: name a resolver with `Setup::holds(Holds::Ask(…))`, or say `Holds::Leave`"
    )]
    NobodyToAsk {
        /// A tool that can be held.
        tool: Excerpt,
    },
    /// Somebody is to be asked, and no time is given to answer.
    #[error(
        "a resolver is named, but `approval_timeout_ms` is 0: nobody could answer in time; set it, or say `Holds::Leave`"
    )]
    NoTimeToAnswer,
    /// The environment does not say where the store is.
    #[error("`persistence.connection_string_env` names `{0}`, which is not set")]
    NoConnection(String),
    /// The configuration asks for a shared store and does not say where it is.
    #[error("`persistence.backend = \"postgres\"` needs `connection_string_env`")]
    NoConnectionNamed,
    /// What was measured last cannot be believed, so nobody knows which classes of beliefs are flagged.
    #[error(
        "session `{session}` has the latest calibration, and it does not count: {reason}; the sentinel `calibration-flag` does not go by an older one"
    )]
    Calibration {
        /// The session.
        session: Excerpt,
        /// Why it does not count.
        reason: Excerpt,
    },
    /// Its sessions are to be runs, and nobody registered this one.
    #[error(
        "the configuration has a `[run]`, and no gateway gave a ticket for this session: register the run and hand its ticket to `Setup::run`, or take `[run]` out"
    )]
    NoTicket,
    /// The scope of the configuration is none.
    #[error(transparent)]
    Scope(#[from] BadScope),
    /// Log, store or firewall refused.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

macro_rules! through_guard {
    ($($error:ty),+) => {
        $(impl From<$error> for OpenError {
            fn from(problem: $error) -> Self {
                Self::Guard(problem.into())
            }
        })+
    };
}

through_guard!(
    lodestar_log::OpenError,
    lodestar_log::AppendError,
    lodestar_replay::ReplayError,
    lodestar_firewall::FirewallError,
    lodestar_firewall::store::StoreError,
    lodestar_firewall::provenance::GivenFull
);

impl Setup {
    /// A session as configured, with these keys.
    pub fn new(config: Config, keys: Keys) -> Self {
        Self {
            config,
            keys,
            tools: Vec::new(),
            absent: Vec::new(),
            holds: None,
            purpose: "guard",
            execution: "library",
            steps: Steps::default(),
            ceiling: None,
            task: None,
            conversation: None,
            run: None,
            attendant: None,
            without: Vec::new(),
            kin: None,
        }
    }

    /// A session apart, for what a person does: named so, and of the sessions that were interrupted it looks at
    /// none but those that are named alike. What waits in the others goes on waiting.
    #[must_use]
    pub fn apart(mut self, kin: &'static str) -> Self {
        (self.kin, self.purpose) = (Some(kin), kin);
        self
    }

    /// With a tool of one's own. It is held unless the configuration grades it.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Given {
            tool: Arc::new(tool),
            otherwise: None,
        });
        self
    }

    /// With a tool that has this grade where the configuration does not grade it.
    #[must_use]
    pub fn tool_graded(mut self, tool: impl Tool + 'static, otherwise: Grade) -> Self {
        self.tools.push(Given {
            tool: Arc::new(tool),
            otherwise: Some(otherwise),
        });
        self
    }

    /// With tools that others bring, as they were last seen: each is held unless the configuration grades it.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let given = tools.into_iter().map(|tool| Given {
            tool,
            otherwise: None,
        });
        self.tools.extend(given);
        self
    }

    /// Tools whose names begin so are not there today, and their grades are no mistake.
    #[must_use]
    pub fn absent(mut self, prefix: String) -> Self {
        self.absent.push(prefix);
        self
    }

    /// How the agent is connected, as policies read it.
    #[must_use]
    pub fn execution(mut self, execution: &'static str) -> Self {
        self.execution = execution;
        self
    }

    /// What is done with held actions.
    #[must_use]
    pub fn holds(mut self, holds: Holds) -> Self {
        self.holds = Some(holds);
        self
    }

    /// Another ceiling than the configuration's.
    #[must_use]
    pub fn ceiling(mut self, ceiling: Ceiling) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Another task than the configuration's.
    #[must_use]
    pub fn task(mut self, task: String) -> Self {
        self.task = Some(task);
        self
    }

    /// The session is one of a conversation: the names of all of them begin so, and only it takes them up
    /// again. Whatever name the configuration gives is for the sessions of others.
    #[must_use]
    pub(crate) fn conversation(mut self, prefix: String) -> Self {
        self.conversation = Some(prefix);
        self
    }

    /// The session is this run of a gateway, and says so in its first event. A session that still waits for
    /// people is only taken up again by the run that it was.
    #[must_use]
    pub fn run(mut self, ticket: RunTicket) -> Self {
        self.run = Some(ticket);
        self
    }

    /// Somebody makes the session a run, and is told of its end. Where a ticket was given, no other is asked for.
    #[must_use]
    pub fn attended(mut self, attendant: Arc<dyn Attendant>) -> Self {
        self.attendant = Some(attendant);
        self
    }

    /// For a harness: the session runs without these, says so in its first event, and nothing of it counts
    /// for any other.
    #[must_use]
    pub fn without(mut self, defences: impl IntoIterator<Item = Defence>) -> Self {
        self.without.extend(defences);
        self
    }

    fn lacks(&self, defence: Defence) -> bool {
        self.without.contains(&defence)
    }

    /// Somebody is told of every step of every action.
    #[must_use]
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }

    /// Opens the session. Sessions of this project that ended in a crash are ended properly first:
    /// what they had called and nobody saw the end of is recorded as unknown.
    pub async fn open(mut self) -> Result<Session, OpenError> {
        match (&self.attendant, &self.run) {
            (Some(attendant), None) => self.run = attendant.register().await,
            (None, None) if self.config.run.is_some() => return Err(OpenError::NoTicket),
            _ => {}
        }
        let opening = tokio::task::spawn_blocking(move || self.open_now());
        let (session, ended) = opening.await.map_err(|_| GuardError::Panicked)??;
        if let (Some(attendant), Some(ticket)) = (&session.inner.attendant, session.inner.ticket) {
            attendant.opened(ticket, session.inner.log.dir());
        }
        session.listen();
        session.clear_away(&ended).await;
        session.announce_open().await;
        Ok(session)
    }

    /// The tools, policy and gate that a session would have, without opening one.
    pub fn gate(&self) -> Result<(Registry, Gate), OpenError> {
        let scope = self.config.scope()?;
        let without = &self.without;
        let registry = tools::registry(&self.config, &scope, &self.tools, &self.absent, without)?;
        let policy = self.config.policy_without(self.ceiling, without)?;
        let shapes = registry.iter().map(|entry| entry.record().shape.clone());
        let gate = Gate::new(
            policy,
            shapes.collect(),
            self.config.sentinels.clone(),
            self.config.approvals.default.requirement(),
        )?;
        Ok((registry, gate.without(without)))
    }

    fn open_now(self) -> Result<(Session, Vec<Ended>), OpenError> {
        let (registry, gate) = self.gate()?;
        let holds = self.someone_to_ask(&registry, &gate)?;
        let extractors = Extractors::built_in().without(&self.without);
        let keyring = self.keys.keyring().without(&self.without);
        let approvers = self.config.approvals.authorized_keys.clone();
        let approvers = approvers.without(&self.without);
        let protected = protected(&self.config, &self.keys);
        let protected = match self.lacks(Defence::SelfProtection) {
            true => protected.taken_out(),
            false => protected,
        };
        let protected = match self.lacks(Defence::Containment) {
            true => protected.uncontained(),
            false => protected,
        };
        let provenance = ProvenanceIndex::new(IndexLimits::default(), random_key());
        let provenance = match self.lacks(Defence::PositiveTrust) {
            true => provenance.trusting_what_was_not_read(),
            false => provenance,
        };
        let Self {
            mut config,
            keys,
            purpose,
            execution,
            steps,
            task,
            conversation,
            run,
            attendant,
            without,
            kin,
            ..
        } = self;
        if !without.is_empty() {
            // What such a session believes is for nobody else.
            config.persistence.backend = Backend::Memory;
        }
        let scope = config.scope()?;
        let log = project_log(&config)?;
        let agent = Agent {
            actor: config.actor_id.clone(),
            device_trust: "none".to_owned(),
            execution: execution.to_owned(),
        };
        let known = known_values(&config)?;
        let calibration = calibration(&config, &keys, &log)?;
        let opening = Opening {
            purpose: purpose.to_owned(),
            agent: agent.clone(),
            configuration: config.digest(),
            policy: policy_record(&gate),
            schema: gate.schema().digest(),
            tools: registry.records(),
            approvers: config.approvals.authorized_keys.clone(),
            confirmations: config.confirmations.clone(),
            approvals_default: config.approvals.default.requirement(),
            arbiters: config.sentinels.clone(),
            calibration,
            root: normal_root(&config),
            scope: scope.clone(),
            sensitivity: config.default_sensitivity,
            known_values: known.as_ref().map(|(text, _)| sha256(text.as_bytes())),
            versions: versions(),
            run,
            defences_off: without.iter().map(ToString::to_string).collect(),
        };
        let gate = gate.flagging(opening.flagged().cloned());
        let Begun {
            log: writer,
            past,
            abandoned,
            ended,
            store,
            surroundings,
        } = Begun::begin(
            (&config, conversation, kin),
            &keys,
            &log,
            &opening,
            &without,
        )?;
        let goes_on = past.is_some();
        let past = past.unwrap_or_default();
        let trail = opening.arbiters.has(Arbiter::AnomalousToolSequence);
        let trail = trail.then_some(past.trail);
        let spent = past.spent().map(|consumed| consumed.id).collect();
        let confirmations = Beforehand::open(&config, spent, &without)?;
        keep_out_of_git(&config)?;
        let mut recorder = SessionRecorder::new(writer.clone(), config.actor_id.clone());
        let (mut firewall, seats) =
            Firewall::open(store, keyring, extractors, Box::new(surroundings));
        firewall.age(log.project(), &mut recorder)?;
        let classes = match opening.calibration {
            Some(_) => Classes::Named,
            None => Classes::LeftOut,
        };
        let memory = Memory::new(firewall, seats, recorder, steps.clone(), classes)?;
        let kernel = Kernel::new(Parts {
            world: world(&config, &gate).with_beliefs(Arc::new(memory.clone())),
            protected,
            registry,
            log: writer.clone(),
            agent,
            clock: writer.clock().clone(),
            steps,
            trail,
        });
        let desk = Desk::restored(past.requests, past.recorded).without(&without);
        let session = Session {
            inner: Arc::new(Inner {
                kernel: Arc::new(kernel.without(&without)),
                gate,
                log: writer,
                actor: config.actor_id.clone(),
                scope,
                sensitivity: config.default_sensitivity,
                memory,
                provenance: Index::new(provenance),
                holds,
                office: Mutex::new(Office::new(desk)),
                abandoned,
                calibration: opening.calibration,
                listeners: Mutex::default(),
                ears: Mutex::default(),
                deaf: Stop::new(),
                channel_problem: Mutex::default(),
                approvers,
                confirmations,
                approval_timeout: Duration::from_millis(config.approval_timeout_ms),
                deadline: Duration::from_millis(config.limits.call_deadline_ms),
                counts: Counted::default(),
                decided: Mutex::default(),
                halt_noted: OnceLock::new(),
                ticket: run,
                attendant,
                running: RwLock::new(Open::Yes),
            }),
        };
        if let Some((text, list)) = known {
            session.give_known(&text, &list)?;
        }
        let task = task.or(config.task);
        if goes_on {
            session.remember(task.as_deref())?;
        } else if let Some(task) = task {
            session.state_task(&task)?;
        }
        Ok((session, ended))
    }

    /// Something can be held as soon as a tool stands at L4, a policy says `ask`, or a monitor is on.
    fn someone_to_ask(&self, registry: &Registry, gate: &Gate) -> Result<Holds, OpenError> {
        if let Some(holds) = &self.holds {
            let waits = self.config.approval_timeout_ms > 0;
            return match holds {
                Holds::Ask(_) if !waits => Err(OpenError::NoTimeToAnswer),
                holds => Ok(holds.clone()),
            };
        }
        let monitored = self.config.sentinels.arbitrate();
        let holdable = registry.iter().find(|entry| {
            let record = entry.record();
            let asks = monitored || gate.may_ask(&record.shape.name);
            match record.contract.required_level {
                Rung::L5 => false,
                Rung::L4 => true,
                Rung::L0 | Rung::L1 | Rung::L2 | Rung::L3 => asks,
            }
        });
        match holdable {
            Some(entry) => Err(OpenError::NobodyToAsk {
                tool: entry.record().shape.name.shown(),
            }),
            None => Ok(Holds::Leave),
        }
    }
}

impl Session {
    /// Every line of the operator's list is a value that counts as given.
    fn give_known(&self, text: &str, list: &str) -> Result<(), GuardError> {
        let values = text.lines().map(str::trim);
        let values = values.filter(|line| !line.is_empty() && !line.starts_with('#'));
        for value in values {
            let source = GivenSource::KnownValue {
                list: list.to_owned(),
            };
            let index = &self.inner.provenance;
            index.with(|known| known.give_value(value, source))?;
        }
        Ok(())
    }
}
