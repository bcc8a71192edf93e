//! What is known of a device's runs, on disk.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use lodestar_core::digest::Digest;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::id::{ContenderId, RunId, RunnerId, TermsId};
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_kernel::opening::RunTicket;
use lodestar_log::{LogRoot, SessionDir};
use serde::{Deserialize, Serialize};

use crate::device::{DeviceError, DeviceFolder, FileError, files, lock};

/// What a run is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The agent in whose name it is made.
    pub agent: ContenderId,
    /// The runner that makes it.
    pub runner: RunnerId,
    /// What it is judged by.
    pub terms: TermsId,
    /// SHA-256 of the canonical workflow file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_hash: Option<Digest>,
    /// SHA-256 of the task and prompt files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lens_hash: Option<Digest>,
}

/// Where the session lies that a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The folder with the logs of all projects.
    pub log: PathBuf,
    /// The project.
    pub project: ProjectId,
    /// The session.
    pub session: SessionId,
}

impl Place {
    /// The place of a session.
    pub fn of(dir: &SessionDir) -> Self {
        let project = dir.project_log();
        let log = project.dir().parent().map(PathBuf::from);
        let log = log.unwrap_or_default();
        Self {
            // It is read from wherever somebody works then.
            log: std::path::absolute(&log).unwrap_or(log),
            project: dir.project().clone(),
            session: dir.session().clone(),
        }
    }

    /// The session there.
    pub fn dir(&self) -> SessionDir {
        LogRoot::at(&self.log)
            .project(&self.project)
            .session(&self.session)
    }
}

/// How far a run has come, by what was done here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The gateway knows it; no session is opened yet.
    Registered,
    /// Its session is open, or was.
    Opened,
    /// The gateway has graded it.
    Attested,
    /// The gateway never takes it.
    Refused,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// What the gateway gave out, and what stands in the log's opening.
    pub ticket: RunTicket,
    /// When it was registered, by the gateway's time.
    pub registered_at: Timestamp,
    /// Where.
    pub gateway: String,
    /// What it was to be.
    pub plan: Plan,
    /// The session that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Place>,
    /// How far it has come.
    pub stage: Stage,
    /// What the gateway made of it, by its own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ExecutionLevel>,
    /// Why it did not come further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RunRecord {
    /// Whether it waits to be attested: its session is over, and nobody has.
    pub fn is_waiting(&self) -> bool {
        self.stage == Stage::Opened && !self.is_live()
    }

    /// Whether some process writes its session. One that is not there is written by nobody.
    pub fn is_live(&self) -> bool {
        let live = |place: &Place| lodestar_log::verify::is_live(&place.dir()).unwrap_or(false);
        self.session.as_ref().is_some_and(live)
    }
}

/// A run that nobody else ships or attests for as long as this is held.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    _lock: File,
}

impl Held {
    /// The run is attested: whoever held it next would have nothing to do.
    pub(super) fn done(self) {
        // Left behind it is in nobody's way.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What is known of all of a device's runs.
#[derive(Debug, Clone)]
pub struct RunBook {
    folder: PathBuf,
}

impl RunBook {
    /// That of a device.
    pub fn of(folder: &DeviceFolder) -> Self {
        Self {
            folder: folder.runs(),
        }
    }

    fn path(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.json"))
    }

    /// Keeps what is known of a run.
    pub fn keep(&self, record: &RunRecord) -> Result<(), DeviceError> {
        files::private_folder(&self.folder)?;
        let path = self.path(record.ticket.id);
        let text = serde_json::to_string_pretty(record);
        let text = text.map_err(|problem| DeviceError::Malformed {
            path: path.clone(),
            problem: problem.to_string(),
        })?;
        Ok(files::replace_private(&path, &format!("{text}\n"))?)
    }

    /// The same, unless the run came to its end since this was read.
    pub fn keep_unless_done(&self, record: &RunRecord) -> Result<(), DeviceError> {
        match self.get(record.ticket.id)?.map(|kept| kept.stage) {
            Some(Stage::Attested | Stage::Refused) => Ok(()),
            _ => self.keep(record),
        }
    }

    /// What is known of a run, if it is one of this device's.
    pub fn get(&self, run: RunId) -> Result<Option<RunRecord>, DeviceError> {
        let path = self.path(run);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let text = files::read(&path)?;
        let read = serde_json::from_str(&text);
        read.map(Some).map_err(|problem| DeviceError::Malformed {
            path,
            problem: problem.to_string(),
        })
    }

    /// Takes a run for whoever ships it; none where somebody else does.
    pub fn hold(&self, run: RunId) -> Result<Option<Held>, DeviceError> {
        files::private_folder(&self.folder)?;
        let path = self.folder.join(format!("{run}.lock"));
        let lock = lock::if_free(&path)?;
        Ok(lock.map(|lock| Held { path, _lock: lock }))
    }

    /// The runs, oldest first.
    pub fn list(&self) -> Result<Vec<RunRecord>, DeviceError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(FileError::at(&self.folder))?,
        };
        let mut runs = Vec::new();
        for entry in entries {
            let name = entry.map_err(FileError::at(&self.folder))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            if let Some(id) = id.and_then(|id| id.parse().ok()) {
                runs.extend(self.get(id)?);
            }
        }
        runs.sort_by_key(|run| (run.registered_at, run.ticket.id));
        Ok(runs)
    }
}
