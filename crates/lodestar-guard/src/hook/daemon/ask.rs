//! The hook's side: finds the daemon or starts it, asks, and has an answer or none. Everything here blocks and
//! needs nothing but the system: a hook is a process of its own, and is to be over in milliseconds.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lodestar_core::name::Excerpt;
use thiserror::Error;

use super::place::{Belongs, Lock, Place, configuration_above};
use super::wire::{self, Asked, LONGEST_ANSWER, MAX_TOLD, Told, UP_WITHIN};
use crate::hook::{Answer, Incoming};
use crate::installation::files::FileError;
use crate::installation::{Installation, InstallationError};

/// How often a hook looks whether it does.
const LOOKS_EVERY: Duration = Duration::from_millis(5);

/// How long a question may take to be taken.
const SAID_WITHIN: Duration = Duration::from_secs(10);

/// How long a daemon may take to close its sessions.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// Why there is no answer. Whoever has none refuses.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// There is no configuration directory.
    #[error(transparent)]
    Installation(#[from] InstallationError),
    /// A file of the daemon's cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Nothing says what may be done.
    #[error(
        "there is no `lodestar.toml` in `{from}` or above, so nothing says what may run here; `lodestar hook install` or `lodestar init` writes one"
    )]
    NoProject {
        /// Where it was looked for.
        from: Excerpt,
    },
    /// Nobody listens, and nobody is to be started.
    #[error("the daemon that answers hooks is away")]
    Away,
    /// The daemon could not be started.
    #[error("the daemon that answers hooks cannot be started: {0}")]
    NotStarted(io::Error),
    /// It was started, and does not listen.
    #[error(
        "the daemon that answers hooks did not come up in time; `lodestar hook daemon --foreground` says why"
    )]
    NotUp,
    /// The connection broke.
    #[error("the daemon that answers hooks went away: {0}")]
    Lost(io::Error),
    /// It answered with something else.
    #[error("the daemon that answers hooks did not understand: {0}")]
    Misunderstood(String),
}

impl Unavailable {
    /// Whether the question was certainly not read to its end, so that nothing was decided. A socket is only
    /// reset, and only breaks while one writes, where the other side left something unread.
    fn is_unheard(&self) -> bool {
        let Self::Lost(problem) = self else {
            return false;
        };
        matches!(
            problem.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        )
    }
}

/// How a daemon is asked.
#[derive(Debug, Clone)]
pub struct Asking {
    installation: Installation,
    start: Option<PathBuf>,
}

/// Asks the daemon of the project that a client works in; starts this program as that daemon where there is
/// none.
pub fn ask(incoming: &Incoming) -> Result<Answer, Unavailable> {
    let program = std::env::current_exe().map_err(Unavailable::NotStarted)?;
    let asking = Asking::new(Installation::locate()?).starting(program);
    asking.ask(incoming)
}

/// Tells the daemon of a project to close its sessions and end, and waits for it; whether there was one.
pub fn stop(root: &Path) -> Result<bool, Unavailable> {
    Asking::new(Installation::locate()?).stop(root)
}

impl Asking {
    /// With the daemons of an installation; none is started.
    pub fn new(installation: Installation) -> Self {
        Self {
            installation,
            start: None,
        }
    }

    /// A daemon that is away is started with this program.
    #[must_use]
    pub fn starting(mut self, program: PathBuf) -> Self {
        self.start = Some(program);
        self
    }

    /// Asks.
    pub fn ask(&self, incoming: &Incoming) -> Result<Answer, Unavailable> {
        let root = self.root_of(incoming)?;
        let place = Place::of(&self.installation, &root);
        // The client's own word for where it works may be missing; the hook's is as good.
        let mut incoming = incoming.clone();
        if incoming.cwd.is_none() {
            incoming.cwd = std::env::current_dir().ok();
        }
        let asked = Asked::Said(Box::new(incoming));
        let mut told = exchange(self.reach(&place, &root)?, &place, &asked);
        if told.as_ref().is_err_and(Unavailable::is_unheard) {
            // A daemon that dies is still connected to for a moment.
            told = exchange(self.reach(&place, &root)?, &place, &asked);
        }
        match told? {
            Told::Answer(answer) => Ok(answer),
            Told::Problem(problem) => Err(Unavailable::Misunderstood(problem)),
            Told::Stopping => Err(Unavailable::Away),
        }
    }

    /// A connection to the daemon, which is started if it is away.
    fn reach(&self, place: &Place, root: &Path) -> Result<UnixStream, Unavailable> {
        match self.connect(place)? {
            Some(stream) => Ok(stream),
            None => self.start(place, root),
        }
    }

    /// Starts the daemon of a project, unless it runs, and waits until it listens.
    pub fn start_at(&self, root: &Path) -> Result<(), Unavailable> {
        let root = real(root)?;
        let place = Place::of(&self.installation, &root);
        self.reach(&place, &root).map(drop)
    }

