//! A hook as a client runs it: a process of the release binary that asks a daemon that is there already,
//! against a process of the same binary that only says its version. Both are taken in turns, and the middle of
//! each counts: what a client waits for is not the best of many.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::verify::beside_this;
use crate::{Bound, Figure};

const TRIES: usize = 101;

/// What a hook may add, in starts of a bare process.
const AT_MOST: f64 = 10.0;

const CONFIG: &str = "project_id = \"bench\"\nactor_id = \"agent\"\nauto_approve_ceiling = 3\n";

pub(crate) fn measure() -> Result<Vec<Figure>, String> {
    let binary = beside_this("lodestar")?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (root, user) = (folder.path().join("work"), folder.path().join("user"));
    for dir in [&root, &user] {
        std::fs::create_dir(dir).map_err(|e| e.to_string())?;
    }
    std::fs::write(root.join("lodestar.toml"), CONFIG).map_err(|e| e.to_string())?;
    let bench = Bench {
        binary: &binary,
        root: &root,
        user: &user,
    };
    // The first one starts the daemon and opens the session.
    bench.hook(&json!({"event": "started"}))?;
    let measured = bench.figures();
    let stopped = bench.command(&["hook", "stop"]).output();
    stopped.map_err(|e| e.to_string())?;
    measured
}

struct Bench<'a> {
    binary: &'a Path,
    root: &'a Path,
    user: &'a Path,
}

impl Bench<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command
            .args(args)
            .current_dir(self.root)
            .env("LODESTAR_CONFIG_DIR", self.user)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    fn figures(&self) -> Result<Vec<Figure>, String> {
        let (mut bare, mut looks, mut told, mut writes) = (vec![], vec![], vec![], vec![]);
        for n in 0..TRIES {
            bare.push(self.bare()?);
            let read = self.used(n, "Read", "read", &json!({"file_path": "a.md"}));
            looks.push(self.hook(&json!({"event": "before", "use": read}))?);
            let result = "a line of a file\n".repeat(60);
            let after = json!({"event": "after", "use": read, "result": result, "failed": false});
            told.push(self.hook(&after)?);
            let input = json!({"file_path": "a.md", "content": result});
            let write = self.used(n, "Write", "write", &input);
            writes.push(self.hook(&json!({"event": "before", "use": write}))?);
            let after = json!({"event": "after", "use": write, "result": "ok", "failed": false});
            self.hook(&after)?;
        }
        let bare = middle(bare);
        let figure = |name, of: Vec<Duration>| {
            let of = middle(of);
            let added = of.saturating_sub(bare).as_secs_f64();
            Figure {
                name,
                value: added / bare.as_secs_f64(),
                bound: Bound::AtMost(AT_MOST),
                detail: format!("{of:.2?} each, a bare start {bare:.2?}"),
            }
        };
        Ok(vec![
            figure("hook before an L0 use, added ÷ a bare start", looks),
            figure("hook after it, with a KiB, added ÷ a bare start", told),
            figure("hook before an L3 use, added ÷ a bare start", writes),
        ])
    }

    fn used(&self, n: usize, tool: &str, kind: &str, input: &Value) -> Value {
        json!({"tool": tool, "kind": kind, "id": format!("{tool}-{n}"), "input": input})
    }

    /// A process that says its version.
    fn bare(&self) -> Result<Duration, String> {
        let began = Instant::now();
        let done = self.command(&["--version"]).output();
        let took = began.elapsed();
        match done.map_err(|e| e.to_string())?.status.success() {
            true => Ok(took),
            false => Err("the binary does not say its version".to_owned()),
        }
    }

    /// A hook that is to be let through.
    fn hook(&self, event: &Value) -> Result<Duration, String> {
        let said = json!({
            "client": "claude-code",
            "conversation": "bench",
            "cwd": self.root,
            "event": event,
        });
        let said = said.to_string();
        let began = Instant::now();
        let mut command = self.command(&["hook", "answer"]);
        let mut hook = command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut stdin = hook.stdin.take().ok_or("no standard input")?;
        stdin
            .write_all(said.as_bytes())
            .map_err(|e| e.to_string())?;
        drop(stdin);
        let done = hook.wait_with_output().map_err(|e| e.to_string())?;
        let took = began.elapsed();
        match done.stdout.starts_with(b"{\"answer\":\"proceed\"") {
            true => Ok(took),
            false => Err(String::from_utf8_lossy(&done.stdout).into_owned()),
        }
    }
}

fn middle(mut of: Vec<Duration>) -> Duration {
    of.sort();
    of[of.len() / 2]
}
