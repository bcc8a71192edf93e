//! Runs tests in processes of their own: to see what they reach, and to see whether they notice.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::compile::Program;
use super::rewrite::{ACTIVE, Id, REACHED};
use crate::database::Database;
use crate::shell::{Failure, because};

/// A test takes longer on a machine that does something else as well.
const PATIENCE: u32 = 5;

/// Beside the patience, for the shortest tests.
const GRACE: Duration = Duration::from_secs(6);

/// How a run of tests ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// All passed.
    Passed,
    /// This one failed, or the process did.
    Failed(String),
    /// Nothing was heard for too long.
    TimedOut,
}

/// What all tests have around them.
pub(super) struct Place {
    /// The copy of the workspace.
    tree: PathBuf,
    /// One server for all: each test would start its own, which takes seconds.
    database: Option<Database>,
}

impl Place {
    /// With a database server, where there is PostgreSQL.
    pub(super) fn new(tree: &Path) -> Self {
        Self {
            tree: tree.to_owned(),
            database: Database::start().ok(),
        }
    }
}

/// Runs tests: one process at a time.
pub(super) struct Bench<'a> {
    /// For what tests write; emptied after each run.
    folder: PathBuf,
    place: &'a Place,
}

impl<'a> Bench<'a> {
    /// A bench with a folder of its own, in memory where there is such a place. Its name is short:
    /// sockets lie below it.
    pub(super) fn new(place: &'a Place, number: usize) -> Result<Self, Failure> {
        let name = format!("lm-{}-{number}", std::process::id());
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => memory.join(name),
            false => std::env::temp_dir().join(name),
        };
        fs::create_dir_all(&folder)
            .map_err(|e| because(format!("cannot make `{}`: {e}", folder.display())))?;
        Ok(Self { folder, place })
    }

    /// The names of the tests of a program.
    pub(super) fn list(&self, program: &Program) -> Result<Vec<String>, Failure> {
        let mut command = self.command(program);
        let output = command.args(["--list", "--format", "terse"]).output();
        let output = output
            .map_err(|e| because(format!("cannot list the tests of {}: {e}", program.name)))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(ToOwned::to_owned).collect())
    }

    /// Runs one test with no mutant: how long it takes and which mutants it reaches.
    pub(super) fn reach(
        &self,
        program: &Program,
        test: &str,
    ) -> Result<(Duration, Vec<Id>), Failure> {
        let file = self.folder.join("reached");
        let mut command = self.command(program);
        command.args(["--exact", test]).env(REACHED, &file);
        let started = Instant::now();
        let ended = watch(command, Duration::from_secs(600))?;
        let took = started.elapsed();
        let reached = fs::read_to_string(&file).unwrap_or_default();
        self.clear();
        match ended {
            Ended::Passed => {
                // A process that the test starts notes what it reaches as well.
                let reached: BTreeSet<Id> =
                    reached.lines().filter_map(|id| id.parse().ok()).collect();
                Ok((took, reached.into_iter().collect()))
            }
            _ => Err(because(format!(
                "`{test}` of {} does not pass without a mutant",
                program.name
            ))),
        }
    }

    /// Runs tests one after the other in one process, with a mutant or, for comparison, none, until
    /// one fails. `longest` is what the slowest of them takes without.
    pub(super) fn run<'t>(
        &self,
        program: &Program,
        tests: impl Iterator<Item = &'t str>,
        mutant: Option<Id>,
        longest: Duration,
    ) -> Result<Ended, Failure> {
        let mut command = self.command(program);
        command.args(["--test-threads=1", "--exact"]).args(tests);
        if let Some(id) = mutant {
            command.env(ACTIVE, id.to_string());
        }
        let ended = watch(command, longest * PATIENCE + GRACE);
        self.clear();
        ended
    }

    fn command(&self, program: &Program) -> Command {
        let mut command = Command::new(&program.executable);
        command
            .current_dir(&program.package)
            .env("CARGO_MANIFEST_DIR", &program.package)
            .env("TMPDIR", &self.folder)
            .env("INSTA_WORKSPACE_ROOT", &self.place.tree)
            .env("INSTA_UPDATE", "no")
            .env("PROPTEST_FAILURE_PERSISTENCE", "off")
            // Looking for the smallest example of a failure takes longer than finding one.
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("RUST_BACKTRACE", "0")
            .env_remove(ACTIVE)
            .env_remove(REACHED)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        if let Some(database) = &self.place.database {
            command.env("LODESTAR_TEST_POSTGRES", &database.url);
        }
        command
    }

    fn clear(&self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::create_dir_all(&self.folder);
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Follows a process of tests line by line. It is ended at the first failure, and when it is silent
/// for longer than `patience`.
fn watch(mut command: Command, patience: Duration) -> Result<Ended, Failure> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| because(format!("cannot start a test: {e}")))?;
    let stdout = child.stdout.take().expect("standard output is piped");
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while matches!(stdout.read_until(b'\n', &mut line), Ok(n) if n > 0) {
            if send
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                break;
            }
            line.clear();
        }
        // Nobody listens any more; the process may still want to speak.
        let _ = std::io::copy(&mut stdout.take(1 << 20), &mut std::io::sink());
    });
    let ended = loop {
        match lines.recv_timeout(patience) {
            Ok(line) => {
                let failed = line.trim_end().strip_suffix("... FAILED");
                if let Some(test) = failed.and_then(|line| line.strip_prefix("test ")) {
                    break Ended::Failed(test.trim().to_owned());
                }
            }
            Err(RecvTimeoutError::Timeout) => break Ended::TimedOut,
            Err(RecvTimeoutError::Disconnected) => {
                let status = child
                    .wait()
                    .map_err(|e| because(format!("cannot wait for a test: {e}")))?;
                return Ok(match status.success() {
                    true => Ended::Passed,
                    false => Ended::Failed(format!("the process ({status})")),
                });
            }
        }
    };
    end(&mut child);
    Ok(ended)
}

/// Ends a process and what it has started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}
