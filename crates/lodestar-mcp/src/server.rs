//! One server behind the proxy: started, greeted, listened to, and started again when it fails.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use lodestar_core::name::ServerIdentity;
use lodestar_guard::config::{Reached, Server as Configured, ServerName};
use lodestar_kernel::contain::{Containment, State as Contained};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::child::{self, Process, Wall};
use crate::conversation::{Conversation, Era};
use crate::offer::{self, Hello, Lists};
use crate::peer::{Peer, Said};
use crate::streams::{Outbox, write_lines};
use crate::{http, identity};

/// How long a list has to stay the same before it is pinned: servers add tools when they know the client.
const QUIET: Duration = Duration::from_millis(80);

/// How long a list may keep changing before it is taken as it is.
const SETTLING: Duration = Duration::from_secs(2);

/// The first pause before a failed server is started again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that was up for so long has not failed at starting.
const STABLE: Duration = Duration::from_secs(60);

/// Pieces of standard error that wait to be recorded; more is lost, and the log says that it is bounded.
const STDERR_PIECES: usize = 64;

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) configured: Configured,
    pub(crate) identity: ServerIdentity,
    root: PathBuf,
    wall: Wall,
    start_deadline: Duration,
    message_bytes: usize,
    state: Mutex<State>,
    /// What was in force around the process that was started last.
    contained: Mutex<Option<Containment>>,
    changed: watch::Sender<()>,
    /// Whether it was greeted without a handshake, and has not risen since.
    was_discovered: AtomicBool,
    /// Whom to ask what the server wants to know of the agent.
    pub(crate) conversation: OnceLock<Weak<Conversation>>,
}

/// How a server is.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// Not yet.
    Starting,
    /// It answers.
    Up(Arc<Up>),
    /// It does not, and why.
    Down(String),
}

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Up {
    pub(crate) peer: Peer,
    pub(crate) hello: Hello,
    pub(crate) lists: Lists,
    /// What was in force around it when it was started; none for one elsewhere.
    pub(crate) containment: Option<Containment>,
}

/// What the agent is to a server.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    pub(crate) capabilities: Value,
    pub(crate) client: Value,
    /// How it introduced itself; a server that knows the same way is spoken to so.
    pub(crate) era: Era,
}

/// Whoever is told what becomes of servers.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// It was started, is greeted and has settled. Before the first call, and after each restart.
    fn up(&self, server: &Arc<Server>, up: &Arc<Up>);
    /// Its lists may have changed since.
    fn relisted(&self, server: &Arc<Server>, lists: &Lists);
    /// It failed; whether it is started again.
    fn failed(&self, server: &Arc<Server>, why: &str, again: bool);
    /// It wrote to its standard error.
    fn wrote(&self, server: &Arc<Server>, piece: &[u8]);
    /// Something happened to a protected place that it could have done.
    fn warned(&self, server: &Arc<Server>, warning: &str);
    /// It said something on its own account.
    fn said(
        self: &Arc<Self>,
        server: &Arc<Server>,
        peer: &Peer,
        said: Said,
    ) -> impl Future<Output = ()> + Send;
}

/// A connection that is open.
struct Link {
    peer: Peer,
    heard: mpsc::Receiver<Said>,
    /// Ends with the reason when nothing more comes.
    reading: JoinHandle<String>,
    process: Option<Process>,
    remote: Option<http::Remote>,
    stderr: mpsc::Receiver<Vec<u8>>,
    warnings: mpsc::UnboundedReceiver<String>,
}

impl Server {
    /// A server as configured, not yet started.
    pub(crate) fn new(
        configured: Configured,
        root: PathBuf,
        wall: Wall,
        start_deadline: Duration,
        message_bytes: usize,
    ) -> Self {
        Self {
            identity: identity::of(&configured),
            wall,
            configured,
            root,
            start_deadline,
            message_bytes,
            state: Mutex::new(State::Starting),
            contained: Mutex::default(),
            changed: watch::Sender::new(()),
            was_discovered: AtomicBool::new(false),
            conversation: OnceLock::new(),
        }
    }

