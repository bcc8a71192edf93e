//! Programs that listen: servers of others over HTTP, and the proxy's HTTP face.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Lab;
use crate::agent::peers;
use crate::world::World;

/// What clients of the proxy have to show.
pub(super) const TOKEN: &str = "a-token-of-the-tests-0123456789abcdef";

/// A program that listens, until it is dropped.
pub(super) struct Listening {
    child: Child,
    pub(super) url: String,
}

impl Listening {
    /// Starts a program of the peers, which says on its standard output where it listens.
    pub(super) fn script(lab: &Lab, script: &str, args: &[&str]) -> Self {
        let mut command = lab.program(lab.node());
        command.arg(peers().join(script)).args(args);
        let mut child = started(command.stdout(Stdio::piped()));
        let output = child.stdout.take().expect("piped");
        let url = said(output, |line| {
            line.strip_prefix("listening on ").map(str::to_owned)
        });
        Self { child, url }
    }

    /// Starts the proxy's HTTP face, which says on its standard error where it listens.
    pub(super) fn proxy(lab: &Lab, world: &World) -> Self {
        let mut command = lab.program(env!("CARGO_BIN_EXE_lodestar"));
        command
            .args(["guard", "mcp-proxy", "--listen", "127.0.0.1:0", "--config"])
            .arg(world.path("work/lodestar.toml"))
            .env("LODESTAR_CONFIG_DIR", world.path("config"))
            .env("PROXY_TOKEN", TOKEN);
        let mut child = started(command.stderr(Stdio::piped()));
        let errors = child.stderr.take().expect("piped");
        let url = said(errors, |line| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(line["listening"].as_str()?.to_owned())
        });
        Self { child, url }
    }

    /// Tells it to end, and waits until it has.
    pub(super) fn end(mut self) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        let _ = self.child.wait();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn started(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).spawn().expect("started")
}

/// The first line that says where; the rest is read and forgotten, so that nobody waits for room.
fn said(stream: impl Read + Send + 'static, address: impl Fn(&str) -> Option<String>) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let found = lines.by_ref().find_map(|line| address(&line));
    std::thread::spawn(move || lines.for_each(drop));
    found.expect("it says where it listens")
}
