//! The way from inside to Lodestar.
//!
//! A client inside starts `lodestar guard mcp-proxy` as it always does. In there that is a relay ([`relay`]): it asks
//! for the real one, which is started outside, where keys and log are, and passes bytes on. Which configuration is in
//! force was settled outside; nothing that is said inside changes it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use lodestar_core::digest::sha256;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};

/// The variable with the address of the way.
pub(crate) const ADDRESS: &str = "LODESTAR_WAY";

/// The variable with the word that opens it.
pub(super) const TOKEN: &str = "LODESTAR_WAY_TOKEN";

/// Longest first line.
const MAX_LINE: u64 = 4096;

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
        stream.set_read_timeout(None)?;
        let mut command = Command::new(&self.program);
        match asked.want {
            Want::McpProxy => command
                .args(["guard", "mcp-proxy", "--config"])
                .arg(&self.config),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Known as Lodestar's own before anybody could look for what the agent left behind.
        let mut own_ones = own();
        let mut child = command.spawn()?;
        own_ones.push(child.id());
        drop(own_ones);
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

fn relayed(address: &str, asked: Asked) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let mut line = serde_json::to_vec(&asked).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut back = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = copy(&mut io::stdin().lock(), &mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
    copy(&mut back, &mut io::stdout().lock())
}