    /// What to look at when it did not live long: it may have needed what it was not granted.
    fn maybe_missing(&self) -> &'static str {
        match &*self.contained() {
            Some(one) if one.state != Contained::Absent => {
                "; it is contained: where it needs more, `read`, `write`, `network` or `sandbox` in its configuration grant it"
            }
            _ => "",
        }
    }

    fn contained(&self) -> MutexGuard<'_, Option<Containment>> {
        self.contained
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &ServerName {
        &self.configured.name
    }

    /// How it is.
    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// The connection, or why there is none.
    pub(crate) fn up(&self) -> Result<Arc<Up>, String> {
        match &*self.lock() {
            State::Up(up) => Ok(Arc::clone(up)),
            State::Starting => Err("it is being started".to_owned()),
            State::Down(why) => Err(why.clone()),
        }
    }

    /// Resolves once it is up or has failed for the first time.
    pub(crate) async fn settled(&self) {
        let mut changed = self.changed.subscribe();
        while matches!(self.state(), State::Starting) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps it running until the introduction's sender is gone: starts it at once, greets it when the agent
    /// has introduced itself, listens, and starts it again when it fails.
    pub(crate) async fn run<W: Watcher>(
        self: Arc<Self>,
        mut introduced: watch::Receiver<Option<Introduction>>,
        watcher: Arc<W>,
    ) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let why = match self.connect().await {
                Err(why) => why,
                Ok(mut link) => {
                    let why = self.serve(&mut link, &mut introduced, &watcher).await;
                    let over = introduced.has_changed().is_err();
                    let (ended, mut warnings) = link.close(over).await;
                    while let Ok(warning) = warnings.try_recv() {
                        watcher.warned(&self, &warning);
                    }
                    match ended {
                        _ if over => return,
                        Some(ended) if began.elapsed() < STABLE => {
                            format!("{why}; {ended}{}", self.maybe_missing())
                        }
                        Some(ended) => format!("{why}; {ended}"),
                        None => why,
                    }
                }
            };
            self.set(State::Down(why.clone()));
            if introduced.has_changed().is_err() {
                return;
            }
            watcher.failed(&self, &why, true);
            if began.elapsed() > STABLE {
                pause = FIRST_PAUSE;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = gone(&mut introduced) => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn connect(&self) -> Result<Link, String> {
        let (out, written) = Outbox::new();
        let peer = Peer::new(out);
        let (hear, heard) = Peer::hearing();
        let (errors, stderr) = mpsc::channel(STDERR_PIECES);
        let (warn, warnings) = mpsc::unbounded_channel();
        let limit = self.message_bytes;
        match &self.configured.reached {
            child @ Reached::Child { .. } => {
                let (process, streams, containment) = child::start(
                    child,
                    &self.root,
                    &self.wall,
                    child::Heard {
                        stderr: errors,
                        warnings: warn,
                    },
                )?;
                *self.contained() = Some(containment);
                tokio::spawn(write_lines(written, streams.input));
                let reader = peer.clone();
                let output = streams.output;
                Ok(Link {
                    reading: tokio::spawn(async move { reader.read(output, limit, hear).await }),
                    process: Some(process),
                    remote: None,
                    peer,
                    heard,
                    stderr,
                    warnings,
                })
            }
            Reached::Url { url, headers_env } => {
                let remote = http::Remote::new(url.as_str(), headers_env, limit)?;
                let reader = peer.clone();
                Ok(Link {
                    reading: tokio::spawn(remote.clone().run(written, reader, hear)),
                    process: None,
                    remote: Some(remote),
                    peer,
                    heard,
                    stderr,
                    warnings,
                })
            }
        }
    }

    /// Greets, lists, listens; gives the reason of its end.
    async fn serve<W: Watcher>(
        self: &Arc<Self>,
        link: &mut Link,
        introduced: &mut watch::Receiver<Option<Introduction>>,
        watcher: &Arc<W>,
    ) -> String {
        let mut ended = std::pin::pin!(async { (&mut link.reading).await });
        // What is said before the greeting is heard after it.
        let introduction = tokio::select! {
            found = introduced.wait_for(Option::is_some) => match found {
                Ok(found) => (*found).clone().expect("INVARIANT: waited for"),
                Err(_) => return "the agent left".to_owned(),
            },
            why = &mut ended => return why.unwrap_or_default(),
        };
        let peer = link.peer.clone();
        // One that ended over the first way of greeting is greeted the other way next time.
        let first = match introduction.era {
            Era::Inline if !self.was_discovered.swap(true, Ordering::Relaxed) => Era::Inline,
            Era::Inline | Era::Handshake => Era::Handshake,
        };
        let greeting = {
            let peer = peer.clone();
            tokio::spawn(async move {
                let hello = offer::greet(&peer, &introduction, first).await?;
                let lists = offer::lists(&peer, &hello).await?;
                Ok::<_, String>((hello, lists))
            })
        };
        let mut work = Some(Work::Greeting(greeting));
        let mut phase = Phase::Greeting;
        // Announced while the first lists were on their way: they may be from before it.
        let mut early = false;
        let deadline = Instant::now() + self.start_deadline;
        loop {
            let timer = match &phase {
                Phase::Greeting => deadline,
                Phase::Settling(settling) => settling.quiet,
                Phase::Up { .. } => Instant::now() + STABLE,
            };
            tokio::select! {
                biased;
                done = Work::done(&mut work), if work.is_some() => {
                    match self.worked(done, &mut phase, watcher, &peer) {
                        Ok(again) => work = again,
                        Err(why) => return why,
                    }
                    if let Phase::Settling(settling) = &mut phase {
                        settling.stale |= std::mem::take(&mut early);
                    }
                }
                Some(warning) = link.warnings.recv() => watcher.warned(self, &warning),
                Some(piece) = link.stderr.recv() => watcher.wrote(self, &piece),
                Some(said) = link.heard.recv() => {
                    if is_list_change(&said) {
                        match &mut phase {
                            Phase::Settling(settling) => {
                                settling.stale = true;
                                settling.quiet = Instant::now() + QUIET;
                            }
                            Phase::Up { up, .. } if work.is_none() => {
                                work = Some(Work::listing(&peer, &up.hello, self.start_deadline));
                            }
                            // The list that is on its way may be from before this change.
                            Phase::Up { again, .. } => *again = true,
                            Phase::Greeting => early = true,
                        }
                    }
                    watcher.said(self, &peer, said).await;
                }
                () = tokio::time::sleep_until(timer), if work.is_none() || matches!(phase, Phase::Greeting) => {
                    match self.elapsed(&mut phase, watcher, &peer) {
                        Ok(again) => work = again,
                        Err(why) => return why,
                    }
                }
                why = &mut ended => return why.unwrap_or_default(),
                () = gone(introduced) => return "the agent left".to_owned(),
            }
        }
    }

    /// A listing or the greeting is done.
    fn worked<W: Watcher>(
        self: &Arc<Self>,
        done: Done,
        phase: &mut Phase,
        watcher: &Arc<W>,
        peer: &Peer,
    ) -> Result<Option<Work>, String> {
        match (done, std::mem::replace(phase, Phase::Greeting)) {
            (Done::Greeted(greeted), _) => {
                let (hello, lists) = greeted?;
                *phase = match hello.may_change("tools") {
                    true => Phase::Settling(Box::new(Settling {
                        hello,
                        lists,
                        stale: false,
                        quiet: Instant::now() + QUIET,
                        since: Instant::now(),
                    })),
                    false => self.rise(peer, hello, lists, watcher),
                };
                Ok(None)
            }
            (Done::Listed(listed), Phase::Settling(mut settling)) => {
                settling.lists = listed?;
                settling.quiet = Instant::now() + QUIET;
                *phase = Phase::Settling(settling);
                Ok(None)
            }
            (Done::Listed(listed), Phase::Up { up, again }) => {
                // A list that cannot be had says nothing against the one that was pinned.
                if let Ok(lists) = listed {
                    watcher.relisted(self, &lists);
                }
                let work = again.then(|| Work::listing(peer, &up.hello, self.start_deadline));
                *phase = Phase::Up { up, again: false };
                Ok(work)
            }
            (Done::Listed(_), Phase::Greeting) => Ok(None),
        }
    }

    /// The time of a phase is over.
    fn elapsed<W: Watcher>(
        self: &Arc<Self>,
        phase: &mut Phase,
        watcher: &Arc<W>,
        peer: &Peer,
    ) -> Result<Option<Work>, String> {
        match std::mem::replace(phase, Phase::Greeting) {
            Phase::Greeting => Err(format!(
                "it did not say what it offers within {} ms",
                self.start_deadline.as_millis()
            )),
            Phase::Settling(mut settling)
                if settling.stale && settling.since.elapsed() < SETTLING =>
            {
                let work = Work::listing(peer, &settling.hello, self.start_deadline);
                settling.stale = false;
                settling.quiet = Instant::now() + QUIET;
                *phase = Phase::Settling(settling);
                Ok(Some(work))
            }
            Phase::Settling(settling) => {
                let Settling { hello, lists, .. } = *settling;
                *phase = self.rise(peer, hello, lists, watcher);
                Ok(None)
            }
            up @ Phase::Up { .. } => {
                *phase = up;
                Ok(None)
            }
        }
    }

    fn rise<W: Watcher>(
        self: &Arc<Self>,
        peer: &Peer,
        hello: Hello,
        lists: Lists,
        watcher: &Arc<W>,
    ) -> Phase {
        let up = Arc::new(Up {
            peer: peer.clone(),
            hello,
            lists,
            containment: self.contained().clone(),
        });
        self.was_discovered.store(false, Ordering::Relaxed);
        watcher.up(self, &up);
        self.set(State::Up(Arc::clone(&up)));
        Phase::Up { up, again: false }
    }
}

/// How far a server is.
enum Phase {
    Greeting,
    Settling(Box<Settling>),
    Up {
        up: Arc<Up>,
        /// Its list changed while it was being asked for.
        again: bool,
    },
}

/// A list that may still grow, and is asked for again until it is quiet.
struct Settling {
    hello: Hello,
    lists: Lists,
    stale: bool,
    quiet: Instant,
    since: Instant,
}

/// Requests that run beside the listening: their answers come over the same stream.
enum Work {
    Greeting(JoinHandle<Result<(Hello, Lists), String>>),
    Listing(JoinHandle<Result<Lists, String>>),
}

enum Done {
    Greeted(Result<(Hello, Lists), String>),
    Listed(Result<Lists, String>),
}

impl Work {
    /// Asks for the lists; a server that says nothing has said that much.
    fn listing(peer: &Peer, hello: &Hello, deadline: Duration) -> Self {
        let (peer, hello) = (peer.clone(), hello.clone());
        Self::Listing(tokio::spawn(async move {
            let listed = tokio::time::timeout(deadline, offer::lists(&peer, &hello)).await;
            listed.unwrap_or_else(|_| Err("it did not list what it offers in time".to_owned()))
        }))
    }

    async fn done(work: &mut Option<Self>) -> Done {
        let panicked = || "a part of the proxy panicked".to_owned();
        match work {
            Some(Self::Greeting(task)) => {
                Done::Greeted(task.await.unwrap_or_else(|_| Err(panicked())))
            }
            Some(Self::Listing(task)) => {
                Done::Listed(task.await.unwrap_or_else(|_| Err(panicked())))
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        match self {
            Self::Greeting(task) => task.abort(),
            Self::Listing(task) => task.abort(),
        }
    }
}

impl Link {
    /// Closes it; says how a process ended, and gives what is left to be said of it.
    async fn close(self, stop: bool) -> (Option<String>, mpsc::UnboundedReceiver<String>) {
        let Self {
            peer,
            reading,
            process,
            remote,
            warnings,
            ..
        } = self;
        peer.end("its connection is closed");
        reading.abort();
        drop(peer);
        if let Some(remote) = remote {
            remote.leave().await;
        }
        let ended = match process {
            None => None,
            Some(mut process) if stop => {
                process.stop().await;
                None
            }
            Some(mut process) => Some(process.ended().await),
        };
        (ended, warnings)
    }
}

fn is_list_change(said: &Said) -> bool {
    matches!(said, Said::Notification { method, .. } if method.ends_with("/list_changed"))
}

/// Resolves when the agent has left.
async fn gone(introduced: &mut watch::Receiver<Option<Introduction>>) {
    while introduced.changed().await.is_ok() {}
}
