//! What the proxy adds to a call: the same server called directly, through a bare pass-through on rmcp, and
//! through Lodestar with its log, its firewall on SQLite and its policy; in turns, in one run.

mod echo;
mod forwarder;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Bound, Figure};

pub(crate) use echo::serve as serve_echo;
pub(crate) use forwarder::serve as serve_forwarder;

/// Calls of each way whose latency is taken.
const TIMED: usize = 4000;

/// Calls that are made before, so that nothing is done for the first time.
const WARMING: usize = 300;

/// Calls of one piped round, and calls in flight.
const PIPED: usize = 4000;
const WINDOW: usize = 64;
const ROUNDS: usize = 5;

/// Starts of each way.
const STARTS: usize = 9;

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Bare,
    Lodestar,
}

const WAYS: [Way; 3] = [Way::Direct, Way::Bare, Way::Lodestar];

/// A connection of the measuring client.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: String,
    next: u64,
    tool: &'static str,
}

impl Client {
    /// Starts a way, and makes the handshake.
    fn start(way: Way, project: &Path) -> Self {
        let own = std::env::current_exe().expect("the benchmark has a path");
        let mut command = match way {
            Way::Direct => {
                let mut command = Command::new(&own);
                command.arg("echo-server");
                command
            }
            Way::Bare => {
                let mut command = Command::new(&own);
                command.arg("forwarder").arg(&own).arg("echo-server");
                command
            }
            Way::Lodestar => {
                let mut command = Command::new(own.with_file_name("lodestar"));
                command
                    .args(["guard", "mcp-proxy", "--config"])
                    .arg(project.join("project/lodestar.toml"))
                    .env("LODESTAR_CONFIG_DIR", project.join("keys"));
                command
            }
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the release binary `lodestar` lies beside this one: `cargo xtask bench` builds both");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut client = Self {
            child,
            input,
            output: BufReader::with_capacity(1 << 16, output.expect("it is piped")),
            line: String::new(),
            next: 0,
            tool: if way == Way::Lodestar {
                "echo__echo"
            } else {
                "echo"
            },
        };
        let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
        client.send(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{params}}}\n"
        ));
        client.hear();
        client.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        client
    }

    fn send(&mut self, message: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(message.as_bytes()).expect("the peer reads");
    }

    fn hear(&mut self) {
        self.line.clear();
        let read = self
            .output
            .read_line(&mut self.line)
            .expect("the peer writes");
        assert!(read > 0, "the peer is there");
    }

    fn message(&mut self) -> String {
        self.next += 1;
        let (id, tool) = (self.next, self.tool);
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"n\":{id}}}}}}}\n"
        )
    }

    fn call(&mut self) -> Duration {
        let message = self.message();
        let began = Instant::now();
        self.send(&message);
        self.hear();
        let took = began.elapsed();
        assert!(self.line.contains("benchmark"), "an answer: {}", self.line);
        took
    }

    /// Many calls, some of them in flight at a time; how long all of them took.
    fn pipe(&mut self, calls: usize) -> Duration {
        let began = Instant::now();
        let (mut sent, mut heard) = (0, 0);
        let mut batch = String::new();
        while heard < calls {
            while sent < calls && sent - heard < WINDOW {
                batch.push_str(&self.message());
                sent += 1;
            }
            if !batch.is_empty() {
                let message = std::mem::take(&mut batch);
                self.send(&message);
            }
            self.hear();
            heard += 1;
            while heard < sent && self.output.buffer().contains(&b'\n') {
                self.hear();
                heard += 1;
            }
        }
        began.elapsed()
    }

    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kib.unwrap_or(0.0_f64) * 1024.0
    }

    fn end(mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn project(dir: &Path) -> PathBuf {
    project_with(dir, "")
}

/// A project with further lines in the table of its server.
fn project_with(dir: &Path, server: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the benchmark has a path");
    let root = dir.join("project");
    std::fs::create_dir_all(&root).expect("a scratch folder");
    std::fs::create_dir_all(dir.join("keys")).expect("a scratch folder");
    let config = format!(
        "project_id = \"bench\"\nactor_id = \"agent\"\nauto_approve_ceiling = 2\n\
         [[downstream_servers]]\nname = \"echo\"\ncommand = {own:?}\nargs = [\"echo-server\"]\n\
         {server}\
         [tool_defaults.\"mcp.echo.echo\"]\nrequired_trust_level = \"L1\"\nblast_radius = \"self\"\n\
         reversibility = \"reversible\"\ndata_sensitivity = \"private\"\n"
    );
    std::fs::write(root.join("lodestar.toml"), config).expect("a scratch file");
    root
}

fn log_size(root: &Path) -> u64 {
    fn size(path: &Path) -> u64 {
        let Ok(entries) = std::fs::read_dir(path) else {
            return std::fs::metadata(path).map_or(0, |found| found.len());
        };
        entries.flatten().map(|entry| size(&entry.path())).sum()
    }
    size(&root.join(".lodestar/log"))
}

fn at(sorted: &[Duration], share: f64) -> f64 {
    let place = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[place].as_secs_f64() * 1e6
}

/// All of it.
pub(crate) fn measure(calls: u64) -> Vec<Figure> {
    let dir = tempfile::tempdir().expect("a scratch folder");
    let root = project(dir.path());
    let mut figures = added(dir.path());
    figures.push(starting(dir.path()));
    figures.extend(long(dir.path(), &root, calls as usize));
    figures
}

/// What each way adds to a call, and how many it takes at once.
fn added(dir: &Path) -> Vec<Figure> {
    let mut clients = WAYS.map(|way| Client::start(way, dir));
    let mut took = WAYS.map(|_| Vec::with_capacity(TIMED));
    for round in 0..WARMING + TIMED {
        for turn in 0..3 {
            // Whoever comes first changes, so that nobody always follows the same one.
            let way = (turn + round) % 3;
            let one = clients[way].call();
            if round >= WARMING {
                took[way].push(one);
            }
        }
    }
    let sorted = took.map(|mut took| {
        took.sort();
        took
    });
    let [direct, bare, lodestar] = sorted.map(|took| [at(&took, 0.5), at(&took, 0.99)]);
    let mut figures = Vec::new();
    for (at, name, bound) in [
        (0, "proxy: added at p50 ÷ a bare one", 1.0),
        (1, "proxy: added at p99 ÷ a bare one", 1.5),
    ] {
        let (ours, theirs) = (lodestar[at] - direct[at], bare[at] - direct[at]);
        figures.push(Figure {
            name,
            value: ours / theirs,
            bound: Bound::AtMost(bound),
            detail: format!(
                "{ours:.0} µs to {theirs:.0} µs, over {:.0} µs direct",
                direct[at]
            ),
        });
    }
    let mut best = [0.0_f64; 3];
    for _ in 0..ROUNDS {
        for (way, client) in clients.iter_mut().enumerate() {
            let rate = PIPED as f64 / client.pipe(PIPED).as_secs_f64();
            best[way] = best[way].max(rate);
        }
    }
    figures.push(Figure {
        name: "proxy: calls a second ÷ a bare one's",
        value: best[2] / best[1],
        bound: Bound::AtLeast(1.0),
        detail: format!(
            "{:.0} to {:.0} with {WINDOW} in flight; {:.0} direct",
            best[2], best[1], best[0]
        ),
    });
    clients.into_iter().for_each(Client::end);
    figures
}

/// What comes before the first answer, over what the server needs itself.
fn starting(dir: &Path) -> Figure {
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (at, way) in [Way::Direct, Way::Lodestar].into_iter().enumerate() {
            let began = Instant::now();
            let mut client = Client::start(way, dir);
            client.call();
            took[at].push(began.elapsed());
            client.end();
        }
    }
    let [direct, lodestar] = took.map(|mut took| {
        took.sort();
        at(&took, 0.5) / 1e3
    });
    Figure {
        name: "proxy: first answer later by, ms",
        value: lodestar - direct,
        bound: Bound::AtMost(50.0),
        detail: format!("{lodestar:.1} ms to {direct:.1} ms"),
    }
}

