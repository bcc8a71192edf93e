//! The steps of an action, and a process or a disk that fails between any two of them.
//!
//! Every test here runs the session in a process of its own. What its tools did is written to a file
//! outside of the project, which no part of Lodestar knows of.

mod held;
mod kill;
mod unsynced;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lodestar_core::name::SessionId;
use lodestar_guard::{Holds, Session, Setup};
use lodestar_kernel::tool::Output;
use serde_json::{Value, json};

use crate::governed::{CountingTool, GRADES, Project};

const FOLDER: &str = "LODESTAR_TEST_FOLDER";

/// The scratch folder of a test: the project, and beside it what its tools wrote.
struct Scene {
    folder: PathBuf,
    _scratch: Option<tempfile::TempDir>,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("project")).unwrap();
        Self {
            folder,
            _scratch: Some(scratch),
        }
    }

    /// The same scene, in the process that a test started.
    fn inherited() -> Self {
        let folder = std::env::var_os(FOLDER).expect("started by another test");
        Self {
            folder: folder.into(),
            _scratch: None,
        }
    }

    fn project(&self) -> Project {
        Project::at(&self.folder.join("project"))
    }

    /// A session with tools that leave a trace outside.
    fn setup(&self, session: &str) -> Setup {
        let tools = ["box.read", "box.write", "box.send"].map(|name| tracing(name, &self.traces()));
        let config = format!("session_id = \"{session}\"\n{GRADES}");
        self.project().setup(&config, &tools).holds(Holds::Leave)
    }

    async fn open(&self, session: &str) -> Session {
        self.setup(session).open().await.unwrap()
    }

    fn traces(&self) -> PathBuf {
        self.folder.join("traces")
    }

    /// What ran, in order, by the name that each call gave itself.
    fn ran(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.traces()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts a test of this binary that is only there to be started.
    fn child(&self, test: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([test, "--exact", "--ignored"])
            .env(FOLDER, &self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

/// A tool that writes the name of its call to a file, safely, before it returns.
pub(crate) fn tracing(name: &str, traces: &Path) -> CountingTool {
    let traces = traces.to_owned();
    CountingTool::answering(name, move |call| {
        let text = call.text("text").unwrap();
        leave_trace(&traces, text);
        Output::text(format!("did {text}"))
    })
}

fn leave_trace(traces: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(traces)
        .unwrap();
    file.write_all(format!("{text}\n").as_bytes()).unwrap();
    file.sync_all().unwrap();
}

fn arguments(name: &str) -> Value {
    json!({"path": "a.md", "text": name})
}

fn session_id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}
