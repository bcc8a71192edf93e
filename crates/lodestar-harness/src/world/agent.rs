//! The agent's side of MCP: the proxy as a process, spoken to over its standard streams.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lodestar_core::defence::Defence;
use serde_json::{Value, json};

use super::program::apart;
use crate::probe::{Broken, Outcome};
use crate::stage::{Running, Stage};

/// How long an answer may take: a loaded machine is slow, a hung proxy is not there.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const REVISION: &str = "2025-11-25";

/// An agent that is connected to a proxy.
#[derive(Debug)]
pub struct Agent {
    name: &'static str,
    proxy: Running,
    /// Whether nobody else ends the proxy.
    is_alone: bool,
    input: Option<ChildStdin>,
    heard: Receiver<String>,
    waiting: Vec<Value>,
    /// What the proxy said without being asked.
    pub notified: Vec<Value>,
    /// The last message, byte for byte.
    pub line: String,
    next: u64,
    errors: PathBuf,
}

/// What a call came to, as the agent has it: the whole message.
#[derive(Debug, Clone)]
pub struct Called(pub Value);

impl Called {
    /// The kind of the refusal; none where the tool ran.
    pub fn kind(&self) -> Option<&str> {
        self.own()["kind"].as_str()
    }

    /// Whether the tool ran.
    pub fn ran(&self) -> bool {
        self.kind().is_none() && self.0.get("result").is_some()
    }

    /// What Lodestar says of it.
    pub fn own(&self) -> &Value {
        &self.0["result"]["_meta"]["_lodestar"]
    }

    /// The first text.
    pub fn text(&self) -> &str {
        let text = &self.0["result"]["content"][0]["text"];
        text.as_str().unwrap_or_default()
    }

    /// The request that was opened, where it is held.
    pub fn request(&self) -> Option<&str> {
        self.own()["request_id"].as_str()
    }
}

/// A proxy that is to be started. Without a defence it is the hidden `probe-proxy`.
#[derive(Debug, Clone, Copy)]
pub struct Proxy<'a> {
    /// The `lodestar` program.
    pub program: &'a Path,
    /// The configuration.
    pub config: &'a Path,
    /// Where the keys are.
    pub installation: &'a Path,
    /// What the agent is called.
    pub agent: &'static str,
    /// What it lacks.
    pub without: &'a [Defence],
    /// Where its standard errors go.
    pub errors: &'a Path,
}

impl Agent {
    /// Starts a proxy and shakes hands. It ends with its agent.
    pub fn connect(proxy: &Proxy<'_>) -> Outcome<Self> {
        let mut agent = Self::launch(proxy, |child| Arc::new(Mutex::new(child)))?;
        agent.is_alone = true;
        agent.greet(json!({}))?;
        Ok(agent)
    }

    /// Starts a proxy over a configuration, and shakes hands.
    pub(super) fn start(stage: &Stage, config: &Path, installation: &Path) -> Outcome<Self> {
        let mut agent = Self::begin(stage, config, installation)?;
        agent.greet(json!({}))?;
        Ok(agent)
    }

    /// Starts a proxy, and says nothing yet. It ends with the stage: one whose agent is gone may still be
    /// closing its session.
    pub(super) fn begin(stage: &Stage, config: &Path, installation: &Path) -> Outcome<Self> {
        let errors = stage.folder().join("proxy.stderr");
        let proxy = Proxy {
            program: stage.program(),
            config,
            installation,
            agent: "lodestar-harness",
            without: stage.without(),
            errors: &errors,
        };
        Self::launch(&proxy, |child| stage.keep(child))
    }

