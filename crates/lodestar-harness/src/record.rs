//! A log of its own for every run of probes: what came of each, as a synthetic observation.
//!
//! It is an ordinary session of a project that is called `harness`; nothing in it is believed anywhere.

use std::path::Path;

use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
use lodestar_core::event::EventType;
use lodestar_core::id::{InvocationId, ObservationId};
use lodestar_core::name::{ActorId, ProjectId, SessionId, ToolName};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_firewall::event::Surroundings as _;
use lodestar_guard::{Keys, SystemSurroundings};
use lodestar_log::{AppendError, LogRoot, LogWriter, OpenError, SessionDir, WriterOptions};
use serde::Serialize;
use serde_json::{Map, json};
use thiserror::Error;

use crate::runner::{ProbeResult, RunReport};

const PROJECT: &str = "harness";
const ACTOR: &str = "harness";
const TOOL: &str = "harness.probe";

/// Why a run could not be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The session was not opened.
    #[error("the log of this run cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// An event was not taken.
    #[error("the log of this run takes nothing more: {0}")]
    Append(#[from] AppendError),
    /// A result has no form in the log.
    #[error("a result cannot be written: {0}")]
    Form(#[from] serde_json::Error),
}

/// The log of one run.
#[derive(Debug)]
pub struct RunLog {
    writer: LogWriter,
    actor: ActorId,
    tool: ToolName,
    surroundings: SystemSurroundings,
}

impl RunLog {
    /// Opens a session below a folder that holds, or will hold, `.lodestar/`.
    pub fn open(folder: &Path, keys: &Keys, about: &impl Serialize) -> Result<Self, RecordError> {
        let project = ProjectId::new(PROJECT).expect("INVARIANT: a constant that is a name");
        let actor = ActorId::new(ACTOR).expect("INVARIANT: a constant that is a name");
        let log = LogRoot::in_folder(folder).project(&project);
        let mut surroundings = SystemSurroundings::default();
        let session = surroundings.new_session("run");
        let opening = json!({
            "purpose": "probes",
            "about": about,
            "versions": {"lodestar": env!("CARGO_PKG_VERSION")},
        });
        let options = WriterOptions::new(keys.log.clone());
        let writer = LogWriter::create(&log, &session, &actor, &opening, &options)?;
        Ok(Self {
            writer,
            actor,
            tool: ToolName::new(TOOL).expect("INVARIANT: a constant that is a name"),
            surroundings,
        })
    }

    /// Where it is.
    pub fn dir(&self) -> &SessionDir {
        self.writer.dir()
    }

    /// Which session it is.
    pub fn session(&self) -> &SessionId {
        self.writer.dir().session()
    }

    /// Records what came of one probe.
    pub fn add(&mut self, result: &ProbeResult) -> Result<(), RecordError> {
        let now = self.surroundings.now();
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or_default();
        let observation = Observation {
            id: ObservationId::from_parts(millis, self.surroundings.random()),
            tool: self.tool.clone(),
            invocation_id: InvocationId::from_parts(millis, self.surroundings.random()),
            captured_at: now,
            session: self.session().clone(),
            project: self.dir().project().clone(),
            actor: self.actor.clone(),
            trust: ObservationTrust::Synthetic,
            sensitivity: Sensitivity::Internal,
            content: vec![ContentBlock::Structured {
                value: serde_json::to_value(result)?,
            }],
            rest: Map::new(),
        };
        let kind = EventType::OBSERVATION_RECORDED;
        self.writer.append(kind, &self.actor, &[], &observation)?;
        Ok(())
    }

    /// Ends it; when this returns, all of it is on disk.
    pub fn close(self, report: &RunReport) -> Result<(), RecordError> {
        let RunReport {
            passed,
            failed,
            skipped,
            errors,
            ..
        } = report;
        let payload = json!({
            "reason": "the run is over",
            "passed": passed, "failed": failed, "skipped": skipped, "errors": errors,
        });
        self.writer.close(&self.actor, &payload)?;
        Ok(())
    }
}
