//! Where a scenario plays: a scratch folder that is gone afterwards, and whatever runs in it.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use lodestar_core::defence::Defence;
use tempfile::TempDir;

use crate::probe::{Broken, Outcome};

/// How long a run may take unless its probe says otherwise: far longer than any does on a quiet machine.
pub(crate) const DEADLINE_S: u64 = 30;

/// A process that a scenario started.
pub type Running = Arc<Mutex<Child>>;

/// Where one run of one scenario plays.
#[derive(Debug)]
pub struct Stage {
    folder: TempDir,
    program: PathBuf,
    database: Option<String>,
    without: Vec<Defence>,
    started: Arc<Started>,
}

/// The processes of a stage, for whoever has to end them. One whose agent is gone may still be closing its
/// session: it is among them, or it would write into a folder that is being removed.
#[derive(Debug, Default)]
pub(crate) struct Started(Mutex<Processes>);

#[derive(Debug, Default)]
struct Processes {
    running: Vec<Running>,
    /// Whether it is over: what is started now does not outlive that.
    is_over: bool,
}

impl Started {
    /// Kills whatever still runs.
    pub(crate) fn end(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.is_over = true;
        all.running.drain(..).for_each(|running| end(&running));
    }

    fn keep(&self, running: &Running) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.is_over {
            true => end(running),
            false => all.running.push(Arc::clone(running)),
        }
    }
}

fn end(running: &Running) {
    let mut child = running.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(None) = child.try_wait() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Stage {
    pub(crate) fn new(
        program: &Path,
        database: Option<&str>,
        without: &[Defence],
    ) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("lodestar-probe-")
            .tempdir()?;
        Ok(Self {
            folder,
            program: program.to_owned(),
            database: database.map(str::to_owned),
            without: without.to_vec(),
            started: Arc::default(),
        })
    }

    /// A folder of its own, empty at the beginning.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The `lodestar` program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What is taken out in this run: nothing, or the one defence of the contrast.
    pub fn without(&self) -> &[Defence] {
        &self.without
    }

    /// Whether this defence is taken out.
    pub fn lacks(&self, defence: Defence) -> bool {
        self.without.contains(&defence)
    }

    /// Where a PostgreSQL server is, for scenarios that need one.
    pub fn database(&self) -> Outcome<&str> {
        self.database.as_deref().ok_or_else(|| {
            Broken::Skipped("LODESTAR_TEST_DATABASE_URL names no PostgreSQL server".to_owned())
        })
    }

    /// Runs what waits for things to a result.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> Outcome<T> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        Ok(runtime.block_on(work))
    }

    /// Makes a process known, so that it does not outlive its run.
    pub fn keep(&self, child: Child) -> Running {
        let running = Arc::new(Mutex::new(child));
        self.started.keep(&running);
        running
    }

    pub(crate) fn started(&self) -> Arc<Started> {
        Arc::clone(&self.started)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.started.end();
    }
}