    fn launch(proxy: &Proxy<'_>, keep: impl FnOnce(Child) -> Running) -> Outcome<Self> {
        let mut command = apart(proxy.program, proxy.installation);
        match proxy.without {
            [] => command.args(["guard", "mcp-proxy"]),
            _ => command.arg("probe-proxy"),
        };
        for defence in proxy.without {
            command.args(["--without", defence.as_str()]);
        }
        let mut errors = File::options();
        errors.create(true).append(true);
        let mut child = command
            .arg("--config")
            .arg(proxy.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.open(proxy.errors)?)
            .spawn()?;
        let output = BufReader::new(child.stdout.take().expect("INVARIANT: it is piped"));
        let (tell, heard) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            name: proxy.agent,
            input: child.stdin.take(),
            proxy: keep(child),
            is_alone: false,
            heard,
            waiting: Vec::new(),
            notified: Vec::new(),
            line: String::new(),
            next: 1,
            errors: proxy.errors.to_owned(),
        })
    }

    /// The handshake.
    pub fn greet(&mut self, capabilities: Value) -> Outcome<Value> {
        let hello = json!({
            "protocolVersion": REVISION,
            "capabilities": capabilities,
            "clientInfo": {"name": self.name, "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = self.ask("initialize", hello)?;
        self.raw(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())?;
        Ok(answer)
    }

    /// Calls a tool and waits for what comes of it.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Called> {
        let id = self.begin_call(tool, arguments)?;
        self.called(id)
    }

    /// Calls a tool, and gives the number to listen for.
    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Outcome<u64> {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// What came of a call.
    pub fn called(&mut self, id: u64) -> Outcome<Called> {
        Ok(Called(self.answer(id)?))
    }

    /// Asks, and waits for the whole message that answers.
    pub fn ask(&mut self, method: &str, params: Value) -> Outcome<Value> {
        let id = self.send(method, params)?;
        self.answer(id)
    }

    /// Asks, and gives the number to listen for.
    pub fn send(&mut self, method: &str, params: Value) -> Outcome<u64> {
        let id = self.next;
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.raw(&message.to_string())?;
        Ok(id)
    }

    /// Sends a line as it is.
    pub fn raw(&mut self, line: &str) -> Outcome {
        let Some(input) = self.input.as_mut() else {
            return Err(Broken::Failed("the agent has left already".to_owned()));
        };
        let sent = writeln!(input, "{line}").and_then(|()| input.flush());
        sent.map_err(|problem| self.broken(&format!("the proxy does not listen: {problem}")))
    }

    /// The message that answers this number.
    pub fn answer(&mut self, id: u64) -> Outcome<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.waiting.iter().position(|one| one["id"] == id) {
                return Ok(self.waiting.swap_remove(at));
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.heard.recv_timeout(left) else {
                return Err(self.broken("the proxy did not answer"));
            };
            self.hear(line)?;
        }
    }

    /// Whether this number was answered already, by what has come until now.
    pub fn is_answered(&mut self, id: u64) -> Outcome<bool> {
        loop {
            match self.heard.try_recv() {
                Ok(line) => self.hear(line)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(self.broken("the proxy is gone"));
                }
            }
        }
        Ok(self.waiting.iter().any(|one| one["id"] == id))
    }

    /// Waits until the proxy has said this without being asked.
    pub fn await_notified(&mut self, method: &str) -> Outcome {
        let until = Instant::now() + PATIENCE;
        while !self.notified.iter().any(|one| one["method"] == method) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.heard.recv_timeout(left) else {
                return Err(self.broken(&format!("the proxy did not say `{method}`")));
            };
            self.hear(line)?;
        }
        Ok(())
    }

    fn hear(&mut self, line: String) -> Outcome {
        let message: Value = serde_json::from_str(&line)?;
        // What has a method was not asked for, whatever number it bears.
        match message.get("method").is_some() {
            true => self.notified.push(message),
            false => self.waiting.push(message),
        }
        self.line = line;
        Ok(())
    }

    /// Leaves, and waits until the session is closed.
    pub fn leave(mut self) -> Outcome {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let ended = self
                .proxy
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .try_wait();
            match ended {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) | Err(_) => break,
                Ok(None) => std::thread::sleep(LOOK_AGAIN),
            }
        }
        Err(self.broken("the proxy did not close its session"))
    }

    /// Ends the proxy without a word, as a crash does.
    pub fn kill(self) -> Outcome {
        let mut proxy = self.proxy.lock().unwrap_or_else(PoisonError::into_inner);
        proxy.kill()?;
        proxy.wait()?;
        Ok(())
    }

    fn broken(&self, what: &str) -> Broken {
        let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let tail: String = said.chars().rev().take(2000).collect();
        let tail: String = tail.chars().rev().collect();
        Broken::Failed(format!("{what}; it said: {tail}"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        if self.is_alone {
            let mut proxy = self.proxy.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(None) = proxy.try_wait() {
                let _ = proxy.kill();
                let _ = proxy.wait();
            }
        }
    }
}
