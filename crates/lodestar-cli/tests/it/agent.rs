//! An agent over stdio: the real proxy as a process, driven message by message.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use lodestar_core::name::ActorId;
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_guard::channel::drop::Pile;
use lodestar_log::Clock;
use lodestar_policy::Signed;
use serde_json::{Value, json};

use crate::world::{World, operator_key};

/// How long an answer may take here: a loaded machine is slow, a hung proxy is not there.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<String>,
    waiting: VecDeque<Value>,
    pub(crate) notified: Vec<Value>,
    next: u64,
}

/// A tool's answer, as the agent has it.
#[derive(Debug)]
pub(crate) struct Called(pub(crate) Value);

impl Called {
    /// The kind of the refusal; none where it ran.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.0["result"]["_meta"]["_lodestar"]["kind"].as_str()
    }

    pub(crate) fn text(&self) -> &str {
        self.0["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
    }
}

/// Where the programs of the other side lie.
pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lodestar-mcp/tests/peers")
}

/// A project with servers that misbehave on request, by name and further arguments.
pub(crate) fn behind(servers: &[(&str, &[&str])], more: &str) -> World {
    let world = World::new();
    let mut config = format!(
        "project_id = \"web\"\nactor_id = \"agent\"\nauto_approve_ceiling = 3\n{more}\n\
         [[approvals.authorized_keys]]\nactor_id = \"anna\"\npublic_key = \"{}\"\n",
        operator_key().public()
    );
    for (name, args) in servers {
        let script = peers().join("hostile.py");
        let marks = world.path("marks").join(name);
        std::fs::create_dir_all(&marks).expect("created");
        let mut all = vec![
            script.display().to_string(),
            "--marks".to_owned(),
            marks.display().to_string(),
        ];
        all.extend(args.iter().map(|arg| (*arg).to_owned()));
        config += &format!(
            "[[downstream_servers]]\nname = \"{name}\"\ncommand = \"python3\"\nargs = {all:?}\n\
             sandbox = [\"write-local\"]\nwrite = [{:?}]\n",
            world.path(".")
        );
    }
    world.write("work/lodestar.toml", &config);
    world
}

/// Grades tools at a rung.
pub(crate) fn grade(world: &World, rung: &str, tools: &[&str]) {
    let file = world.path("work/lodestar.toml");
    let mut config = std::fs::read_to_string(&file).expect("there");
    for tool in tools {
        config += &format!(
            "[tool_defaults.\"{tool}\"]\nrequired_trust_level = \"{rung}\"\nblast_radius = \"project\"\n\
             reversibility = \"reversible\"\ndata_sensitivity = \"private\"\n"
        );
    }
    std::fs::write(file, config).expect("written");
}

/// Signs a grant for every open request, as an approver elsewhere would.
pub(crate) fn grant_all(world: &World) -> usize {
    let pile = Pile::below(world.root()).expect("the drop directory is there");
    let anna = ActorId::new("anna").expect("a name");
    let key = operator_key();
    let mut granted = 0;
    for shown in pile.requests() {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("random");
        let nonce = Nonce::from_bytes(bytes);
        let signed = Signed {
            key: &key,
            at: Clock::system().now(),
            nonce,
        };
        let request = &shown.announcement().request;
        let grant = request.answer(&anna, ApprovalDecision::Grant, "", signed);
        pile.answer(shown, &grant.expect("signed"), nonce)
            .expect("put there");
        granted += 1;
    }
    granted
}

/// How many lines a server left in one of its marks.
pub(crate) fn marks(world: &World, server: &str, mark: &str) -> Vec<String> {
    let file = world.path("marks").join(server).join(mark);
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What the proxies of a world write to their standard error.
pub(crate) fn stderr_of(world: &World) -> PathBuf {
    world.path("stderr")
}

impl Agent {
    /// Starts the proxy, and makes the handshake.
    pub(crate) fn start(world: &World) -> Self {
        let mut agent = Self::begin(world, &[]);
        agent.greet(json!({}));
        agent
    }

    /// Starts the proxy, and says nothing yet.
    pub(crate) fn begin(world: &World, args: &[&str]) -> Self {
        let mut all = vec!["guard", "mcp-proxy", "--config", "lodestar.toml"];
        all.extend(args);
        let mut command = world.command(&all);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let said = OpenOptions::new()
            .create(true)
            .append(true)
            .open(stderr_of(world));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(said.expect("created"));
        let mut child = command.spawn().expect("started");
        let (sender, heard) = channel();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            heard,
            waiting: VecDeque::new(),
            notified: Vec::new(),
            next: 1,
        }
    }

    pub(crate) fn greet(&mut self, capabilities: Value) -> Value {
        let hello = self.ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.tell("notifications/initialized", Value::Null);
        hello
    }

    pub(crate) fn raw(&mut self, text: &str) {
        let input = self.input.as_mut().expect("open");
        let _ = writeln!(input, "{text}").and_then(|()| input.flush());
    }

    pub(crate) fn tell(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.raw(&message.to_string());
    }

    /// Asks, and gives the number to listen for.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.raw(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// The answer with this number; what else comes is kept.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.answer_within(id, PATIENCE)
            .unwrap_or_else(|| panic!("no answer to {id}"))
    }

    pub(crate) fn answer_within(&mut self, id: u64, time: Duration) -> Option<Value> {
        let until = std::time::Instant::now() + time;
        loop {
            if let Some(at) = self
                .waiting
                .iter()
                .position(|one| one["id"] == id && one["method"].is_null())
            {
                return self.waiting.remove(at);
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            self.hear(left)?;
        }
    }

    fn hear(&mut self, time: Duration) -> Option<()> {
        match self.heard.recv_timeout(time) {
            Ok(line) => {
                let message: Value =
                    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                match message["id"].is_null() && message["method"].is_string() {
                    true => self.notified.push(message),
                    false => self.waiting.push_back(message),
                }
                Some(())
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// A notification that has come or comes in time.
    pub(crate) fn notification(&mut self, method: &str, time: Duration) -> Option<Value> {
        let until = std::time::Instant::now() + time;
        loop {
            if let Some(at) = self.notified.iter().position(|one| one["method"] == method) {
                return Some(self.notified.remove(at));
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            self.hear(left)?;
        }
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Called {
        Called(self.ask("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Leaves; gives the proxy's exit code.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.ended()
    }

    /// The exit code, once it has ended.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let until = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("waited") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the proxy did not end");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