    /// Tells the daemon of a project to end; whether there was one.
    pub fn stop(&self, root: &Path) -> Result<bool, Unavailable> {
        let root = real(root)?;
        let place = Place::of(&self.installation, &root);
        let Some(stream) = self.connect(&place)? else {
            return Ok(false);
        };
        exchange(stream, &place, &Asked::Stop)?;
        let until = Instant::now() + STOPPED_WITHIN;
        // It lets go of its lock when all sessions are closed.
        while place
            .lock(Lock::Daemon)
            .map_err(Unavailable::Lost)?
            .is_none()
        {
            if Instant::now() >= until {
                return Err(Unavailable::Lost(io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(LOOKS_EVERY);
        }
        Ok(true)
    }

    /// The root of the project that a conversation belongs to.
    fn root_of(&self, incoming: &Incoming) -> Result<PathBuf, Unavailable> {
        let belongs = Belongs::of(&self.installation, incoming);
        let settled = belongs.to()?;
        let configuration = match settled {
            Some(configuration) => Some(configuration),
            None => {
                let here = || std::env::current_dir().unwrap_or_default();
                let cwd = incoming.cwd.clone().unwrap_or_else(here);
                configuration_above(&cwd)
            }
        };
        let root = configuration.as_deref().and_then(Path::parent);
        root.map(Path::to_owned).ok_or_else(|| {
            let from = incoming.cwd.clone().unwrap_or_default();
            Unavailable::NoProject {
                from: Excerpt::of(&from.to_string_lossy()),
            }
        })
    }

    /// A connection to the daemon; none where nobody listens.
    fn connect(&self, place: &Place) -> Result<Option<UnixStream>, Unavailable> {
        let (path, _dir) = match place.short_socket() {
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(Unavailable::Lost)?,
        };
        match UnixStream::connect(path) {
            Ok(stream) => {
                // Another user could have put one there, were the folder open.
                place.check()?;
                Ok(Some(stream))
            }
            Err(problem)
                if matches!(
                    problem.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(problem) => Err(Unavailable::Lost(problem)),
        }
    }

    /// Starts the daemon, unless another hook does, and waits until it listens.
    fn start(&self, place: &Place, root: &Path) -> Result<UnixStream, Unavailable> {
        let program = self.start.as_ref().ok_or(Unavailable::Away)?;
        place.make()?;
        let until = Instant::now() + UP_WITHIN;
        let mut starting = None;
        loop {
            if let Some(stream) = self.connect(place)? {
                return Ok(stream);
            }
            if starting.is_none() {
                starting = place
                    .lock(Lock::Starting)
                    .map_err(Unavailable::NotStarted)?;
                // One that ends holds its lock until its sessions are closed.
                let running = place.lock(Lock::Daemon).map_err(Unavailable::NotStarted)?;
                match (&starting, running) {
                    (Some(_), Some(free)) => {
                        drop(free);
                        spawn(program, root).map_err(Unavailable::NotStarted)?;
                    }
                    _ => starting = None,
                }
            }
            if Instant::now() >= until {
                return Err(Unavailable::NotUp);
            }
            std::thread::sleep(LOOKS_EVERY);
        }
    }
}

fn real(root: &Path) -> Result<PathBuf, FileError> {
    root.canonicalize().map_err(|problem| FileError::Io {
        path: root.to_owned(),
        problem,
    })
}

/// Starts a daemon that has nothing of this process but its environment.
fn spawn(program: &Path, root: &Path) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(["hook", "daemon", "--foreground", "--root"]);
    command.arg(root);
    command.current_dir(root);
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// Says one thing and hears one.
fn exchange(mut stream: UnixStream, place: &Place, asked: &Asked) -> Result<Told, Unavailable> {
    let pass = place.pass()?;
    let mut said = pass.into_bytes();
    said.push(b'\n');
    let asked = wire::line(asked).map_err(|problem| Unavailable::Lost(problem.into()))?;
    said.extend(asked);
    let until = Instant::now() + LONGEST_ANSWER;
    let talk = || -> io::Result<Vec<u8>> {
        stream.set_write_timeout(Some(SAID_WITHIN))?;
        stream.write_all(&said)?;
        let mut heard = Vec::new();
        let mut piece = [0; 4096];
        while heard.last() != Some(&b'\n') {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || heard.len() > MAX_TOLD {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => heard.extend_from_slice(&piece[..length]),
            }
        }
        Ok(heard)
    };
    let mut talk = talk;
    let heard = talk().map_err(Unavailable::Lost)?;
    serde_json::from_slice(&heard)
        .map_err(|problem| Unavailable::Misunderstood(problem.to_string()))
}
