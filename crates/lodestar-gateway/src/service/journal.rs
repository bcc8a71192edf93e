//! The service's event log. What is recorded waits in the store's outbox, in the same transaction as what it
//! tells of, and goes into the log after it; each payload carries its number there, so that after a crash
//! what is missing is written, and nothing twice.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_log::{
    AppendError, Barrier, Clock, Ledger, LedgerState, LogRoot, LogWriter, OpenError, ProjectLog,
    Reader, Receipt, Trust, WriterOptions,
};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::store::{Sql, StoreError, outbox};

/// The project of the service's log.
pub const PROJECT: &str = "gateway";

const ACTOR: &str = "gateway";

/// Events that go into the log at a time.
const PAGE: usize = 512;

/// Why the log cannot be written.
#[derive(Debug, Error)]
pub enum JournalError {
    /// It cannot be opened.
    #[error("the service's event log cannot be opened: {0}")]
    Open(#[from] OpenError),
    /// It takes no more.
    #[error("the service's event log takes nothing more: {0}")]
    Append(#[from] AppendError),
    /// It cannot be read.
    #[error("the service's event log cannot be read: {0}")]
    Read(#[from] io::Error),
    /// What it was found to be.
    #[error("the service's event log does not hold: {0}")]
    Broken(String),
    /// The outbox is not to be had.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came of a look into the outbox.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drained {
    /// How many events went into the log.
    pub(super) events: usize,
    /// Whether there may be more.
    pub(super) more: bool,
}

/// The log, open.
pub(super) struct Journal {
    writer: LogWriter,
    actor: ActorId,
    /// The last number that is in it.
    last: u64,
}

impl Journal {
    /// Opens a session of the log, behind whatever the one before it came to.
    pub(super) fn open(
        folder: &Path,
        key: Arc<SecretKey>,
        clock: Clock,
        settings: &Value,
        without: &[Defence],
    ) -> Result<Self, JournalError> {
        let named = "INVARIANT: a constant that is a name";
        let project = ProjectId::new(PROJECT).expect(named);
        let actor = ActorId::new(ACTOR).expect(named);
        let log = LogRoot::at(folder).project(&project);
        let options = WriterOptions {
            clock: clock.clone(),
            ..WriterOptions::new(key)
        };
        let last = close_last(&log, &actor, &options)?;
        let session = new_session(clock.now())?;
        let mut opening = json!({
            "purpose": "gateway",
            "after": last,
            "settings": settings,
            "versions": {"lodestar": env!("CARGO_PKG_VERSION")},
        });
        if !without.is_empty() {
            opening["defences_off"] = without.iter().map(|one| one.as_str()).collect();
        }
        Ok(Self {
            writer: LogWriter::create(&log, &session, &actor, &opening, &options)?,
            actor,
            last,
        })
    }

    /// Puts what waits into the log. It is in the outbox until it is on disk here.
    pub(super) fn drain(&mut self, sql: &mut dyn Sql) -> Result<Drained, JournalError> {
        sql.begin()?;
        let drained = self.page(sql);
        match &drained {
            Ok(_) => sql.commit()?,
            Err(_) => sql.rollback()?,
        }
        drained
    }

    fn page(&mut self, sql: &mut dyn Sql) -> Result<Drained, JournalError> {
        sql.act_as_server()?;
        let waiting = outbox::waiting(sql, PAGE)?;
        let mut receipt: Option<Receipt> = None;
        let mut events = 0;
        for event in &waiting {
            if event.n <= self.last {
                continue;
            }
            receipt = Some(self.append(event)?);
            self.last = event.n;
            events += 1;
        }
        if let Some(receipt) = receipt {
            receipt.wait(Barrier::Disk).map_err(AppendError::from)?;
        }
        if !waiting.is_empty() {
            outbox::remove_through(sql, self.last)?;
        }
        Ok(Drained {
            events,
            more: waiting.len() == PAGE,
        })
    }

    fn append(&self, event: &outbox::Outgoing) -> Result<Receipt, JournalError> {
        let kind: EventType = event.kind.parse().map_err(|_| {
            let why = format!("the outbox holds an event of type `{}`", event.kind);
            JournalError::Broken(why)
        })?;
        let mut payload: Map<String, Value> =
            serde_json::from_str(&event.payload).unwrap_or_default();
        payload.insert("n".to_owned(), event.n.into());
        payload.insert("at".to_owned(), json!(event.at));
        Ok(self.writer.append(kind, &self.actor, &[], &payload)?)
    }

    /// Ends the session; when this returns, all of it is on disk.
    pub(super) fn close(self, reason: &str) -> Result<(), JournalError> {
        let payload = json!({"reason": reason, "last": self.last});
        self.writer.close(&self.actor, &payload)?;
        Ok(())
    }
}

fn new_session(now: Timestamp) -> Result<SessionId, JournalError> {
    let mut chance = [0; 8];
    getrandom::fill(&mut chance).map_err(io::Error::other)?;
    let tail = u64::from_be_bytes(chance) >> 16;
    let name = format!("gw-{}-{tail:012x}", now.unix_seconds());
    Ok(SessionId::new(name).expect("INVARIANT: letters, digits and hyphens"))
}

/// Closes the last session, if a crash left it open; gives the last number that the log has.
fn close_last(
    log: &ProjectLog,
    actor: &ActorId,
    options: &WriterOptions,
) -> Result<u64, JournalError> {
    if !log.ledger_path().exists() {
        return Ok(0);
    }
    let trust = Trust::only(options.key.public());
    let (ledger, problems) = Ledger::read(log, &trust, &BTreeSet::new())?;
    if let Some(problem) = problems.first() {
        return Err(JournalError::Broken(problem.to_string()));
    }
    // From the newest on: one that was begun and never told to anybody has nothing.
    for (session, facts) in ledger.sessions().into_iter().rev() {
        let writer = match facts.state {
            LedgerState::Closed(_) => None,
            LedgerState::Open => match LogWriter::reopen(log, session, options) {
                Ok(writer) => Some(writer),
                Err(OpenError::NotFound { .. }) => continue,
                Err(problem) => return Err(problem.into()),
            },
        };
        let last = last_number(log, session)?;
        if let Some(writer) = writer {
            let payload = json!({"reason": "the service had ended without a word", "last": last});
            writer.close(actor, &payload)?;
        }
        return Ok(last);
    }
    Ok(0)
}

/// The highest number in a session; what its opening says, if it has none of its own.
fn last_number(log: &ProjectLog, session: &SessionId) -> Result<u64, JournalError> {
    let mut reader = Reader::open(&log.session(session))?;
    let mut last = 0;
    let broken = |problem: String| JournalError::Broken(format!("session `{session}`: {problem}"));
    while let Some(event) = reader
        .next_event()
        .map_err(|problem| broken(problem.to_string()))?
    {
        let payload = event
            .inline()
            .map_err(|problem| broken(problem.to_string()))?;
        let number = |name: &str| payload.as_ref()?.get(name)?.as_u64();
        let found = match event.seq {
            0 => number("after"),
            _ => number("n"),
        };
        last = last.max(found.unwrap_or(0));
    }
    Ok(last)
}
