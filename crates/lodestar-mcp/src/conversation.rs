//! One agent's conversation: what it sends is taken message by message, goes through the session where it
//! acts or reads, and comes back under the agent's own ids.

mod asks;
mod calls;
mod favours;
mod inline;
mod open;
mod others;
mod rounds;
mod said;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_guard::Session;
use lodestar_guard::attend::Attendant;
use lodestar_guard::config::{Ceiling, Config};
use lodestar_guard::{GuardError, Keys};
use lodestar_kernel::contain::{Host, Hosting};
use lodestar_kernel::stop::Stop;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::answer::Forged;
use crate::catalogue::Catalogue;
use crate::child::Wall;
use crate::members::Members;
use crate::offer::REVISIONS;
use crate::peer::Answered;
use crate::server::{Introduction, Server};
use crate::streams::Outbox;
use crate::wire::{self, IdKey, Message};

/// JSON-RPC's words for what is wrong with a request.
pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// What Lodestar refuses where a result has no place for a refusal.
pub(crate) const REFUSED: i64 = -32001;

/// The first revision whose streams name themselves before they say anything.
const RESUMED: &str = "2025-11-25";

/// How long a request waits for the servers to be there.
const READY: Duration = Duration::from_secs(90);

/// How long a server may take to end.
const ENDING: Duration = Duration::from_secs(8);

/// What a conversation is begun with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The configuration.
    pub config: Config,
    /// The keys.
    pub keys: Keys,
    /// Another ceiling than the configuration's.
    pub ceiling: Option<Ceiling>,
    /// Another task than the configuration's.
    pub task: Option<String>,
    /// Who makes sessions runs of a gateway.
    pub attendant: Option<Arc<dyn Attendant>>,
    /// Defences that a harness takes out; none in earnest.
    pub without: Vec<Defence>,
}

/// One agent's conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    settings: Settings,
    servers: Vec<Arc<Server>>,
    /// Where goes what belongs to no request of the agent's.
    agent: Outbox,
    introduced: Mutex<Option<watch::Sender<Option<Introduction>>>>,
    opened: OnceLock<Result<Opened, String>>,
    ready: watch::Sender<bool>,
    /// The agent's requests that are out, and how each is stopped.
    running: Mutex<HashMap<IdKey, Stop>>,
    /// What the agent was asked.
    asked: Mutex<HashMap<u64, asks::Question>>,
    /// What servers asked of the agent.
    served: Mutex<favours::Served>,
    next: AtomicU64,
    room: Semaphore,
    /// Large results are dealt with one after the other: what is made of one takes many times its bytes.
    pub(crate) heavy: Arc<Semaphore>,
    /// Whether there was a handshake, or every request speaks for itself.
    era: OnceLock<Era>,
    /// The revision that a handshake came to.
    revision: OnceLock<&'static str>,
    /// Requests that listen to what changes.
    listeners: Mutex<Vec<inline::Listener>>,
    /// Calls of agents that cannot be asked otherwise.
    rounds: Mutex<rounds::Rounds>,
    /// What the agent can, by its own word.
    capabilities: OnceLock<Value>,
    /// What servers wrote to their standard error before there was a log.
    early: Mutex<Vec<(String, Vec<u8>)>>,
    /// What happened to protected places before there was a log, by server.
    warned: Mutex<Vec<(String, String)>>,
    output_left: AtomicU64,
    /// A server said that its tools changed, and the agent has not heard of it.
    tools_announced: AtomicBool,
    fatal: watch::Sender<bool>,
    /// What keeps the servers running.
    kept: Mutex<Vec<JoinHandle<()>>>,
}

/// A conversation whose session is open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) catalogue: Catalogue,
}

/// How an agent introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Once, with a handshake.
    Handshake,
    /// With every request, since 2026-07-28.
    Inline,
}

/// How a request is known beside its id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Called {
    /// Another key than its id, where ids of several agents meet.
    pub(crate) key: Option<IdKey>,
    /// What stops it.
    pub(crate) stop: Stop,
}

/// A request of the agent's, on its way.
#[derive(Debug)]
pub(crate) struct Request {
    /// The id, as the agent wrote it.
    pub(crate) id: Box<str>,
    pub(crate) key: IdKey,
    pub(crate) method: Box<str>,
    pub(crate) params: Option<Box<RawValue>>,
    /// Where its answer goes, and whatever belongs to it.
    pub(crate) back: Outbox,
    pub(crate) stop: Stop,
    pub(crate) era: Era,
    /// The rounds in which it is made, where its agent cannot be asked otherwise.
    pub(crate) rounds: Option<u64>,
    /// How much the agent wants to be told meanwhile.
    pub(crate) level: Option<&'static str>,
}

