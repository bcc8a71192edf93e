//! Opening a governed session.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;
use lodestar_core::provenance::GivenSource;
use lodestar_firewall::Firewall;
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::provenance::{Limits as IndexLimits, ProvenanceIndex};
use lodestar_firewall::store::{MemoryStore, PostgresStore, SqliteStore, Store};
use lodestar_kernel::measure::World;
use lodestar_kernel::opening::{Opening, PolicyRecord};
use lodestar_kernel::protect::Protected;
use lodestar_kernel::registry::{RegisterError, Registry};
use lodestar_kernel::step::Steps;
use lodestar_kernel::tool::Tool;
use lodestar_kernel::{Kernel, Parts};
use lodestar_log::{Clock, LogRoot, LogWriter, ProjectLog, WriterOptions};
use lodestar_policy::{Agent, Desk, Gate, GateError, PolicyError};
use lodestar_replay::catch_up;
use thiserror::Error;
use tokio::sync::RwLock;

use super::beforehand::Beforehand;
use super::hold::Office;
use super::memory::Memory;
use super::{Counted, Holds, Index, Inner, Open, Session};
use crate::config::{Backend, BadScope, Ceiling, Config, SessionName};
use crate::error::GuardError;
use crate::in_force::read;
use crate::keys::Keys;
use crate::recorder::SessionRecorder;
use crate::recover::{self, Recovered, TakenUp};
use crate::surroundings::SystemSurroundings;
use crate::tools;

