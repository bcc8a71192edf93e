//! `lodestar run -- AGENT`: an agent inside a sandbox whose only ways out are the proxy and what is declared.
//!
//! The agent has no network: on the loopback of its own there is the [`way`] to Lodestar, and whatever hosts and
//! ports the person at the command line declared ([`outlet`]). Both are served from here, outside.

mod outlet;
pub(crate) mod way;

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use clap::Args;
use lodestar_core::contract::Sandbox;
use lodestar_guard::Config;
use lodestar_kernel::contain::{
    Cell, Confined, ContainError, Containment, Group, Host, Network, OutOfReach, Plan, State,
    Strictness, on_path,
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::App;
use crate::configured::FILE;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use outlet::{Destination, Forward, Outlets};

/// Where Lodestar is on the agent's own loopback.
const WAY_PORT: u16 = 7471;

/// Where the agent's own loopback leads to declared hosts.
const OUTLET_PORT: u16 = 7472;

/// How long what the agent left behind is ended.
const CLEARING: std::time::Duration = std::time::Duration::from_secs(10);

/// How often it is looked whether the agent has ended, and whether what is protected still is.
const LOOKS: std::time::Duration = std::time::Duration::from_millis(20);

/// What the agent has of the environment, beside what is passed on by name. No secret has one of these names.
const ENVIRONMENT: [&str; 9] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TERM",
    "COLORTERM",
    "USER",
    "SHELL",
    "TZ",
];

/// The agent, and what it is declared.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The configuration of the proxy [default: lodestar.toml in this folder or one above]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A folder or file that the agent reads, beside the project
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,

    /// A folder or file that the agent writes; the project is only read unless it is named
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,

    /// A host that the agent reaches through a proxy of its own, such as that of its model
    #[arg(long, value_name = "HOST:PORT")]
    allow: Vec<Destination>,

    /// A port of the agent's loopback that leads to a place outside
    #[arg(long, value_name = "PORT=HOST:PORT")]
    forward: Vec<Forward>,

    /// A variable of this environment that the agent gets
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,

    /// Go on where containment is not proved, and say so
    #[arg(long)]
    best_effort: bool,

    /// The agent's command
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

pub(super) fn run(args: &AgentArgs, app: &mut App) -> Result<Exit, Failure> {
    let file = configuration(args.config.as_deref())?;
    let config = Config::read(&file)?;
    let installation = Installation::locate()?;
    let host = Host::here();
    let isolated = host.namespaces();
    let ways = Ways::ready(args, &file, isolated)?;
    let plan = plan(args, &config, installation.dir(), &ways)?;
    // Whoever loses its parent in there is this process's, and ends with the agent.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    tell(app, &plan, &ways);
    let (mut child, mut confined, containment) = start(args, &plan, &ways, host)?;
    let contained = containment.state == State::Proved
        || args.best_effort && containment.state == State::Partial;
    if !contained {
        end(&mut child);
        return Err(not_contained(&containment.summary()));
    }
    tell_of(app, &containment);
    let listeners = match isolated {
        true => confined.bridges().map_err(|problem| {
            end(&mut child);
            Failure::check(format!("the agent's ways out cannot be had: {problem}"))
        })?,
        false => Vec::new(),
    };
    ways.serve(listeners);
    let (tell, telling) = teller(app);
    let status = attend(&mut child, &mut confined, &tell);
    clear_away(&mut confined, &tell);
    for news in confined.watch().look(None) {
        let _ = tell.send(news.to_string());
    }
    drop((confined, tell));
    let _ = telling.join();
    Ok(exit(status?))
}

fn not_contained(why: &str) -> Failure {
    Failure::check(format!(
        "the agent cannot be contained here, so that it was not run: {why}"
    ))
    .help("`--best-effort` goes on where something holds; `lodestar doctor` says what this machine has")
}

/// The configuration of the project that this folder is in.
fn configuration(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|problem| Failure::usage(format!("this folder cannot be looked at: {problem}")))?;
    if let Some(named) = named {
        return Ok(here.join(named));
    }
    let mut above = here.ancestors().map(|folder| folder.join(FILE));
    above.find(|file| file.is_file()).ok_or_else(|| {
        Failure::usage(format!("there is no `{FILE}` in this folder or above it"))
            .help("`lodestar init` writes one from a client's configuration")
    })
}

