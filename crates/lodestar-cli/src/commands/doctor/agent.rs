//! The doctor as an agent: the real proxy as a process, spoken to over its streams.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::inert;

/// Most that is kept of what the proxy says beside the protocol.
const MAX_WORDS: u64 = 64 << 10;
/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Agent {
    proxy: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    words: Option<JoinHandle<String>>,
    next: u64,
    patience: Duration,
}

impl Agent {
    /// Starts the proxy and introduces itself.
    pub(super) fn start(
        config: &Path,
        given: &BTreeMap<String, String>,
        patience: Duration,
    ) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|problem| problem.to_string())?;
        let mut proxy = Command::new(program)
            .args(["guard", "mcp-proxy", "--config"])
            .arg(config)
            .envs(given)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|problem| format!("it cannot be started: {problem}"))?;
        let (Some(input), Some(output), Some(errors)) =
            (proxy.stdin.take(), proxy.stdout.take(), proxy.stderr.take())
        else {
            return Err("it has no streams".to_owned());
        };
        let (send, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str(&line) else {
                    continue;
                };
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let words = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.take(MAX_WORDS).read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut agent = Self {
            proxy,
            input: Some(input),
            answers,
            words: Some(words),
            next: 0,
            patience,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "lodestar-doctor", "version": env!("CARGO_PKG_VERSION")},
        });
        agent.ask("initialize", hello)?;
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(agent)
    }

    /// Asks, and gives the result.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let until = Instant::now() + self.patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(message) = self.answers.recv_timeout(left) else {
                return Err(self.why_silent(method));
            };
            if message["id"] != json!(id) || !message["method"].is_null() {
                continue;
            }
            return match message.get("result") {
                Some(result) => Ok(result.clone()),
                None => Err(format!("it answers `{method}` with {}", message["error"])),
            };
        }
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn say(&mut self, message: &Value) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it was left")?;
        writeln!(input, "{message}")
            .and_then(|()| input.flush())
            .map_err(|problem| match problem.kind() {
                std::io::ErrorKind::BrokenPipe => self.why_silent("anything"),
                _ => problem.to_string(),
            })
    }

    fn why_silent(&mut self, method: &str) -> String {
        match self.proxy.try_wait() {
            Ok(Some(_)) => {
                let words = self.words.take().and_then(|words| words.join().ok());
                format!(
                    "it ended: {}",
                    inert::line(words.unwrap_or_default().trim(), 600)
                )
            }
            _ => format!("it does not answer `{method}`"),
        }
    }

    /// Leaves, and waits until the session is closed.
    pub(super) fn leave(mut self) -> Result<(), String> {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.proxy.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("it ended with {status}")),
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Err(problem) => return Err(problem.to_string()),
            }
        }
        Err("it does not end when its agent leaves".to_owned())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        if !matches!(self.proxy.try_wait(), Ok(Some(_))) {
            let _ = self.proxy.kill();
            let _ = self.proxy.wait();
        }
    }
}
