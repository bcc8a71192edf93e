//! The agent's side of MCP: the proxy as a process, one request after the other over its standard streams.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use lodestar_core::defence::Defence;
use lodestar_mcp::wire::{self, IdKey, Message};
use serde_json::{Value, json};

use super::scene::Scene;
use crate::failure::Failure;
use crate::inert;

/// How long an answer may take: far longer than it does.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const REVISION: &str = "2025-11-25";

/// A proxy that runs.
pub(super) struct Client {
    proxy: Child,
    input: Option<ChildStdin>,
    heard: Receiver<Vec<u8>>,
    next: u64,
    errors: std::path::PathBuf,
}

/// What came of a call.
#[derive(Debug)]
pub(super) struct Answer {
    /// What the tool said, or the refusal.
    pub(super) text: String,
    /// What Lodestar says of it.
    pub(super) own: Value,
}

impl Client {
    /// Starts the proxy and shakes hands.
    pub(super) fn start(scene: &Scene, without: &[Defence]) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(Failure::io("this program"))?;
        let errors = scene.beside("proxy.stderr");
        let stderr = File::create(&errors).map_err(Failure::io(&errors))?;
        let mut command = Command::new(&program);
        match without.is_empty() {
            true => command.args(["guard", "mcp-proxy"]),
            false => command.arg("probe-proxy"),
        };
        for defence in without {
            command.args(["--without", defence.as_str()]);
        }
        let mut proxy = command
            .arg("--config")
            .arg(scene.config())
            .env("LODESTAR_CONFIG_DIR", scene.installation().dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(Failure::io(&program))?;
        let output = proxy.stdout.take().expect("INVARIANT: it is piped");
        let (tell, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).split(b'\n');
            for line in lines.map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            input: proxy.stdin.take(),
            proxy,
            heard,
            next: 1,
            errors,
        };
        let hello = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "lodestar-demo", "version": env!("CARGO_PKG_VERSION")},
        });
        client.ask("initialize", &hello)?;
        let mut message = Vec::new();
        wire::notification(&mut message, "notifications/initialized", None);
        client.send(message)?;
        Ok(client)
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, Failure> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.ask("tools/call", &params)?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        Ok(Answer {
            text: text.to_owned(),
            own: result["_meta"]["_lodestar"].clone(),
        })
    }

    /// Leaves, and waits until the session is closed.
    pub(super) fn leave(mut self) -> Result<(), Failure> {
        drop(self.input.take());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.proxy.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) | Err(_) => break,
                Ok(None) => std::thread::sleep(LOOK_AGAIN),
            }
        }
        Err(self.broken("the proxy did not close its session"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let id = self.next;
        self.next += 1;
        let params = serde_json::value::to_raw_value(params)
            .expect("INVARIANT: a JSON value can be written");
        let mut message = Vec::new();
        wire::request(&mut message, id, method, Some(&params));
        self.send(message)?;
        let until = Instant::now() + PATIENCE;
        let wanted = IdKey::Number(i64::try_from(id).unwrap_or(i64::MAX));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.heard.recv_timeout(left) else {
                return Err(self.broken(&format!("the proxy did not answer `{method}`")));
            };
            match Message::read(&line) {
                Ok(Message::Answer { id, result }) if id.key() == wanted => {
                    return serde_json::from_str(result.get())
                        .map_err(|problem| self.broken(&problem.to_string()));
                }
                Ok(Message::Failure { error, .. }) => {
                    return Err(self.broken(&format!("`{method}` failed: {error}")));
                }
                // Notices of what ran.
                _ => {}
            }
        }
    }

    fn send(&mut self, mut message: Vec<u8>) -> Result<(), Failure> {
        message.push(b'\n');
        let input = self
            .input
            .as_mut()
            .expect("INVARIANT: open until it leaves");
        let sent = input.write_all(&message).and_then(|()| input.flush());
        sent.map_err(|problem| self.broken(&format!("the proxy does not listen: {problem}")))
    }

    fn broken(&self, what: &str) -> Failure {
        let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
        Failure::usage(inert::line(&format!("{what}; it said: {said}"), 2000))
    }
}

/// A demonstration that fails leaves no process behind.
impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Ok(None) = self.proxy.try_wait() {
            let _ = self.proxy.kill();
            let _ = self.proxy.wait();
        }
    }
}
