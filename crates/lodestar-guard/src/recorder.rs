//! The firewall's events, written to the log of a session.

use lodestar_core::name::ActorId;
use lodestar_firewall::event::{FirewallEvent, LogName, LogPosition, NotRecorded, Recorder};
use lodestar_log::LogWriter;

/// Writes what the firewall decides to the session's log.
#[derive(Debug, Clone)]
pub struct SessionRecorder {
    writer: LogWriter,
    actor: ActorId,
    log: LogName,
}

impl SessionRecorder {
    /// Writes to this session, in this actor's name.
    pub fn new(writer: LogWriter, actor: ActorId) -> Self {
        let log = LogName {
            project: writer.dir().project().clone(),
            session: writer.dir().session().clone(),
        };
        Self { writer, actor, log }
    }

    /// The writer.
    pub fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// Which log it writes to.
    pub fn log(&self) -> &LogName {
        &self.log
    }

    /// In whose name.
    pub fn actor(&self) -> &ActorId {
        &self.actor
    }
}

impl Recorder for SessionRecorder {
    fn record(&mut self, event: &FirewallEvent) -> Result<LogPosition, NotRecorded> {
        let receipt = self
            .writer
            .append(event.event_type(), &self.actor, &[], event)
            .map_err(|error| NotRecorded(Box::new(error)))?;
        Ok(LogPosition {
            log: self.log.clone(),
            seq: receipt.seq(),
            leaf: receipt.leaf_hash(),
        })
    }

    fn hand_over(&mut self) -> Result<(), NotRecorded> {
        let handed_over = self.writer.hand_over();
        handed_over.map_err(|stopped| NotRecorded(Box::new(stopped)))
    }
}
