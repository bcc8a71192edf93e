//! The bridge from a governed session to a gateway: the session is registered as a run before it opens, its
//! checkpoints are sent while it goes on, and when it is over its log is shipped and attested.
//!
//! Whatever the gateway does, the session is governed and its log is written: what did not work is said, and
//! `lodestar run attest` can do the end later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lodestar_core::id::RunId;
use lodestar_core::key::SecretKey;
use lodestar_gateway::client::GatewayClient;
use lodestar_gateway::device::DeviceFolder;
use lodestar_gateway::run::{
    self, Finished, Follower, Place, Plan, RegisterError, RunBook, RunRecord, Stage,
};
use lodestar_gateway::service::Report;
use lodestar_guard::Keys;
use lodestar_guard::attend::{Attendant, Attending};
use lodestar_guard::config::{Config, Run};
use lodestar_kernel::opening::RunTicket;
use lodestar_log::SessionDir;
use serde::Serialize;

use crate::failure::Failure;
use crate::gateway::DeviceDirArgs;
use crate::{commands, inert};

/// How long a session waits for its run. An agent waits for the session, and gets one without a run rather than
/// none.
const REGISTERED_WITHIN: Duration = Duration::from_secs(5);

/// How long the end of a session waits until its run is shipped and attested: enough for a log of ordinary size to
/// be sent and judged, and little enough that whoever waits for the process does not give it up for dead. What is
/// not done by then, `lodestar run attest` does.
const SHIPPED_WITHIN: Duration = Duration::from_secs(60);

/// What became of one run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Became {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<String>,
    /// Why it did not come further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// A run that goes on.
#[derive(Debug)]
struct Going {
    record: RunRecord,
    follower: Option<Follower>,
}

/// Makes sessions runs of a gateway.
#[derive(Debug)]
pub(crate) struct Bridge {
    run: Run,
    folder: DeviceFolder,
    log_key: Arc<SecretKey>,
    /// A run that was registered beforehand, for the first session.
    ready: Mutex<Option<RunRecord>>,
    going: Mutex<BTreeMap<RunId, Going>>,
    became: Mutex<Vec<Became>>,
}

impl Bridge {
    /// The bridge that a configuration asks for; none where it asks for none. `ready` is a run that was
    /// registered beforehand; the device is the installation's, unless another is named on the command line.
    pub(crate) fn of(
        config: &Config,
        keys: &Keys,
        ready: Option<RunId>,
        device: &DeviceDirArgs,
    ) -> Result<Option<Arc<Self>>, Failure> {
        let Some(run) = config.run.clone() else {
            return match ready {
                None => Ok(None),
                Some(_) => Err(Failure::usage(
                    "the configuration has no `[run]`, so no session of it is a run",
                )),
            };
        };
        let folder = device.folder()?;
        let identity = folder.identity()?;
        let own = identity
            .gateway
            .url()
            .map_err(|problem| Failure::usage(problem.to_string()))?;
        if own != run.gateway {
            return Err(Failure::usage(format!(
                "`[run]` names the gateway {}, and this device is one of {own}",
                run.gateway
            )));
        }
        if identity.log_key != keys.log.public() {
            return Err(Failure::usage(
                "this installation's log key is not the one that the device was enrolled with, so nothing could be attested",
            )
            .help("LODESTAR_CONFIG_DIR names the installation; a new installation is a new device"));
        }
        // Files that are not there make no run; that is known before anything runs.
        plan(&run).map_err(Failure::usage)?;
        let ready = ready.map(|id| registered(&folder, id)).transpose()?;
        Ok(Some(Arc::new(Self {
            run,
            folder,
            log_key: Arc::clone(&keys.log),
            ready: Mutex::new(ready),
            going: Mutex::default(),
            became: Mutex::default(),
        })))
    }

    /// What became of the runs so far.
    pub(crate) fn became(&self) -> Vec<Became> {
        lock(&self.became).clone()
    }

    fn client(&self) -> Result<GatewayClient, String> {
        self.folder
            .client()
            .map_err(|problem| Failure::from(problem).with_help())
    }

    async fn registered(&self) -> Result<RunRecord, String> {
        if let Some(ready) = lock(&self.ready).take() {
            return Ok(ready);
        }
        let plan = plan(&self.run)?;
        let client = self.client()?;
        let registering = run::register(&self.folder, &client, plan);
        match tokio::time::timeout(REGISTERED_WITHIN, registering).await {
            Ok(registered) => registered.map_err(|problem| problem.to_string()),
            Err(_) => Err(format!(
                "the gateway took longer than {} seconds",
                REGISTERED_WITHIN.as_secs()
            )),
        }
    }