/// Most that is recorded of what servers write beside the protocol, in one session.
const MAX_OUTPUT: u64 = 256 << 10;

impl Conversation {
    /// Begins: every server is started at once.
    pub(crate) fn begin(settings: Settings, agent: Outbox) -> Arc<Self> {
        let limits = &settings.config.limits;
        let keys = settings.keys.dir.as_deref();
        let hosting: Hosting = match settings.without.contains(&Defence::Containment) {
            true => Host::enforcing_nothing,
            false => Host::here,
        };
        let servers = settings.config.downstream_servers.iter().map(|configured| {
            Arc::new(Server::new(
                configured.clone(),
                settings.config.root().to_owned(),
                Wall {
                    plan: settings.config.plan(configured, keys),
                    demand: configured.confines.containment,
                    hosting,
                },
                Duration::from_millis(limits.start_deadline_ms),
                limits.message_bytes,
            ))
        });
        let (introduced, introduction) = watch::channel(None);
        let conversation = Arc::new(Self {
            servers: servers.collect(),
            room: Semaphore::new(room(&settings)),
            heavy: Arc::new(Semaphore::new(1)),
            agent,
            introduced: Mutex::new(Some(introduced)),
            opened: OnceLock::new(),
            ready: watch::Sender::new(false),
            running: Mutex::default(),
            asked: Mutex::default(),
            served: Mutex::default(),
            next: AtomicU64::new(1),
            era: OnceLock::new(),
            revision: OnceLock::new(),
            listeners: Mutex::default(),
            rounds: Mutex::default(),
            capabilities: OnceLock::new(),
            early: Mutex::default(),
            warned: Mutex::default(),
            output_left: AtomicU64::new(MAX_OUTPUT),
            tools_announced: AtomicBool::new(false),
            fatal: watch::Sender::new(false),
            kept: Mutex::default(),
            settings,
        });
        let run = |server: &Arc<Server>| {
            let watcher = Arc::clone(&conversation);
            tokio::spawn(Arc::clone(server).run(introduction.clone(), watcher))
        };
        for server in &conversation.servers {
            let _ = server.conversation.set(Arc::downgrade(&conversation));
        }
        let kept = conversation.servers.iter().map(run).collect();
        *conversation
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = kept;
        conversation
    }

    /// Whether a harness took this defence out.
    pub(crate) fn lacks(&self, defence: Defence) -> bool {
        self.settings.without.contains(&defence)
    }

    /// What becomes of what servers say in Lodestar's name.
    fn forged(&self) -> Forged {
        match self.lacks(Defence::MetaStripped) {
            true => Forged::LeftIn,
            false => Forged::TakenOut,
        }
    }

    /// Takes one message of the agent's. What belongs to it goes to `back`.
    pub(crate) async fn take(self: &Arc<Self>, line: &[u8], back: &Outbox) {
        self.take_called(line, back, Called::default()).await;
    }

    /// As [`take`](Self::take), with more said about a request.
    pub(crate) async fn take_called(self: &Arc<Self>, line: &[u8], back: &Outbox, called: Called) {
        match Message::read(line) {
            Ok(Message::Request { id, method, params }) => {
                let request = Request {
                    era: self.era_of(&method, params),
                    id: id.text().into(),
                    key: called.key.unwrap_or_else(|| id.key()),
                    method: method.into(),
                    params: params.map(ToOwned::to_owned),
                    back: back.clone(),
                    stop: called.stop,
                    rounds: None,
                    level: None,
                };
                self.request(request).await;
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, params).await,
            Ok(Message::Answer { id, result }) => {
                self.answered(&id.key(), Answered::Result(result.to_owned()));
            }
            Ok(Message::Failure { id, error }) => {
                if let Some(id) = id {
                    self.answered(&id.key(), Answered::Error(error.to_owned()));
                }
            }
            Err(refused) => {
                let code = match refused.why {
                    wire::Malformed::NoJson(_) => PARSE_ERROR,
                    _ => INVALID_REQUEST,
                };
                let id = refused.id.map(|id| id.text());
                let mut message = Vec::new();
                wire::failure(&mut message, id, code, &refused.why.to_string());
                let _ = back.put(message).await;
            }
        }
    }

    /// A message was too long to be read.
    pub(crate) async fn too_long(&self, bytes: u64, back: &Outbox) {
        let limit = self.settings.config.limits.message_bytes;
        let why = format!("the message takes {bytes} bytes; the limit is {limit}");
        let mut message = Vec::new();
        wire::failure(&mut message, None, INVALID_REQUEST, &why);
        let _ = back.put(message).await;
    }

