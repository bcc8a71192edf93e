//! The daemon behind the hooks of a project: one governed session for each conversation of a client, kept
//! open, so that a hook costs a message and not a session.
//!
//! It listens on a socket in the user's configuration directory ([`place`]) and answers whoever runs as the
//! same user and shows the pass that lies beside it. A hook that finds nobody starts it ([`ask`]); where it
//! does not come up, the hook has no answer, and whoever has none refuses. What it says to a client is decided
//! by the session alone ([`conversation`]).

mod ask;
mod conversation;
mod conversations;
mod place;
mod wire;

pub use ask::{Asking, Unavailable, ask, stop};
pub use place::configuration_above;

use std::fs::File;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::name::Excerpt;
use lodestar_kernel::stop::Stop;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::conversations::Conversations;
use self::place::{Belongs, Lock, Place};
use self::wire::{Asked, MAX_ASKED, Told};
use super::{Answer, Client, Event, Incoming, Kind, Use, tools};
use crate::attend::Attendant;
use crate::config::Config;
use crate::installation::Installation;
use crate::installation::files::FileError;
use crate::keys::Keys;

/// Most hooks that are answered at the same time; one more is told so.
const MAX_CONNECTIONS: usize = 128;

/// How long a hook may take to show its pass.
const PASS_WITHIN: Duration = Duration::from_secs(2);

/// How long it may take to say what it has to say.
const SAID_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take to hear the answer.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// Longest pass.
const MAX_PASS: usize = 256;

/// How often the daemon looks for conversations that fell silent.
const LOOKS_EVERY: Duration = Duration::from_secs(20);

/// How long it stays without any conversation.
const LINGERS: Duration = Duration::from_secs(600);

/// How a configuration gives keys.
pub type KeysOf = Arc<dyn Fn(&Config) -> Result<Keys, String> + Send + Sync>;

/// Who makes sessions of a configuration runs of a gateway.
pub type AttendantOf =
    Arc<dyn Fn(&Config, &Keys) -> Result<Option<Arc<dyn Attendant>>, String> + Send + Sync>;

/// Whether a tool that a client calls by this name, which begins with that of its server, certainly is one of the proxy
/// of the project that this folder is in.
pub type IsProxy = Arc<dyn Fn(Client, &Path, &str) -> bool + Send + Sync>;

/// What a daemon works with.
#[derive(Clone)]
pub struct Settings {
    installation: Installation,
    root: PathBuf,
    keys: KeysOf,
    attendant: AttendantOf,
    is_proxy: IsProxy,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// For the project at this root, with the keys of an installation.
    pub fn new(installation: Installation, root: &Path) -> io::Result<Self> {
        let dir = installation.dir().to_owned();
        Ok(Self {
            root: root.canonicalize()?,
            keys: Arc::new(move |_| Keys::at(&dir).map_err(|problem| problem.to_string())),
            attendant: Arc::new(|_, _| Ok(None)),
            // Whoever cannot tell says no: what the name of a server promises, anybody can promise.
            is_proxy: Arc::new(|_, _, _| false),
            installation,
        })
    }

    /// With keys that are looked for otherwise.
    #[must_use]
    pub fn keys(mut self, keys: KeysOf) -> Self {
        self.keys = keys;
        self
    }

    /// With somebody who makes sessions runs.
    #[must_use]
    pub fn attended(mut self, attendant: AttendantOf) -> Self {
        self.attendant = attendant;
        self
    }

    /// With somebody who knows the project's own proxy, whose calls are judged there and not twice.
    #[must_use]
    pub fn proxy(mut self, is_proxy: IsProxy) -> Self {
        self.is_proxy = is_proxy;
        self
    }
}

/// Why there is no daemon.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// There is one already.
    #[error("a daemon answers the hooks of this project already")]
    Running,
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FileError),
    /// The system refused.
    #[error("the daemon cannot listen: {0}")]
    Listen(#[from] io::Error),
}

/// A daemon that listens. Needs a runtime.
pub struct Daemon {
    settings: Settings,
    place: Place,
    pass: Digest,
    conversations: Conversations,
    room: Semaphore,
    over: Stop,
    /// Held for as long as it runs: there is one of them.
    _lock: File,
}

