//! What is asked of the gateway, what it decides, and what it records; without HTTP.
//!
//! Statements are verified where they are asked; what they mean is decided by one thread, which has the store
//! and the event log to itself and answers many at once. A refusal takes back what it was about and nothing
//! else. Whatever is answered is on disk.

mod attest;
mod desk;
mod devices;
mod folder;
mod grading;
mod journal;
mod known;
mod ladder;
mod orders;
mod platform;
mod refused;
mod registry;
mod report;
mod runs;
mod statement;
mod submissions;
mod writer;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::device::DeviceSettings;
use lodestar_core::event::EventType;
use lodestar_core::id::{AccountId, RunId};
use lodestar_core::key::PublicKey;
use lodestar_core::name::ActorId;
use lodestar_core::time::Timestamp;
use lodestar_log::Clock;
use serde_json::json;
use thiserror::Error;
use tokio::sync::{Semaphore, oneshot};

pub use folder::{Folder, FolderError};
pub use journal::{JournalError, PROJECT};
pub use known::{Caller, Identity};
pub(crate) use refused::Refused;
pub use report::Report;

use crate::code::{Code, Refusal};
use crate::config::{ConfigError, GatewayConfig};
use crate::store::{Sql, SqliteSql, StoreError, bundles, outbox, transaction};
use crate::wire;
use desk::{Coming, Desk, Job, Memory, Stop};
use journal::Journal;
use known::Known;
use writer::Writer;

/// Requests that wait to be decided, at most.
const WAITING: usize = 8192;

/// Why there is no service.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event log.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The thread that decides.
    #[error("the service's thread cannot be started: {0}")]
    Thread(std::io::Error),
}

/// What a service takes from outside.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The time.
    pub clock: Clock,
    /// Where it says what whoever runs it has to know.
    pub report: Report,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            report: Report::stderr(),
        }
    }
}

/// The service.
pub struct Service {
    work: SyncSender<Coming>,
    known: Arc<Known>,
    clock: Clock,
    settings: DeviceSettings,
    folder: Arc<Folder>,
    log_key: PublicKey,
    /// Turns at judging: as many as there are processors.
    turns: Arc<Semaphore>,
    /// The runs that are being judged, by whose device: nobody keeps another account from having its own judged.
    judged: Arc<Mutex<BTreeSet<(AccountId, RunId)>>>,
    failed: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    without: Arc<[Defence]>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("folder", &self.folder.path())
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Opens the service that a configuration describes.
    pub fn open(config: &GatewayConfig, surroundings: Surroundings) -> Result<Self, StartError> {
        config.validate()?;
        let folder = Folder::open(&config.data)?;
        let store = crate::store::open(&config.database()?)?;
        Self::over(config, folder, store, surroundings)
    }

    /// Opens the service over a store that somebody opened.
    pub fn over(
        config: &GatewayConfig,
        folder: Folder,
        sql: Box<dyn Sql>,
        surroundings: Surroundings,
    ) -> Result<Self, StartError> {
        Self::begun(config, folder, sql, surroundings, &[])
    }

    /// For a harness that takes defences out: a service that lacks them, says so in its log's opening, and
    /// keeps everything else in memory. Nothing but this argument leads here.
    ///
    /// The databases hold the same lines a second time, so that its store has none of their rules.
    pub fn lacking(
        config: &GatewayConfig,
        surroundings: Surroundings,
        without: &[Defence],
    ) -> Result<Self, StartError> {
        if without.is_empty() {
            return Self::open(config, surroundings);
        }
        config.validate()?;
        let folder = Folder::open(&config.data)?;
        let store = Box::new(SqliteSql::unguarded()?);
        Self::begun(config, folder, store, surroundings, without)
    }