/// Ways out of the sandbox, and the word that opens the one to Lodestar.
struct Ways {
    way: Arc<way::Way>,
    outlets: Arc<Outlets>,
    forwards: Vec<Forward>,
    /// On this machine's own loopback, where the agent has no network of its own.
    shared: Vec<TcpListener>,
    /// The ports that the agent sees: the way, the outlet, the forwards.
    ports: Vec<u16>,
}

impl Ways {
    fn ready(args: &AgentArgs, config: &Path, isolated: bool) -> Result<Self, Failure> {
        let mut ports = vec![WAY_PORT, OUTLET_PORT];
        ports.extend(args.forward.iter().map(|forward| forward.port));
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = ports.iter().find(|port| !seen.insert(**port)) {
            return Err(Failure::usage(format!("the port {twice} is taken twice")));
        }
        let mut shared = Vec::new();
        if !isolated {
            for port in &mut ports {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let listener = listener.and_then(|one| Ok((one.local_addr()?.port(), one)));
                let (found, listener) = listener
                    .map_err(|problem| Failure::check(format!("no port can be had: {problem}")))?;
                *port = found;
                shared.push(listener);
            }
        }
        let way = way::Way::new(config)
            .map_err(|problem| Failure::check(format!("no way out can be made: {problem}")))?;
        Ok(Self {
            way: Arc::new(way),
            outlets: Arc::new(Outlets::new(args.allow.clone())),
            forwards: args.forward.clone(),
            shared,
            ports,
        })
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            (way::ADDRESS, format!("127.0.0.1:{}", self.ports[0])),
            (way::TOKEN, self.way.token().to_owned()),
        ];
        if !self.outlets.is_empty() {
            let address = format!("http://127.0.0.1:{}", self.ports[1]);
            for name in ["HTTPS_PROXY", "https_proxy"] {
                all.push((name, address.clone()));
            }
        }
        all
    }

    /// Answers on each listener, until the process ends.
    fn serve(self, handed: Vec<TcpListener>) {
        let mut listeners = handed.into_iter().chain(self.shared);
        if let Some(listener) = listeners.next() {
            let way = self.way;
            outlet::each(listener, move |stream| way.serve(stream));
        }
        if let Some(listener) = listeners.next() {
            let outlets = self.outlets;
            outlet::each(listener, move |stream| outlets.serve(stream));
        }
        for (listener, forward) in listeners.zip(self.forwards) {
            outlet::each(listener, move |stream| forward.serve(stream));
        }
    }
}

fn plan(args: &AgentArgs, config: &Config, keys: &Path, ways: &Ways) -> Result<Plan, Failure> {
    let program = args.command.first().map(PathBuf::from).unwrap_or_default();
    let OutOfReach {
        keys,
        lodestar,
        own,
        clients,
        hidden,
        fixed,
    } = config.out_of_reach(Some(keys));
    // A client reads its own configuration. It must not change what stands in it.
    let out_of_reach = OutOfReach {
        keys,
        lodestar,
        own,
        clients: Vec::new(),
        hidden,
        fixed: fixed.into_iter().chain(clients).collect(),
    };
    let here = std::env::current_dir().unwrap_or_default();
    let found = on_path(&program, &here);
    let mut plan = Plan::new([Sandbox::Read], found, config.root(), out_of_reach);
    let absolute = |paths: &[PathBuf]| -> Result<Vec<PathBuf>, Failure> {
        let each = paths.iter().map(|path| {
            path.canonicalize().map_err(|problem| {
                let path = crate::inert::path(path);
                Failure::usage(format!("`{path}` cannot be declared: {problem}"))
            })
        });
        each.collect()
    };
    // Agents run what lies in a project; and what leads to Lodestar from inside is this very program.
    plan.programs = vec![config.root().to_owned()];
    plan.programs.extend(std::env::current_exe().ok());
    plan.reads = absolute(&args.read)?;
    plan.writes = absolute(&args.write)?;
    // What a package runner would get by its name alone is not declared.
    plan.fetches_code = false;
    plan.strictness = match args.best_effort {
        true => Strictness::AsFarAsItCan,
        false => Strictness::Wholly,
    };
    plan.network = Some(match ways.shared.is_empty() {
        true => Network::NONE,
        false => Network::Ports(ways.ports.iter().copied().collect()),
    });
    plan.bridges.clone_from(&ways.ports);
    plan.group = Group::Free;
    plan.terminal = true;
    Ok(plan)
}