    /// What was agreed on first holds; until then, a request may speak for itself.
    fn era_of(&self, method: &str, params: Option<&RawValue>) -> Era {
        match self.era.get() {
            Some(era) => *era,
            None if method == "server/discover" || crate::inline::names_itself(params) => {
                Era::Inline
            }
            None => Era::Handshake,
        }
    }

    async fn request(self: &Arc<Self>, request: Request) {
        // Known from now on: what stops it may be the very next message.
        let twice = {
            let mut running = self.running();
            match running.entry(request.key.clone()) {
                std::collections::hash_map::Entry::Occupied(_) => true,
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(request.stop.clone());
                    false
                }
            }
        };
        if twice {
            let why = "a request with this id is still running";
            request.fail(INVALID_REQUEST, why).await;
            return;
        }
        let conversation = Arc::clone(self);
        tokio::spawn(async move {
            let running = Running(&conversation, request.key.clone());
            match request.era {
                Era::Handshake => conversation.serve(request).await,
                Era::Inline => conversation.serve_inline(request).await,
            }
            drop(running);
        });
    }

    async fn serve(self: &Arc<Self>, request: Request) {
        match &*request.method {
            "tools/call" => self.call_tool(request).await,
            "initialize" => self.initialize(&request).await,
            "ping" => request.answer("{}").await,
            "tools/list" => self.list_tools(&request).await,
            "resources/list" | "resources/templates/list" | "prompts/list" => {
                self.list(&request).await;
            }
            "resources/read" | "resources/subscribe" => self.resource(request).await,
            "resources/unsubscribe" => self.unsubscribe(&request).await,
            "prompts/get" => self.prompt(request).await,
            "completion/complete" => self.complete(request).await,
            "logging/setLevel" => self.set_level(&request).await,
            _ => {
                let why = format!(
                    "`{}` is not offered here",
                    lodestar_core::name::Excerpt::of(&request.method)
                );
                request.fail(METHOD_NOT_FOUND, &why).await;
            }
        }
    }

    /// The handshake: the servers hear what the agent can, as far as they may; the agent hears what they can.
    async fn initialize(self: &Arc<Self>, request: &Request) {
        let params: Value = request.params.as_deref().map_or(Value::Null, |params| {
            serde_json::from_str(params.get()).unwrap_or_default()
        });
        if self
            .capabilities
            .set(params["capabilities"].clone())
            .is_err()
        {
            request
                .fail(INVALID_REQUEST, "the handshake was made already")
                .await;
            return;
        }
        let _ = self.era.set(Era::Handshake);
        self.introduce(
            &params["capabilities"],
            &params["clientInfo"],
            Era::Handshake,
        );
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let revision = REVISIONS.iter().find(|revision| **revision == asked);
        let revision = *revision.unwrap_or(&REVISIONS[0]);
        let _ = self.revision.set(revision);
        for server in &self.servers {
            server.settled().await;
        }
        let opening = Arc::clone(self);
        tokio::spawn(async move { opening.open().await });
        request.answer(&self.hello(revision)).await;
    }

    fn introduce(&self, capabilities: &Value, client: &Value, era: Era) {
        let mut offered = json!({});
        if let Some(roots) = capabilities.get("roots") {
            offered["roots"] = roots.clone();
        }
        for (capability, name) in [
            ("sampling", "sampling.create"),
            ("elicitation", "elicitation.create"),
        ] {
            let is_graded = self.servers.iter().any(|server| {
                let ledger = crate::catalogue::ledger_name(server, name);
                self.settings.config.tool_defaults.contains_key(&ledger)
            });
            if let (Some(own), true) = (capabilities.get(capability), is_graded) {
                offered[capability] = own.clone();
            }
        }
        let introduced = self
            .introduced
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(introduced) = &*introduced {
            introduced.send_replace(Some(Introduction {
                capabilities: offered,
                client: client.clone(),
                era,
            }));
        }
    }

    /// What all servers together can, in their words, and what they tell agents.
    fn hello(&self, revision: &str) -> String {
        let up: Vec<_> = self
            .servers
            .iter()
            .filter_map(|server| Some((server, server.up().ok()?)))
            .collect();
        let any = |capability: &str| up.iter().any(|(_, up)| up.hello.can(capability));
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if any("resources") {
            let subscribe = up
                .iter()
                .any(|(_, up)| up.hello.capabilities["resources"]["subscribe"] == json!(true));
            capabilities["resources"] = json!({"subscribe": subscribe, "listChanged": true});
        }
        if any("prompts") {
            capabilities["prompts"] = json!({"listChanged": true});
        }
        for capability in ["logging", "completions"] {
            if any(capability) {
                capabilities[capability] = json!({});
            }
        }
        let told: Vec<String> = up
            .iter()
            .filter_map(|(server, up)| {
                let instructions = self.instructions(server, up.hello.instructions.as_deref())?;
                Some(match self.servers.len() {
                    1 => instructions,
                    _ => format!("# {}\n{instructions}", server.name()),
                })
            })
            .collect();
        let mut hello = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": crate::inline::server(),
        });
        if !told.is_empty() {
            hello["instructions"] = told.join("\n\n").into();
        }
        hello.to_string()
    }

    async fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/cancelled" => {
                let Ok(members) = Members::of_some(params) else {
                    return;
                };
                let id = members.get("requestId").and_then(crate::wire::Id::read);
                if let Some(id) = id
                    && let Some(stop) = self.running().get(&id.key())
                {
                    stop.stop();
                }
            }
            "notifications/progress" => self.agent_reported(params),
            "notifications/roots/list_changed" => {
                for server in &self.servers {
                    if let Ok(up) = server.up() {
                        up.peer.tell_if_room(method, params);
                    }
                }
            }
            _ => {}
        }
    }

    /// The session, as soon as there is one.
    pub(crate) async fn ready(&self) -> Result<&Opened, String> {
        if self.capabilities.get().is_none() {
            return Err("the handshake comes first".to_owned());
        }
        if self.opened.get().is_none() {
            let mut ready = self.ready.subscribe();
            let waited = tokio::time::timeout(READY, ready.wait_for(|ready| *ready)).await;
            if waited.is_err() || self.opened.get().is_none() {
                return Err("its servers are still being started".to_owned());
            }
        }
        match self.opened.get() {
            Some(Ok(opened)) => Ok(opened),
            Some(Err(why)) => Err(why.clone()),
            None => Err("it is closing".to_owned()),
        }
    }

    /// Whether the agent knows streams that name themselves before they say anything.
    pub(crate) fn agent_resumes(&self) -> bool {
        let revision = self.revision.get();
        revision.is_some_and(|revision| *revision >= RESUMED)
    }

    /// Resolves when the conversation cannot go on.
    pub(crate) async fn broken(&self) -> String {
        let mut fatal = self.fatal.subscribe();
        let _ = fatal.wait_for(|fatal| *fatal).await;
        match self.opened.get() {
            Some(Err(why)) => why.clone(),
            _ => "the session cannot go on".to_owned(),
        }
    }

    /// Ends it: servers are stopped, calls ended, the session closed.
    pub(crate) async fn close(&self, reason: &str) -> Result<(), GuardError> {
        for stop in self.running().values() {
            stop.stop();
        }
        let over = tokio::time::Instant::now() + ENDING;
        while !self.running().is_empty() && tokio::time::Instant::now() < over {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Without it, every server knows that the agent has left.
        drop(
            self.introduced
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        for mut server in kept {
            // Whoever is stuck goes with everything it started.
            if tokio::time::timeout(ENDING, &mut server).await.is_err() {
                server.abort();
            }
        }
        // Last: what servers did at their end stands in the log, too.
        match self.opened.get() {
            Some(Ok(opened)) => opened.session.close(reason).await.map(drop),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// The session, where it is open.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self.opened.get() {
            Some(Ok(opened)) => Some(&opened.session),
            Some(Err(_)) | None => None,
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<IdKey, Stop>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many calls run side by side. For a harness that takes [`Defence::ServersApart`] out: one, so that
/// whoever does not answer holds up everybody.
fn room(settings: &Settings) -> usize {
    match settings.without.contains(&Defence::ServersApart) {
        true => 1,
        false => settings.config.limits.concurrent_calls.max(1),
    }
}

/// A request that runs.
struct Running<'a>(&'a Conversation, IdKey);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running().remove(&self.1);
    }
}

impl Request {
    /// Answers it.
    pub(crate) async fn answer(&self, result: &str) {
        let complete = match self.era {
            Era::Handshake => None,
            Era::Inline => Some(crate::inline::complete(&self.method, result)),
        };
        let result = complete.as_deref().unwrap_or(result);
        let mut message = Vec::with_capacity(result.len() + 48);
        wire::answer(&mut message, &self.id, result);
        let _ = self.back.put(message).await;
    }

    /// Answers it with an error that somebody else wrote.
    pub(crate) async fn error(&self, error: &str) {
        let mut message = Vec::with_capacity(error.len() + 48);
        wire::error(&mut message, &self.id, error);
        let _ = self.back.put(message).await;
    }

    /// Answers that it failed.
    pub(crate) async fn fail(&self, code: i64, why: &str) {
        let mut message = Vec::new();
        wire::failure(&mut message, Some(&self.id), code, why);
        let _ = self.back.put(message).await;
    }
}