    fn begun(
        config: &GatewayConfig,
        folder: Folder,
        mut sql: Box<dyn Sql>,
        surroundings: Surroundings,
        without: &[Defence],
    ) -> Result<Self, StartError> {
        let Surroundings { clock, report } = surroundings;
        // The store holds that nothing comes before what it rests on; a clock that is set back stands still.
        let clock = clock.never_before(Timestamp::MIN);
        let settings = config.devices;
        let key = folder.log_key()?;
        let log_key = key.public();
        let in_force = json!({"devices": settings});
        let mut journal = Journal::open(&folder.log(), key, clock.clone(), &in_force, without)?;
        let without: Arc<[Defence]> = without.into();
        let mut waited = 0;
        loop {
            let drained = journal.drain(sql.as_mut())?;
            waited += drained.events;
            if !drained.more {
                break;
            }
        }
        begin(sql.as_mut(), clock.now(), &settings, waited)?;
        forget_bundles(sql.as_mut(), &folder)?;
        let known = Arc::new(Known::default());
        let failed = Arc::new(AtomicBool::new(false));
        let (work, waiting) = sync_channel(WAITING);
        let writer = Writer {
            sql,
            journal,
            clock: clock.clone(),
            settings,
            known: Arc::clone(&known),
            work: waiting,
            sweep_every: Duration::from_secs(config.sweep_seconds),
            memory: Memory::begun(),
            report,
            failed: Arc::clone(&failed),
            without: Arc::clone(&without),
        };
        let thread = std::thread::Builder::new()
            .name("lodestar-gateway".to_owned())
            .spawn(move || writer.run())
            .map_err(StartError::Thread)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            work,
            known,
            clock,
            settings,
            folder: Arc::new(folder),
            log_key,
            turns: Arc::new(Semaphore::new(processors)),
            judged: Arc::default(),
            failed,
            thread: Mutex::new(Some(thread)),
            without,
        })
    }

    /// Asks the deciding thread.
    async fn ask<T, F>(&self, work: F) -> Result<T, Refusal>
    where
        F: FnOnce(&mut Desk<'_>) -> Result<T, Stop> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Job::new(work, reply));
        match self.work.try_send(Coming::Work(job)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Refusal::of(Code::Overloaded)),
            Err(TrySendError::Disconnected(_)) => return Err(Refusal::of(Code::ShuttingDown)),
        }
        let gone = |_| Refusal::of(Code::Internal);
        answer.await.map_err(gone)?
    }

    /// Whether a harness has taken this out.
    fn lacks(&self, defence: Defence) -> bool {
        self.without.contains(&defence)
    }

    /// The service's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What devices are held to.
    pub fn settings(&self) -> &DeviceSettings {
        &self.settings
    }

    /// The service's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The key that its event log is signed with.
    pub fn log_key(&self) -> PublicKey {
        self.log_key
    }

    /// Whether it can decide anything.
    pub async fn health(&self) -> Result<wire::Health, Refusal> {
        if self.failed.load(Ordering::Acquire) {
            let why = "the event log cannot be written";
            return Err(Refusal::saying(Code::Unavailable, why));
        }
        self.ask(|desk| Ok(desk.kill_switch()?)).await?;
        Ok(wire::Health {
            status: "ok".to_owned(),
            time: self.now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// Ends the service: decides what waits, puts everything into the log, and closes it. Whoever asks after
    /// this is told so.
    pub fn close(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else {
            return;
        };
        let _ = self.work.send(Coming::End);
        // A panic there has been reported by the panic hook; there is nobody left to tell.
        let _ = thread.join();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.close();
    }
}

/// Records that a service began.
fn begin(
    sql: &mut dyn Sql,
    now: Timestamp,
    settings: &DeviceSettings,
    waited: usize,
) -> Result<(), StoreError> {
    let payload = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "settings": settings,
        "waited": waited,
    });
    transaction(sql, |sql| {
        sql.act_as_server()?;
        let kind = EventType::GATEWAY_STARTED;
        outbox::push(sql, kind.as_str(), &payload.to_string(), now)
    })
}

/// Takes out the files of bundles that no run has: their upload was refused at its end, or cut off there.
fn forget_bundles(sql: &mut dyn Sql, folder: &Folder) -> Result<(), StartError> {
    let digests = folder.bundle_digests()?;
    let left = transaction(sql, |sql| {
        sql.act_as_server()?;
        let mut left = Vec::new();
        for digest in digests {
            if !bundles::is_known(sql, digest)? {
                left.push(digest);
            }
        }
        Ok::<_, StoreError>(left)
    })?;
    Ok(folder.forget_bundles(&left)?)
}

/// A page out of one more than it takes.
fn page<T>(mut items: Vec<T>, limit: usize, id: impl Fn(&T) -> String) -> wire::Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(id);
    wire::Page { items, next }
}

/// Whether a reason is one: some words, on one line.
fn check_reason(reason: &str, otherwise: Code) -> Result<(), Refusal> {
    let length = reason.chars().count();
    let plain = !reason.chars().any(char::is_control);
    match plain && (1..=wire::MAX_REASON).contains(&length) {
        true => Ok(()),
        false => {
            let most = wire::MAX_REASON;
            let why = format!("a reason has 1 to {most} characters, and no line ends");
            Err(Refusal::saying(otherwise, why).at("reason"))
        }
    }
}

/// A name out of the store, where every name was one.
fn name(text: &str) -> Result<ActorId, Refusal> {
    ActorId::new(text).map_err(|_| Refusal::of(Code::Internal))
}