/// The same server behind the proxy, contained and not: what a start and a call take, in ms and µs at p50.
pub(crate) fn contained() -> [[f64; 2]; 2] {
    let dirs = ["", "containment = \"off\"\n"].map(|server| {
        let dir = tempfile::tempdir().expect("a scratch folder");
        project_with(dir.path(), server);
        dir
    });
    let mut starts = [Vec::new(), Vec::new()];
    for round in 0..4 * STARTS {
        for turn in [round % 2, 1 - round % 2] {
            let began = Instant::now();
            let mut client = Client::start(Way::Lodestar, dirs[turn].path());
            client.call();
            starts[turn].push(began.elapsed());
            client.end();
        }
    }
    let mut clients = [0, 1].map(|at| Client::start(Way::Lodestar, dirs[at].path()));
    let mut calls = [Vec::new(), Vec::new()];
    for round in 0..WARMING + TIMED {
        for turn in [round % 2, 1 - round % 2] {
            let one = clients[turn].call();
            if round >= WARMING {
                calls[turn].push(one);
            }
        }
    }
    clients.into_iter().for_each(Client::end);
    let middle = |mut took: Vec<Duration>| {
        took.sort();
        at(&took, 0.5)
    };
    [starts.map(|all| middle(all) / 1e3), calls.map(middle)]
}