/// What a session is opened with.
pub struct Setup {
    config: Config,
    keys: Keys,
    tools: Vec<Arc<dyn Tool>>,
    holds: Option<Holds>,
    purpose: &'static str,
    execution: &'static str,
    steps: Steps,
    ceiling: Option<Ceiling>,
    task: Option<String>,
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
            holds: None,
            purpose: "guard",
            execution: "library",
            steps: Steps::default(),
            ceiling: None,
            task: None,
        }
    }

    /// With a tool of one's own. It is held unless the configuration grades it.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
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

    /// Somebody is told of every step of every action.
    #[must_use]
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }

    /// Opens the session. Sessions of this project that ended in a crash are ended properly first:
    /// what they had called and nobody saw the end of is recorded as unknown.
    pub async fn open(self) -> Result<Session, OpenError> {
        let opening = tokio::task::spawn_blocking(move || self.open_now());
        let session = opening.await.map_err(|_| GuardError::Panicked)??;
        session.listen();
        session.announce_open().await;
        Ok(session)
    }

    /// The tools, policy and gate that a session would have, without opening one.
    pub fn gate(&self) -> Result<(Registry, Gate), OpenError> {
        let scope = self.config.scope()?;
        let registry = tools::registry(&self.config, &scope, &self.tools)?;
        let policy = self.config.policy_in_force(self.ceiling)?;
        let shapes = registry.iter().map(|entry| entry.record().shape.clone());
        let gate = Gate::new(
            policy,
            shapes.collect(),
            self.config.sentinels.clone(),
            self.config.approvals.default.requirement(),
        )?;
        Ok((registry, gate))
    }

    fn open_now(self) -> Result<Session, OpenError> {
        let (registry, gate) = self.gate()?;
        let holds = self.someone_to_ask(&registry, &gate)?;
        let Self {
            config,
            keys,
            purpose,
            execution,
            steps,
            task,
            ..
        } = self;
        let scope = config.scope()?;
        let log = project_log(&config)?;
        let agent = Agent {
            actor: config.actor_id.clone(),
            device_trust: "none".to_owned(),
            execution: execution.to_owned(),
        };
        let known = known_values(&config)?;
        let opening = Opening {
            purpose: purpose.to_owned(),
            agent: agent.clone(),
            configuration: config.digest(),
            policy: PolicyRecord {
                text: gate.policy().source().to_owned(),
                digest: gate.policy().digest(),
                signature: gate.policy().signature().clone(),
            },
            schema: gate.schema().digest(),
            tools: registry.records(),
            approvers: config.approvals.authorized_keys.clone(),
            confirmations: config.confirmations.clone(),
            approvals_default: config.approvals.default.requirement(),
            arbiters: config.sentinels.clone(),
            root: config
                .root()
                .to_str()
                .and_then(|root| NormalPath::new(root).ok()),
            scope: scope.clone(),
            sensitivity: config.default_sensitivity,
            known_values: known.as_ref().map(|(text, _)| sha256(text.as_bytes())),
            versions: BTreeMap::from([(
                "lodestar".to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            )]),
            defences_off: Vec::new(),
        };
        let mut surroundings = SystemSurroundings::default();
        let wanted = match &config.session_id {
            SessionName::Given(session) => Some(session),
            SessionName::Auto => None,
        };
        let now = Clock::system().now();
        let Recovered { again, abandoned } =
            recover::interrupted(&log, &keys, &opening, wanted, now)?;
        let mut store = open_store(&config)?;
        let keyring = keys.keyring();
        catch_up(store.as_mut(), &keyring, &log, &keys.trust())?;
        let (writer, past) = match again {
            Some(TakenUp { writer, past }) => (writer, Some(past)),
            None => {
                let session = wanted.cloned();
                let session = session.unwrap_or_else(|| surroundings.new_session("s"));
                let options = WriterOptions::new(Arc::clone(&keys.log));
                let actor = &config.actor_id;
                let writer = LogWriter::create(&log, &session, actor, &opening, &options)?;
                (writer, None)
            }
        };
        let goes_on = past.is_some();
        let desk = match past {
            Some(past) => Desk::restored(past.requests, past.recorded),
            None => Desk::default(),
        };
        keep_out_of_git(&config)?;
        let mut recorder = SessionRecorder::new(writer.clone(), config.actor_id.clone());
        let (mut firewall, seats) = Firewall::open(
            store,
            keyring,
            Extractors::built_in(),
            Box::new(surroundings),
        );
        firewall.age(log.project(), &mut recorder)?;
        let memory = Memory::new(firewall, seats, recorder);
        let policy_file = config
            .policy
            .as_ref()
            .map(|policy| config.path(&policy.file));
        let world = World::new(
            config.root().to_owned(),
            gate.policy().digest(),
            policy_file,
        )
        .with_beliefs(Arc::new(memory.clone()));
        let mut named = config.files();
        named.extend(keys.dir.clone());
        let kernel = Kernel::new(Parts {
            registry,
            world,
            protected: Protected::new(config.root(), named),
            log: writer.clone(),
            agent,
            clock: Clock::system(),
            steps,
        });
        let confirmations = Beforehand::open(&config)?;
        let session = Session {
            inner: Arc::new(Inner {
                kernel: Arc::new(kernel),
                gate,
                log: writer,
                actor: config.actor_id.clone(),
                scope,
                sensitivity: config.default_sensitivity,
                memory,
                provenance: Mutex::new(Index(ProvenanceIndex::new(
                    IndexLimits::default(),
                    random_key(),
                ))),
                holds,
                office: Mutex::new(Office::new(desk)),
                abandoned,
                listeners: Mutex::default(),
                channel_problem: Mutex::default(),
                approvers: config.approvals.authorized_keys.clone(),
                confirmations,
                approval_timeout: Duration::from_millis(config.approval_timeout_ms),
                deadline: Duration::from_millis(config.limits.call_deadline_ms),
                counts: Counted::default(),
                decided: Mutex::default(),
                halt_noted: OnceLock::new(),
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
        Ok(session)
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
        let monitored = !self.config.sentinels.is_empty();
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
            self.with_index(|index| index.0.give_value(value, source))?;
        }
        Ok(())
    }
}

/// The project's log, as configured.
pub(crate) fn project_log(config: &Config) -> Result<ProjectLog, OpenError> {
    let root = LogRoot::at(config.path(&config.log_root));
    Ok(root.project(&config.project_id))
}

fn open_store(config: &Config) -> Result<Box<dyn Store>, OpenError> {
    Ok(match config.persistence.backend {
        Backend::Memory => Box::new(MemoryStore::new()),
        Backend::Sqlite => {
            let dir = config.root().join(".lodestar");
            std::fs::create_dir_all(&dir).map_err(|problem| OpenError::Read {
                file: dir.clone(),
                problem,
            })?;
            Box::new(SqliteStore::open(&dir.join("state.db"))?)
        }
        Backend::Postgres => {
            let name = config.persistence.connection_string_env.as_ref();
            let name = name.ok_or(OpenError::NoConnectionNamed)?;
            let address = std::env::var(name);
            let address = address.map_err(|_| OpenError::NoConnection(name.clone()))?;
            Box::new(PostgresStore::connect(&address, None)?)
        }
    })
}

/// Lodestar's own files are no change of the project: what is measured of a repository, and what somebody
/// commits in it, is without them.
fn keep_out_of_git(config: &Config) -> Result<(), OpenError> {
    let dir = config.root().join(".lodestar");
    let file = dir.join(".gitignore");
    if !dir.is_dir() || file.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::write(&file, "*\n").map_err(|problem| OpenError::Read { file, problem })
}

fn known_values(config: &Config) -> Result<Option<(String, String)>, OpenError> {
    let Some(known) = &config.known_values else {
        return Ok(None);
    };
    let path = config.path(&known.file);
    let text = String::from_utf8(read(&path)?).map_err(|problem| OpenError::Read {
        file: path.clone(),
        problem: io::Error::new(io::ErrorKind::InvalidData, problem),
    })?;
    let list = known.file.file_stem().unwrap_or_default();
    Ok(Some((text, list.to_string_lossy().into_owned())))
}

fn random_key() -> [u8; 16] {
    let mut key = [0; 16];
    getrandom::fill(&mut key).expect("the system has randomness");
    key
}
