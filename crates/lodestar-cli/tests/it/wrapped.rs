//! A project whose client was wrapped: real servers, the real proxy, an agent that speaks to it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use crate::world::{Run, World};

/// What the server offers at first: a reader, a local writer, and two of which nothing is plain.
pub(crate) fn tools() -> Value {
    let schema = |names: &[&str]| {
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({"type": "string"})))
            .collect();
        json!({"type": "object", "properties": properties})
    };
    json!({"tools": [
        {"name": "read_file", "description": "Reads.", "inputSchema": schema(&["path"])},
        {"name": "write_file", "description": "Writes.", "inputSchema": schema(&["path", "content"])},
        {"name": "send_mail", "description": "Sends.", "inputSchema": schema(&["to", "body"]), "annotations": {"readOnlyHint": true}},
        {"name": "frobnicate", "description": "Who knows.", "inputSchema": schema(&[])},
    ]})
}

/// A project with a server, `.mcp.json` beside it, and a server that is never there.
pub(crate) fn project() -> World {
    let world = World::bare();
    world.write("work/tools.json", &tools().to_string());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let client = json!({"mcpServers": {
        "files": {"command": "python3", "args": [script, "tools.json"], "env": {"A_TOKEN": "hidden", "PLAIN": "p"}},
        "gone": {"command": "no-such-program-here"},
        "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
    }});
    world.write("work/.mcp.json", &format!("{client:#}\n"));
    world
}

/// Runs a command with programs to be found.
pub(crate) fn run(world: &World, args: &[&str]) -> Run {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = world.command(args).env("PATH", path).output();
    Run::of(output.expect("started"))
}

/// Wraps the project's client.
pub(crate) fn wrapped() -> World {
    let world = project();
    run(&world, &["init", "--write"]).expect(0);
    world
}

pub(crate) fn client(world: &World) -> Value {
    let text = fs::read_to_string(world.path("work/.mcp.json")).expect("there");
    serde_json::from_str(&text).expect("JSON")
}

/// An agent behind the proxy that a client's entry names.
pub(crate) struct Agent {
    proxy: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    next: u64,
}

impl Agent {
    pub(crate) fn start(world: &World, entry: &Value) -> Self {
        let args = entry["args"].as_array().expect("arguments");
        let mut command = Command::new(entry["command"].as_str().expect("a program"));
        command
            .args(args.iter().map(|arg| arg.as_str().expect("a text")))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", world.path("home"))
            .current_dir(world.root());
        for (name, value) in entry["env"].as_object().into_iter().flatten() {
            command.env(name, value.as_str().expect("a text"));
        }
        let mut proxy = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut agent = Self {
            input: proxy.stdin.take(),
            output: BufReader::new(proxy.stdout.take().expect("piped")),
            proxy,
            next: 0,
        };
        agent.ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        );
        agent
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.input.as_mut().expect("open"), "{message}").expect("written");
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("readable");
            assert_ne!(read, 0, "the proxy left before it answered {method}");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == json!(self.next) {
                return answer["result"].clone();
            }
        }
    }

    pub(crate) fn names(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}));
        let names = listed["tools"].as_array().expect("a list").iter();
        names
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Calls a tool; gives how it was refused, or what it answered.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let kind = result["_meta"]["_lodestar"]["kind"].as_str();
        let text = result["content"][0]["text"].as_str();
        kind.or(text).unwrap_or_default().to_owned()
    }

    pub(crate) fn leave(mut self) {
        drop(self.input.take());
        assert!(self.proxy.wait().expect("ended").success());
    }
}
