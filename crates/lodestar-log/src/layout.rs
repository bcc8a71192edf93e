//! Where things lie on disk. Only validated names ever become path components.
//!
//! ```text
//! .lodestar/log/<project>/ledger.ndjson        opening and closing records of every session
//!                         ledger.checkpoint    the ledger's signed head
//!                         ledger.next          the head to come, while a record is appended
//!                         <session>/events.ndjson
//!                                   checkpoint
//!                                   blobs/<sha256>
//!                                   recovered/  what recoveries cut off
//!                                   grade        what a gateway said of it, where it was a run
//! ```

use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::name::{ProjectId, SessionId};

use crate::disk;

pub(crate) const EVENTS: &str = "events.ndjson";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const BLOBS: &str = "blobs";
pub(crate) const RECOVERED: &str = "recovered";
pub(crate) const GRADE: &str = "grade";
pub(crate) const LEDGER: &str = "ledger.ndjson";
pub(crate) const LEDGER_CHECKPOINT: &str = "ledger.checkpoint";
/// The head over a record that is being appended; it becomes the checkpoint once the record is on
/// disk, and tells an interrupted append from a forged record.
pub(crate) const LEDGER_NEXT: &str = "ledger.next";
/// Checkpoints are a few hundred bytes; with the most signature lines a few thousand.
pub(crate) const MAX_CHECKPOINT_BYTES: u64 = 64 << 10;

/// The directory that holds the logs of all projects, `.lodestar/log`.
#[derive(Debug, Clone)]
pub struct LogRoot {
    dir: PathBuf,
}

impl LogRoot {
    /// The log below a project folder's `.lodestar/`.
    pub fn in_folder(folder: impl AsRef<Path>) -> Self {
        Self {
            dir: folder.as_ref().join(".lodestar").join("log"),
        }
    }

    /// The log in this directory itself.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// One project's logs; nothing is created.
    pub fn project(&self, project: &ProjectId) -> ProjectLog {
        ProjectLog {
            dir: self.dir.join(project.as_str()),
            project: project.clone(),
        }
    }

    /// The projects that have logs here, by name.
    pub fn projects(&self) -> io::Result<Vec<ProjectId>> {
        valid_names(&self.dir, |name| ProjectId::new(name).ok())
    }
}

/// One project's logs: its ledger and its sessions.
#[derive(Debug, Clone)]
pub struct ProjectLog {
    dir: PathBuf,
    project: ProjectId,
}

impl ProjectLog {
    /// The project's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The project.
    pub fn project(&self) -> &ProjectId {
        &self.project
    }

    /// The session directories on disk, by name. The ledger says which ones there should be.
    pub fn sessions_on_disk(&self) -> io::Result<Vec<SessionId>> {
        valid_names(&self.dir, |name| SessionId::new(name).ok())
    }

    /// Where a session's files are, or would be.
    pub fn session(&self, session: &SessionId) -> SessionDir {
        SessionDir {
            dir: self.dir.join(session.as_str()),
            project: self.project.clone(),
            session: session.clone(),
        }
    }

    /// The ledger file.
    pub fn ledger_path(&self) -> PathBuf {
        self.dir.join(LEDGER)
    }

    /// The origin line of the ledger's signed head.
    pub fn ledger_origin(&self) -> String {
        origin(self.project.as_str(), crate::ledger::LEDGER_NAME)
    }

    /// The ledger's signed head.
    pub fn ledger_checkpoint_path(&self) -> PathBuf {
        self.dir.join(LEDGER_CHECKPOINT)
    }
}

/// One session's directory.
#[derive(Debug, Clone)]
pub struct SessionDir {
    dir: PathBuf,
    project: ProjectId,
    session: SessionId,
}

impl SessionDir {
    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The project it belongs to.
    pub fn project(&self) -> &ProjectId {
        &self.project
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The project's logs, this session among them.
    pub fn project_log(&self) -> ProjectLog {
        ProjectLog {
            dir: self.dir.parent().map_or_else(PathBuf::new, Path::to_owned),
            project: self.project.clone(),
        }
    }

    /// The events.
    pub fn events_path(&self) -> PathBuf {
        self.dir.join(EVENTS)
    }

    /// The latest checkpoint.
    pub fn checkpoint_path(&self) -> PathBuf {
        self.dir.join(CHECKPOINT)
    }

    /// Large contents, by hash.
    pub fn blobs_dir(&self) -> PathBuf {
        self.dir.join(BLOBS)
    }

    /// What recoveries cut off.
    pub fn recovered_dir(&self) -> PathBuf {
        self.dir.join(RECOVERED)
    }

    /// What a gateway said of the run that it was: a signed statement beside the log, and no part of it.
    pub fn grade_path(&self) -> PathBuf {
        self.dir.join(GRADE)
    }

    /// What lies there, if it is a regular file that is no longer than this; none where there is none.
    pub fn read_grade(&self, limit: u64) -> io::Result<Option<Vec<u8>>> {
        disk::read_small(&self.grade_path(), limit)
    }

    /// The origin line of this session's checkpoints.
    pub fn origin(&self) -> String {
        origin(self.project.as_str(), self.session.as_str())
    }
}

/// The origin line of a checkpoint, and the name of the key that signs it: one per log, so that a
/// checkpoint of one session never passes for another's.
pub(crate) fn origin(project: &str, session: &str) -> String {
    format!("lodestar.log/{project}/{session}")
}

fn valid_names<N: Ord>(dir: &Path, parse: impl Fn(&str) -> Option<N>) -> io::Result<Vec<N>> {
    let mut names = Vec::new();
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(names),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        // A link is listed too: the log never makes one, so it has to be accounted for.
        let kind = entry.file_type()?;
        if (kind.is_dir() || kind.is_symlink())
            && let Some(name) = entry.file_name().to_str().and_then(&parse)
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