impl Daemon {
    /// Takes the project's socket.
    pub fn bind(settings: Settings) -> Result<(Arc<Self>, UnixListener), DaemonError> {
        let place = Place::of(&settings.installation, &settings.root);
        place.make()?;
        place::forget_old(&settings.installation);
        let lock = place.lock(Lock::Daemon)?.ok_or(DaemonError::Running)?;
        // Before anybody can connect: whoever does finds the pass of this daemon.
        let pass = place.make_pass()?;
        match std::fs::remove_file(place.socket()) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem.into()),
            _ => {}
        }
        let (path, _dir) = place.short_socket()?;
        let listener = UnixListener::bind(&path)?;
        let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, own)?;
        let daemon = Self {
            settings,
            pass: sha256(pass.as_bytes()),
            place,
            conversations: Conversations::default(),
            room: Semaphore::new(MAX_CONNECTIONS),
            over: Stop::new(),
            _lock: lock,
        };
        Ok((Arc::new(daemon), listener))
    }

    /// Answers hooks until it is told to end, by this or by a hook, or until nobody has spoken for a while;
    /// then it closes all sessions.
    pub async fn serve(self: Arc<Self>, listener: UnixListener, until: impl Future<Output = ()>) {
        let mut until = std::pin::pin!(until);
        let mut looks = tokio::time::interval(LOOKS_EVERY);
        let mut busy = Instant::now();
        let reason = loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        busy = Instant::now();
                        let daemon = Arc::clone(&self);
                        tokio::spawn(async move { daemon.attend(stream).await });
                    }
                    // Descriptors may be short for a moment.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
                _ = looks.tick() => {
                    self.conversations.close_silent().await;
                    if !self.conversations.is_empty() {
                        busy = Instant::now();
                    } else if busy.elapsed() >= LINGERS {
                        break "nobody spoke for a long time";
                    }
                }
                () = self.over.stopped() => break "the daemon was told to stop",
                () = &mut until => break "the daemon was ended",
            }
        };
        // Nobody connects to one that closes its sessions; the lock stays until they are closed.
        let _ = std::fs::remove_file(self.place.socket());
        drop(listener);
        self.over.stop();
        self.conversations.close_all(reason).await;
    }

    /// One hook.
    async fn attend(self: Arc<Self>, mut stream: UnixStream) {
        let own = rustix::process::geteuid().as_raw();
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
            return;
        }
        let Ok(_room) = self.room.try_acquire() else {
            say(
                &mut stream,
                &Told::Problem("too many hooks at once".to_owned()),
            )
            .await;
            return;
        };
        let mut heard = Vec::new();
        let pass = timeout(PASS_WITHIN, read_line(&mut stream, &mut heard, MAX_PASS)).await;
        let Ok(Ok(pass)) = pass else { return };
        if sha256(&pass) != self.pass {
            say(
                &mut stream,
                &Told::Problem("that is not the pass".to_owned()),
            )
            .await;
            return;
        }
        let asked = timeout(SAID_WITHIN, read_line(&mut stream, &mut heard, MAX_ASKED)).await;
        let asked = match asked {
            Ok(Ok(line)) => serde_json::from_slice::<Asked>(&line),
            Ok(Err(problem)) => {
                say(&mut stream, &Told::Problem(problem.to_string())).await;
                return;
            }
            Err(_) => return,
        };
        match asked {
            Ok(Asked::Said(incoming)) => self.answer(stream, &incoming).await,
            Ok(Asked::Stop) => {
                self.over.stop();
                say(&mut stream, &Told::Stopping).await;
            }
            Err(problem) => {
                let problem = Excerpt::of(&problem.to_string()).to_string();
                say(&mut stream, &Told::Problem(problem)).await;
            }
        }
    }

    /// Answers what a client said, unless the hook goes away first.
    async fn answer(&self, mut stream: UnixStream, incoming: &Incoming) {
        let stop = Stop::new();
        let mut deciding = std::pin::pin!(self.decide(incoming, &stop));
        let mut more = [0];
        let decided = tokio::select! {
            biased;
            decided = &mut deciding => Some(decided),
            // It has nothing more to say: this is its end.
            _ = stream.read(&mut more) => None,
        };
        let (decided, heard) = match decided {
            Some(decided) => {
                let told = Told::Answer(decided.answer.clone());
                let heard = say(&mut stream, &told).await;
                (decided, heard)
            }
            None => {
                stop.stop();
                (deciding.await, false)
            }
        };
        if let (false, Some(cleared)) = (heard, decided.cleared)
            && let Some(conversation) = self.conversations.find(incoming).await
        {
            conversation.give_up(cleared);
        }
    }

    async fn decide(&self, incoming: &Incoming, stop: &Stop) -> Decided {
        if self.over.is_stopped() {
            return refuse(ENDING);
        }
        if let Event::Ended { reason } = &incoming.event {
            let reason = format!("the client ended it: {}", Excerpt::of(reason));
            let closed = self.conversations.close_of(incoming, &reason).await;
            Belongs::of(&self.settings.installation, incoming).forget();
            return match closed {
                Ok(()) => proceed(),
                Err(problem) => refuse(&problem),
            };
        }
        if let Event::Before { r#use } | Event::After { r#use, .. } = &incoming.event
            && self.is_of_proxy(incoming, r#use).await
        {
            // It is judged and recorded there, as it arrives.
            return proceed();
        }
        let opened = self.conversations.find_or_open(self, incoming).await;
        let conversation = match opened {
            Ok(conversation) => conversation,
            Err(problem) => return refuse(&problem),
        };
        let cwd = incoming.cwd.as_deref();
        let done = match &incoming.event {
            Event::Started | Event::Ended { .. } => Ok(()),
            Event::Prompt { text } => {
                let stated = conversation.session.state_prompt(text).await;
                stated.map_err(|problem| problem.to_string())
            }
            Event::Before { r#use } => {
                let before = conversation.before(r#use, cwd, stop).await;
                return Decided {
                    answer: before.answer,
                    cleared: before.cleared,
                };
            }
            Event::After {
                r#use,
                result,
                failed,
            } => {
                let told = tools::Told {
                    result: result.clone(),
                    failed: *failed,
                };
                conversation.after(r#use, cwd, told).await
            }
        };
        match done {
            Ok(()) => proceed(),
            Err(problem) => refuse(&problem),
        }
    }

    /// Whether a use is one of a tool behind the project's own proxy.
    async fn is_of_proxy(&self, incoming: &Incoming, used: &Use) -> bool {
        // Where the server's name ends and the tool's begins is for whoever knows all servers: both may hold `__`.
        let tool = used.tool.strip_prefix("mcp__");
        let Some(tool) = tool.filter(|_| used.kind == Kind::Mcp).map(str::to_owned) else {
            return false;
        };
        let (is_proxy, client) = (Arc::clone(&self.settings.is_proxy), incoming.client);
        let root = &self.settings.root;
        let from = incoming
            .cwd
            .as_ref()
            .and_then(|cwd| cwd.canonicalize().ok());
        let from = from.filter(|cwd| cwd.starts_with(root));
        let from = from.unwrap_or_else(|| root.clone());
        // It reads the files of clients.
        let looking = tokio::task::spawn_blocking(move || is_proxy(client, &from, &tool));
        looking.await.unwrap_or(false)
    }
}

/// What is said to a hook that comes too late.
const ENDING: &str = "the daemon is about to end; try again in a moment";

/// What a hook is answered; and the use, if it was cleared.
struct Decided {
    answer: Answer,
    cleared: Option<u64>,
}

fn proceed() -> Decided {
    Decided {
        answer: Answer::Proceed,
        cleared: None,
    }
}

fn refuse(problem: &str) -> Decided {
    let reason = format!("Lodestar: {problem}. Nothing runs ungoverned; tell the user.");
    Decided {
        answer: Answer::Refuse { reason },
        cleared: None,
    }
}

/// Says something; whether it was heard.
async fn say(stream: &mut UnixStream, told: &Told) -> bool {
    let Ok(line) = wire::line(told) else {
        return false;
    };
    let said = timeout(HEARD_WITHIN, stream.write_all(&line)).await;
    matches!(said, Ok(Ok(())))
}

/// Reads a line; what came behind it stays in `heard`.
async fn read_line(
    stream: &mut UnixStream,
    heard: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Vec<u8>> {
    let mut looked = 0;
    loop {
        if let Some(at) = heard[looked..].iter().position(|byte| *byte == b'\n') {
            let rest = heard.split_off(looked + at + 1);
            let mut line = std::mem::replace(heard, rest);
            line.pop();
            return match line.len() <= limit {
                true => Ok(line),
                false => Err(too_long(limit)),
            };
        }
        looked = heard.len();
        if looked > limit {
            return Err(too_long(limit));
        }
        let mut piece = [0; 16 << 10];
        let length = stream.read(&mut piece).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        heard.extend_from_slice(&piece[..length]);
    }
}

fn too_long(limit: usize) -> io::Error {
    let problem = format!("a line takes more than {limit} bytes");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// What went wrong where no hook waits for it.
fn tell(done: Result<(), String>) {
    if let Err(problem) = done {
        eprintln!("lodestar: {}", Excerpt::of(&problem));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_an_error_and_never_the_line_behind_it() {
        for (said, limit) in [("0123456789\nshort\n", 4), ("0123456789", 4)] {
            let (mut one, mut other) = UnixStream::pair().unwrap();
            one.write_all(said.as_bytes()).await.unwrap();
            let problem = read_line(&mut other, &mut Vec::new(), limit).await;
            let problem = problem.expect_err("it is too long");
            assert_eq!(problem.kind(), io::ErrorKind::InvalidData, "{said:?}");
        }
        let (mut one, mut other) = UnixStream::pair().unwrap();
        one.write_all(b"0123\nnext\n").await.unwrap();
        let mut heard = Vec::new();
        assert_eq!(read_line(&mut other, &mut heard, 4).await.unwrap(), b"0123");
        assert_eq!(read_line(&mut other, &mut heard, 4).await.unwrap(), b"next");
    }

    /// The guide says how long what is waited for, and is read by people who rely on it.
    #[test]
    fn the_guide_has_the_times_of_the_code() {
        use crate::hook::settings::{CLIENT_WAITS, DEADLINE};
        let guide =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/hooks.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let guide = guide.split_whitespace().collect::<Vec<_>>().join(" ");
        let (waits, deadline) = (CLIENT_WAITS.as_secs(), DEADLINE.as_secs());
        let hold = wire::LONGEST_HOLD.as_secs();
        for said in [
            format!("too late (after {deadline} seconds)"),
            format!("waits for people for {hold} seconds at most"),
            format!("({deadline} seconds of {waits})"),
        ] {
            assert!(guide.contains(&said), "the guide does not say: {said}");
        }
    }
}
