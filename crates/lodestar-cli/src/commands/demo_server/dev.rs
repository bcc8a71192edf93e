//! Developers' tools on a toy repository: no git, no network, and every commit and push leaves a line in a
//! file of the server's own, so that anybody can count what really ran.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use lodestar_core::digest::sha256;
use serde_json::{Value, json};

use super::{Serves, text, tool};

/// Where commits are recorded.
const COMMITS: &str = "commits.ndjson";
/// Where pushes are recorded: one line for each that ran.
pub(super) const PUSHES: &str = "pushes.ndjson";

const SOURCE: &str = "note.ts";
const TESTS: &str = "note.test.ts";

pub(super) struct Dev {
    root: PathBuf,
    remote: PathBuf,
}

impl Dev {
    pub(super) fn new(root: PathBuf, remote: PathBuf) -> Self {
        Self { root, remote }
    }

    fn file(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.root.join(name)).map_err(|problem| format!("{name}: {problem}"))
    }

    /// Each `test("name")` wants a function of that name to be exported.
    fn run_tests(&self) -> Result<String, String> {
        let (source, tests) = (self.file(SOURCE)?, self.file(TESTS)?);
        let wanted = tests.lines().filter_map(|line| {
            let (name, _) = line.trim().strip_prefix("test(\"")?.split_once('"')?;
            Some(name)
        });
        let (mut passed, mut missing) = (0, Vec::new());
        for name in wanted {
            match source.contains(&format!("export function {name}(")) {
                true => passed += 1,
                false => missing.push(name),
            }
        }
        match missing.is_empty() {
            true => Ok(format!("{passed} tests passed")),
            false => Err(format!("{passed} passed, failed: {}", missing.join(", "))),
        }
    }

    fn commit(&self, arguments: &Value) -> Result<String, String> {
        let message = text(arguments, "message")?;
        let tree = sha256(self.file(SOURCE)?.as_bytes()).to_string();
        self.record(COMMITS, &json!({"message": message, "tree": tree}))?;
        Ok(format!("committed, tree {}", &tree[..12]))
    }

    fn push(&self, arguments: &Value) -> Result<String, String> {
        let (remote, branch) = (text(arguments, "remote")?, text(arguments, "branch")?);
        let tree = sha256(self.file(SOURCE)?.as_bytes()).to_string();
        let push = json!({"remote": remote, "branch": branch, "tree": tree});
        self.record(PUSHES, &push)?;
        Ok(format!("pushed to {remote}"))
    }

    fn record(&self, name: &str, line: &Value) -> Result<(), String> {
        let path = self.remote.join(name);
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .open(path)
            .map_err(|problem| problem.to_string())?;
        writeln!(file, "{line}").map_err(|problem| problem.to_string())
    }
}

impl Serves for Dev {
    fn name(&self) -> &'static str {
        "demo-dev"
    }

    fn tools(&self) -> Value {
        json!([
            tool("run_tests", "Run the tests of the project", &[]),
            tool(
                "git_commit",
                "Commit what was changed",
                &[("message", "What it does")]
            ),
            tool(
                "git_push",
                "Push what was committed",
                &[("remote", "Where to"), ("branch", "Which branch")],
            ),
        ])
    }

    fn call(&self, tool: &str, arguments: &Value) -> Option<Result<String, String>> {
        match tool {
            "run_tests" => Some(self.run_tests()),
            "git_commit" => Some(self.commit(arguments)),
            "git_push" => Some(self.push(arguments)),
            _ => None,
        }
    }
}
