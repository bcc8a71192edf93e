//! The way from inside to Lodestar.
//!
//! A client inside starts `lodestar guard mcp-proxy` as it always does. In there that is a relay ([`relay`]): it asks
//! for the real one, which is started outside, where keys and log are, and passes bytes on. Its hooks are answered
//! outside, too ([`hook`]). Which configuration is in force was settled outside; nothing that is said inside changes it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use lodestar_core::digest::sha256;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::protocol::{MAX_INPUT, Spoken};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};

/// The variable with the address of the way.
pub(crate) const ADDRESS: &str = "LODESTAR_WAY";

/// The variable with the word that opens it.
pub(super) const TOKEN: &str = "LODESTAR_WAY_TOKEN";

/// Longest first line.
const MAX_LINE: u64 = 4096;

/// Longest answer to a hook.
const MAX_ANSWER: u64 = 16 << 20;

/// How long the first line may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Numbers of this process's own children that are no agent's.
static OWN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    token: String,
    want: Want,
}

/// What there is to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Want {
    /// The MCP proxy, on these streams.
    McpProxy,
    /// An answer to a client's hook, of what follows.
    Hook {
        /// The client's name.
        client: String,
        /// The event that its hook is installed for.
        event: Option<String>,
    },
}

/// What a hook comes to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    exit: u8,
    stdout: String,
    stderr: String,
}

/// The outer end.
#[derive(Debug)]
pub(super) struct Way {
    token: String,
    config: PathBuf,
    program: PathBuf,
}

impl Way {
    pub(super) fn new(config: &Path) -> io::Result<Self> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|problem| io::Error::other(problem.to_string()))?;
        Ok(Self {
            token: random.iter().map(|byte| format!("{byte:02x}")).collect(),
            config: config.to_owned(),
            program: std::env::current_exe()?,
        })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Answers one connection, to its end.
    pub(super) fn serve(&self, stream: TcpStream) {
        if let Err(problem) = self.answer(stream) {
            eprintln!("lodestar: a way in was not opened: {problem}");
        }
    }

    fn answer(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = Vec::new();
        reader
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)?;
        let asked: Asked = serde_json::from_slice(&line).map_err(io::Error::other)?;
        // Digests are compared, so that the time says nothing about the word.
        if sha256(asked.token.as_bytes()) != sha256(self.token.as_bytes()) {
            return Err(io::Error::other("the word is another"));
        }
        if let Want::Hook { client, event } = &asked.want {
            return self.hook(client, event.as_deref(), reader, stream);
        }
        stream.set_read_timeout(None)?;
        let mut command = Command::new(&self.program);
        command
            .args(["guard", "mcp-proxy", "--config"])
            .arg(&self.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = begin(&mut command)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(mut input), Some(mut output)) = (input, output) else {
            return Err(io::Error::other("it has no streams"));
        };
        let inward = std::thread::spawn(move || copy(&mut reader, &mut input));
        let mut writing = stream.try_clone()?;
        let _ = copy(&mut output, &mut writing);
        let _ = stream.shutdown(Shutdown::Both);
        let _ = inward.join();
        let id = child.id();
        let ended = child.wait();
        own().retain(|own| *own != id);
        ended.map(drop)
    }

    /// Answers a hook of a client inside, as it would be answered outside.
    fn hook(
        &self,
        client: &str,
        event: Option<&str>,
        said: impl io::Read,
        mut stream: TcpStream,
    ) -> io::Result<()> {
        let client = Client::ALL.into_iter().find(|one| one.name() == client);
        let client = client.ok_or_else(|| io::Error::other("no client has that name"))?;
        let mut input = Vec::new();
        let most = u64::try_from(MAX_INPUT).unwrap_or(u64::MAX);
        said.take(most.saturating_add(1)).read_to_end(&mut input)?;
        let mut command = Command::new(&self.program);
        command
            .args(["hook", client.name()])
            .args(event.into_iter().flat_map(|event| ["--event", event]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(project) = self.config.parent() {
            command.current_dir(project);
        }
        let mut child = begin(&mut command)?;
        let id = child.id();
        if let Some(mut to) = child.stdin.take() {
            // One that does not read to the end answers all the same.
            let _ = to.write_all(&input);
        }
        let ended = child.wait_with_output();
        own().retain(|own| *own != id);
        let ended = ended?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let answered = Answered {
            // One that was killed has not agreed.
            exit: ended
                .status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(2),
            stdout: text(&ended.stdout),
            stderr: text(&ended.stderr),
        };
        stream.write_all(&serde_json::to_vec(&answered).map_err(io::Error::other)?)
    }
}

/// Starts a process of Lodestar's own, known as such before anybody could look for what the agent left behind.
fn begin(command: &mut Command) -> io::Result<Child> {
    let mut own = own();
    let child = command.spawn()?;
    own.push(child.id());
    Ok(child)
}

/// Copies as it comes: messages are answered one by one.
fn copy(from: &mut impl io::Read, to: &mut impl io::Write) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                to.write_all(&piece[..read])?;
                to.flush()?;
            }
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
            Err(problem) => return Err(problem),
        }
    }
}