    /// Ships and attests a run, within what is named of time and unless the process is told to end meanwhile.
    async fn shipped(&self, going: Going) -> Result<Finished, String> {
        let Going {
            mut record,
            follower,
        } = going;
        let mut kept = record.clone();
        let shipping = async {
            let followed = match follower {
                Some(follower) => follower.end().await,
                None => None,
            };
            let client = match followed {
                Some(client) => client,
                None => self.client()?,
            };
            let done = run::finish(&self.folder, &client, &mut record, &self.log_key);
            done.await.map_err(|problem| problem.to_string())
        };
        // The first signal ended the session; another one is for this.
        let told_to_end = async {
            match commands::told_to_end() {
                Ok(told) => told.await,
                Err(_) => std::future::pending().await,
            }
        };
        let problem = tokio::select! {
            shipped = shipping => return shipped,
            () = told_to_end => "the process was told to end meanwhile".to_owned(),
            () = tokio::time::sleep(SHIPPED_WITHIN) => {
                format!("it took longer than {} seconds", SHIPPED_WITHIN.as_secs())
            }
        };
        kept.problem = Some(problem.clone());
        match RunBook::of(&self.folder).keep_unless_done(&kept) {
            Ok(()) => Err(problem),
            Err(unkept) => Err(format!("{problem}; that cannot be kept: {unkept}")),
        }
    }

    async fn end(&self, ticket: RunTicket) {
        let Some(going) = lock(&self.going).remove(&ticket.id) else {
            return;
        };
        let finished = self.shipped(going).await;
        let id = ticket.id;
        let became = match finished {
            Ok(finished) => {
                let evaluation = &finished.attested.evaluation;
                let stopped = match evaluation.stopped_by {
                    Some(fact) => format!("; more needs `{fact}`"),
                    None => String::new(),
                };
                say(&format!(
                    "{id} is `{}`, the gateway says{stopped}",
                    evaluation.level
                ));
                Became {
                    run: Some(id),
                    level: Some(evaluation.level.to_string()),
                    problem: finished.attested.found.reason,
                }
            }
            Err(problem) => {
                say(&format!(
                    "{id} is not attested: {problem}; its log is whole, and `lodestar run attest {id}` does it later"
                ));
                Became {
                    run: Some(id),
                    level: None,
                    problem: Some(problem),
                }
            }
        };
        lock(&self.became).push(became);
    }
}

impl Attendant for Bridge {
    fn register(&self) -> Attending<'_, Option<RunTicket>> {
        Box::pin(async move {
            match self.registered().await {
                Ok(record) => {
                    let ticket = record.ticket;
                    say(&format!(
                        "this session is {} at {}",
                        ticket.id, record.gateway
                    ));
                    let going = Going {
                        record,
                        follower: None,
                    };
                    lock(&self.going).insert(ticket.id, going);
                    Some(ticket)
                }
                Err(problem) => {
                    say(&format!(
                        "this session is governed and logged, but is no run, and cannot become one: {problem}"
                    ));
                    lock(&self.became).push(Became {
                        run: None,
                        level: None,
                        problem: Some(problem),
                    });
                    None
                }
            }
        })
    }

    fn opened(&self, ticket: RunTicket, dir: &SessionDir) {
        let mut going = lock(&self.going);
        let Some(one) = going.get_mut(&ticket.id) else {
            return;
        };
        one.record.session = Some(Place::of(dir));
        one.record.stage = Stage::Opened;
        if let Err(problem) = RunBook::of(&self.folder).keep(&one.record) {
            say(&format!(
                "what is known of {} cannot be kept: {problem}",
                ticket.id
            ));
        }
        match self.client() {
            Ok(client) => {
                let report = Report::to(say);
                one.follower = Some(Follower::begin(client, ticket.id, dir.clone(), report));
            }
            Err(problem) => say(&format!(
                "no checkpoint of {} is sent: {problem}",
                ticket.id
            )),
        }
    }

    fn closed(&self, ticket: RunTicket) -> Attending<'_, ()> {
        Box::pin(self.end(ticket))
    }
}

/// What a configuration says that its runs are.
pub(crate) fn plan(run: &Run) -> Result<Plan, String> {
    let recipe = run.recipe().map_err(|problem| problem.to_string())?;
    Ok(Plan {
        agent: run.agent,
        runner: run.runner,
        terms: run.terms,
        workflow_hash: recipe.workflow_hash,
        lens_hash: recipe.lens_hash,
    })
}

/// Why a run could not be registered, as an exit code.
pub(crate) fn not_registered(problem: RegisterError) -> Failure {
    match problem {
        RegisterError::Device(problem) => problem.into(),
        RegisterError::Gateway(problem) => problem.into(),
        RegisterError::Ask(problem) => problem.into(),
    }
}

/// A run that was registered and that no session is yet.
fn registered(folder: &DeviceFolder, id: RunId) -> Result<RunRecord, Failure> {
    let record = RunBook::of(folder).get(id)?;
    let record = record.ok_or_else(|| {
        Failure::not_found(format!("this device registered no run `{id}`"))
            .help("`lodestar run start` registers one")
    })?;
    match record.stage {
        Stage::Registered => Ok(record),
        _ => Err(
            Failure::usage(format!("a session was opened as `{id}` already"))
                .help("every session is a run of its own"),
        ),
    }
}

/// Standard output is the agent's, or a script's.
fn say(line: &str) {
    eprintln!("lodestar: {}", inert::whole(line));
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
