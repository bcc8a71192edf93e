//! What a session needs before it can be opened, out of its configuration and of the project's logs.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use lodestar_core::defence::Defence;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::name::Excerpt;
use lodestar_firewall::store::{MemoryStore, PostgresStore, SqliteStore, Store};
use lodestar_kernel::measure::World;
use lodestar_kernel::opening::{CalibrationInForce, ComputedAt, Opening, PolicyRecord};
use lodestar_kernel::protect::Protected;
use lodestar_log::{Clock, LogRoot, LogWriter, ProjectLog, WriterOptions};
use lodestar_policy::{Arbiter, Gate};
use lodestar_replay::calibration::{Latest, Measured, latest};
use lodestar_replay::catch_up;

use super::OpenError;
use crate::config::{Backend, Config, SessionName};
use crate::error::GuardError;
use crate::in_force::read;
use crate::keys::Keys;
use crate::recover::{self, Abandoned, Ended, Past, Recovered, TakenUp, Wanted};
use crate::surroundings::SystemSurroundings;

pub(super) fn policy_record(gate: &Gate) -> PolicyRecord {
    let policy = gate.policy();
    PolicyRecord {
        text: policy.source().to_owned(),
        digest: policy.digest(),
        signature: policy.signature().clone(),
    }
}

pub(super) fn normal_root(config: &Config) -> Option<NormalPath> {
    let root = config.root().to_str()?;
    NormalPath::new(root).ok()
}

/// What was measured of beliefs, for the sentinel that looks at it. Where the latest measurement does not
/// count there may have been flags that nobody knows now, and no older one says so: there is no session then.
pub(super) fn calibration(
    config: &Config,
    keys: &Keys,
    log: &ProjectLog,
) -> Result<Option<CalibrationInForce>, OpenError> {
    if !config.sentinels.has(Arbiter::CalibrationFlag) {
        return Ok(None);
    }
    let Latest { measured, ignored } = latest(log, &keys.trust())?;
    if let Some(refused) = ignored.first() {
        return Err(OpenError::Calibration {
            session: Excerpt::of(&refused.session),
            reason: Excerpt::of(&refused.reason),
        });
    }
    let mut in_force = CalibrationInForce::default();
    if let Some(Measured {
        session,
        seq,
        computed,
    }) = measured
    {
        in_force.flagged = computed.report.flagged().cloned().collect();
        in_force.computed = Some(ComputedAt { session, seq });
    }
    Ok(Some(in_force))
}

/// Of what writes the log.
pub(super) fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([("lodestar".to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
}

/// A session whose log is open, with a store that has caught up with all logs of the project.
pub(super) struct Begun {
    pub(super) log: LogWriter,
    /// Of one that goes on.
    pub(super) past: Option<Past>,
    pub(super) abandoned: Vec<Abandoned>,
    /// Requests of sessions that do not go on.
    pub(super) ended: Vec<Ended>,
    pub(super) store: Box<dyn Store>,
    pub(super) surroundings: SystemSurroundings,
}

impl Begun {
    /// Ends what crashed, and takes up the session that still waits for people, or creates one: that of a
    /// conversation, if there is one, or one apart. `without` is what a harness has taken out.
    pub(super) fn begin(
        (config, conversation, kin): (&Config, Option<String>, Option<&'static str>),
        keys: &Keys,
        log: &ProjectLog,
        opening: &Opening,
        without: &[Defence],
    ) -> Result<Self, OpenError> {
        let options = WriterOptions::new(Arc::clone(&keys.log)).without(without);
        let mut surroundings = SystemSurroundings::default();
        let wanted = match (conversation, kin, &config.session_id) {
            (Some(prefix), _, _) => Wanted::Conversation(prefix),
            (None, Some(kin), _) => Wanted::Apart(kin),
            (None, None, SessionName::Given(session)) => Wanted::This(session.clone()),
            (None, None, SessionName::Auto) => Wanted::Any,
        };
        let now = Clock::system().now();
        let Recovered {
            again,
            abandoned,
            ended,
        } = recover::interrupted(log, (keys, &options), opening, &wanted, now, &|| {
            open_store(config).map_err(|problem| GuardError::Unreadable(problem.to_string()))
        })?;
        let mut store = open_store(config)?;
        catch_up(store.as_mut(), &keys.keyring(), log, &keys.trust())?;
        let (writer, past) = match again {
            Some(TakenUp { writer, past }) => (writer, Some(past)),
            None => {
                let session = match wanted {
                    Wanted::This(session) => session,
                    Wanted::Any => surroundings.new_session("s"),
                    Wanted::Conversation(prefix) => surroundings.new_session(&prefix),
                    Wanted::Apart(kin) => surroundings.new_session(kin),
                };
                let actor = &config.actor_id;
                let writer = LogWriter::create(log, &session, actor, opening, &options)?;
                (writer, None)
            }
        };
        Ok(Self {
            log: writer,
            past,
            abandoned,
            ended,
            store,
            surroundings,
        })
    }
}

/// What is measured, and against which policy.
pub(super) fn world(config: &Config, gate: &Gate) -> World {
    let policy = config.policy.as_ref();
    let policy_file = policy.map(|policy| config.path(&policy.file));
    World::new(
        config.root().to_owned(),
        gate.policy().digest(),
        policy_file,
    )
}

/// What no tool may reach.
pub(super) fn protected(config: &Config, keys: &Keys) -> Protected {
    let mut named = config.files();
    named.extend(keys.dir.clone());
    Protected::new(config.root(), named).keeping(config.out_of_reach(keys.dir.as_deref()))
}

/// The project's log, as configured.
pub(crate) fn project_log(config: &Config) -> Result<ProjectLog, OpenError> {
    let root = LogRoot::at(config.path(&config.log_root));
    Ok(root.project(&config.project_id))
}

fn open_store(config: &Config) -> Result<Box<dyn Store>, OpenError> {
    Ok(match config.persistence.backend {
        Backend::Memory => Box::new(MemoryStore::new()),
        Backend::Sqlite => Box::new(SqliteStore::open(&state_file(config)?)?),
        Backend::Postgres => Box::new(PostgresStore::connect(&shared_state(config)?, None)?),
    })
}

/// Where beliefs and spent confirmations are kept on this machine; its folder is there.
pub(crate) fn state_file(config: &Config) -> Result<PathBuf, OpenError> {
    let dir = config.root().join(".lodestar");
    std::fs::create_dir_all(&dir).map_err(|problem| OpenError::Read {
        file: dir.clone(),
        problem,
    })?;
    Ok(dir.join("state.db"))
}

/// Where they are kept if several machines share them.
pub(crate) fn shared_state(config: &Config) -> Result<String, OpenError> {
    let name = config.persistence.connection_string_env.as_ref();
    let name = name.ok_or(OpenError::NoConnectionNamed)?;
    std::env::var(name).map_err(|_| OpenError::NoConnection(name.clone()))
}

/// Lodestar's own files are no change of the project: what is measured of a repository, and what somebody
/// commits in it, is without them.
pub(super) fn keep_out_of_git(config: &Config) -> Result<(), OpenError> {
    let dir = config.root().join(".lodestar");
    let file = dir.join(".gitignore");
    if !dir.is_dir() || file.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::write(&file, "*\n").map_err(|problem| OpenError::Read { file, problem })
}

pub(super) fn known_values(config: &Config) -> Result<Option<(String, String)>, OpenError> {
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

pub(super) fn random_key() -> [u8; 16] {
    let mut key = [0; 16];
    getrandom::fill(&mut key).expect("the system has randomness");
    key
}