fn own() -> std::sync::MutexGuard<'static, Vec<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Children of this process that the agent left behind.
pub(super) fn children() -> Vec<Pid> {
    let own = own().clone();
    let mut children = children_of("self");
    children.retain(|child| {
        let number = child.as_raw_nonzero().get();
        !own.iter().any(|own| i32::try_from(*own) == Ok(number))
    });
    children
}

/// These, and whoever they started.
pub(super) fn descendants(of: &[Pid]) -> Vec<Pid> {
    let mut all = of.to_vec();
    let mut at = 0;
    while let Some(next) = all.get(at) {
        let below = children_of(&next.as_raw_nonzero().to_string());
        all.extend(below);
        at += 1;
    }
    all
}

fn children_of(process: &str) -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .filter_map(Result::ok)
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = lists.flat_map(|list| {
        let numbers = list.split_ascii_whitespace().map(str::parse::<i32>);
        numbers.filter_map(Result::ok).collect::<Vec<_>>()
    });
    numbers.filter_map(Pid::from_raw).collect()
}

/// Inside: passes standard input and output on to what is asked for outside. None where this is not inside.
pub(crate) fn relay(want: Want) -> Option<Result<Exit, Failure>> {
    let address = std::env::var(ADDRESS).ok()?;
    let token = std::env::var(TOKEN).unwrap_or_default();
    let relayed = relayed(&address, Asked { token, want });
    Some(relayed.map(|()| Exit::Done).map_err(|problem| {
        Failure::check(format!(
            "Lodestar cannot be reached at `{address}`: {problem}"
        ))
        .help("`lodestar run` serves it for as long as it runs itself")
    }))
}

/// Inside: what a hook comes to outside. None where this is not inside.
pub(crate) fn hook(client: Client, event: Option<&str>, said: &[u8]) -> Option<io::Result<Spoken>> {
    let address = std::env::var(ADDRESS).ok()?;
    let token = std::env::var(TOKEN).unwrap_or_default();
    let want = Want::Hook {
        client: client.name().to_owned(),
        event: event.map(str::to_owned),
    };
    Some(hooked(&address, Asked { token, want }, said))
}

fn hooked(address: &str, asked: Asked, said: &[u8]) -> io::Result<Spoken> {
    let mut stream = ask(address, asked)?;
    stream.write_all(said)?;
    stream.shutdown(Shutdown::Write)?;
    let mut back = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut back)?;
    let Answered {
        exit,
        stdout,
        stderr,
    } = serde_json::from_slice(&back).map_err(io::Error::other)?;
    Ok(Spoken {
        exit,
        stdout,
        stderr,
    })
}

fn ask(address: &str, asked: Asked) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    let mut line = serde_json::to_vec(&asked).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    Ok(stream)
}

fn relayed(address: &str, asked: Asked) -> io::Result<()> {
    let mut stream = ask(address, asked)?;
    let mut back = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = copy(&mut io::stdin().lock(), &mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
    copy(&mut back, &mut io::stdout().lock())
}
