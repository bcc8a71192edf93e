//! The program as people and crashes meet it: commands over a scratch project, what waits for people, and
//! servers that are killed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lodestar_core::defence::Defence;
use lodestar_guard::channel::drop::Pile;
use lodestar_policy::ApprovalRequest;
use rustix::process::{Pid, Signal, kill_process};

use super::project::Project;
use crate::probe::{Broken, Outcome};

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// What a command said.
#[derive(Debug, Clone)]
pub struct Said {
    /// How it ended.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// The program with an installation of its own, and with nothing of the operator's: a store that the environment
/// names holds beliefs in earnest.
pub(crate) fn apart(program: &Path, installation: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("LODESTAR_CONFIG_DIR", installation)
        .env_remove("LODESTAR_STORE")
        .env_remove("LODESTAR_STORE_FILE");
    command
}

impl Project<'_> {
    /// Runs `lodestar` with these arguments over this project, as a person does, and hears it out.
    pub fn lodestar(&self, args: &[&str]) -> Outcome<Said> {
        let output = apart(self.stage().program(), self.installation().dir())
            .arg("--root")
            .arg(self.root())
            .args(args)
            .current_dir(self.root())
            .output()?;
        let text = |bytes| String::from_utf8(bytes);
        Ok(Said {
            code: output.status.code(),
            out: text(output.stdout)?,
            err: text(output.stderr)?,
        })
    }

    /// The card of a request, as a person sees it. Without inert rendering it is the hidden `probe-show`.
    pub fn card(&self, request: &str) -> Outcome<Said> {
        let off = Defence::InertRendering;
        match self.stage().lacks(off) {
            true => self.lodestar(&["probe-show", "--without", off.as_str(), request]),
            false => self.lodestar(&["approve", "show", request]),
        }
    }

    /// What waits for people, as it lies there for them.
    pub fn requests(&self) -> Outcome<Vec<ApprovalRequest>> {
        let pile = Pile::below(self.root())?;
        let requests = pile.requests();
        let requests = requests.map(|shown| shown.announcement().request.clone());
        Ok(requests.collect())
    }

    /// Waits until a tool has been called so often, by its server's own marks.
    pub fn await_ran(&self, server: &str, tool: &str, times: usize) -> Outcome {
        self.wait_until(&format!("`{tool}` was not called"), || {
            Ok(self.ran(server, tool)? >= times)
        })
    }

    /// Looks again and again until something is so.
    pub fn wait_until(&self, otherwise: &str, is_so: impl Fn() -> Outcome<bool>) -> Outcome {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if is_so()? {
                return Ok(());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Err(Broken::Failed(otherwise.to_owned()))
    }

    /// Ends a scripted server without a word, as a crash does.
    pub fn kill_server(&self, server: &str) -> Outcome {
        let file = self.marks().join(format!("{server}.started"));
        let number = std::fs::read_to_string(file)?.trim().parse()?;
        let process = Pid::from_raw(number)
            .ok_or_else(|| Broken::Failed("the server said no process number".to_owned()))?;
        Ok(kill_process(process, Signal::KILL)?)
    }
}