fn start(
    args: &AgentArgs,
    plan: &Plan,
    ways: &Ways,
    host: Host,
) -> Result<(Child, Confined, Containment), Failure> {
    let cell = Cell::of(plan, host).map_err(|problem| match problem {
        ContainError::InPart(why) => not_contained(&why),
        other => Failure::usage(other.to_string()),
    })?;
    let name = args.command.first().cloned().unwrap_or_default();
    let mut command = Command::new(&name);
    command.args(&args.command[1..]).env_clear();
    let kept = ENVIRONMENT.iter().copied();
    for name in kept.chain(args.env.iter().map(String::as_str)) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(ways.environment());
    let mut confined = cell.confine(&mut command);
    let started = command.spawn();
    drop(command);
    let child = started.map_err(|problem| {
        let name = crate::inert::path(Path::new(&name));
        let problem = confined.explain(problem);
        Failure::usage(format!("`{name}` cannot be started: {problem}"))
    })?;
    let containment = confined.started();
    Ok((child, confined, containment))
}

/// What the person at the terminal is told before the agent is there.
fn tell(app: &App, plan: &Plan, ways: &Ways) {
    let writes: Vec<_> = plan
        .writes
        .iter()
        .map(|path| crate::inert::path(path))
        .collect();
    app.note(match writes.is_empty() {
        true => "the agent writes nothing but temporary files of its own".to_owned(),
        false => format!("the agent writes {}", writes.join(", ")),
    });
    let mut out = vec!["Lodestar".to_owned()];
    out.extend(ways.outlets.shown());
    out.extend(ways.forwards.iter().map(Forward::shown));
    app.note(format!("its ways out: {}", out.join(", ")));
}

/// What is known once it has begun, since it was tried in its own process.
fn tell_of(app: &App, containment: &Containment) {
    app.note(format!("the agent is {}", containment.summary()));
    for note in &containment.notes {
        app.note(note);
    }
}

/// Says what it is sent, on a thread of its own: the agent has the same terminal, and could hold it up while nobody looks.
fn teller(app: &App) -> (Sender<String>, JoinHandle<()>) {
    let notes = app.notes();
    let (tell, told) = std::sync::mpsc::channel::<String>();
    let telling = std::thread::spawn(move || told.iter().for_each(|line| notes.say(line)));
    (tell, telling)
}

/// Waits for the agent. What the terminal sends reaches it by itself; what is sent to this process is passed on.
fn attend(
    child: &mut Child,
    confined: &mut Confined,
    tell: &Sender<String>,
) -> Result<ExitStatus, Failure> {
    let id = Pid::from_child(child);
    let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]);
    let mut signals =
        signals.map_err(|problem| Failure::check(format!("signals cannot be heard: {problem}")))?;
    let handle = signals.handle();
    let passing = std::thread::spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTERM => drop(kill_process(id, Signal::TERM)),
                SIGHUP => drop(kill_process(id, Signal::HUP)),
                _ => {}
            }
        }
    });
    let status = loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => break Ok(status),
            Err(problem) => break Err(problem),
        }
        // Between its end and this one's lies no more than a person waits for anyway.
        std::thread::sleep(LOOKS);
        for news in confined.watch().look(Some(id)) {
            // Whoever hears it is there until the end.
            let _ = tell.send(news.to_string());
            if news.is_open() {
                let why = "the agent was ended, since it could have gone on with that";
                let _ = tell.send(why.to_owned());
                let _ = kill_process(id, Signal::KILL);
            }
        }
    };
    handle.close();
    let _ = passing.join();
    status.map_err(|problem| Failure::check(format!("the agent's end cannot be seen: {problem}")))
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Ends whatever the agent left behind; it is this process's by now.
fn clear_away(confined: &mut Confined, tell: &Sender<String>) {
    let began = std::time::Instant::now();
    // Where that can be had, what follows finds only what has ended.
    let _ = confined.end_all(CLEARING);
    while began.elapsed() < CLEARING {
        let left = way::children();
        if left.is_empty() {
            return;
        }
        // All are stopped before any is ended: whoever is stopped starts nobody.
        for signal in [Signal::STOP, Signal::KILL] {
            for child in way::descendants(&left) {
                let _ = kill_process(child, signal);
            }
        }
        for child in left {
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::NOHANG);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for child in way::descendants(&way::children()) {
        let _ = kill_process(child, Signal::KILL);
    }
    let _ = tell.send("something that the agent started does not end".to_owned());
}

/// The agent's own code is the command's; one that was killed has the shell's number for it.
fn exit(status: ExitStatus) -> Exit {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    Exit::Agent(u8::try_from(code).unwrap_or(1))
}