/// A long session: what a call costs at its end, and what it leaves behind. Its last thousand calls take turns
/// with the second thousand of another session, because what a call costs on this machine depends more
/// on the minute than on anything else.
fn long(dir: &Path, root: &Path, calls: usize) -> Vec<Figure> {
    let mut client = Client::start(Way::Lodestar, dir);
    let before_log = log_size(root);
    client.call();
    let at_start = client.resident();
    let some = |client: &mut Client, calls: usize| {
        for _ in 0..calls {
            client.call();
        }
    };
    some(&mut client, 2000);
    let resident = client.resident();
    some(&mut client, calls.saturating_sub(3000));
    let beside = dir.join("young");
    project(&beside);
    let mut young = Client::start(Way::Lodestar, &beside);
    some(&mut young, 1000);
    let mut took = [Vec::with_capacity(1000), Vec::with_capacity(1000)];
    for _ in 0..1000 {
        took[0].push(young.call());
        took[1].push(client.call());
    }
    young.end();
    let [early, late] = took.map(|mut took| {
        took.sort();
        at(&took, 0.5)
    });
    let grown = (client.resident() - resident) / calls as f64;
    let made = client.next as f64;
    client.end();
    let per_call = (log_size(root) - before_log) as f64 / made;
    vec![
        Figure {
            name: "proxy: the last thousand calls ÷ a second",
            value: late / early,
            bound: Bound::AtMost(1.1),
            detail: format!("{late:.0} µs to {early:.0} µs at p50, in turns, {calls} calls"),
        },
        Figure {
            name: "proxy: resident memory at start, MiB",
            value: at_start / f64::from(1 << 20),
            bound: Bound::AtMost(40.0),
            detail: String::new(),
        },
        Figure {
            name: "proxy: resident memory a call, bytes",
            value: grown,
            bound: Bound::AtMost(200.0),
            detail: format!("from call 2,000 to {calls}"),
        },
        Figure {
            name: "proxy: log a call, KiB beyond its content",
            value: (per_call - 1024.0) / 1024.0,
            bound: Bound::AtMost(2.5),
            detail: format!("{per_call:.0} bytes with a content of 1,024"),
        },
    ]
}
