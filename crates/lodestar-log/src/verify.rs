//! `log verify`: is everything as its writer left it?
//!
//! A session is checked in one streaming pass: structure, numbering, chain, payloads, blobs, root,
//! checkpoint, redactions, and what the ledger says of it. A project is its ledger, all of its
//! sessions, and, where one is given, a head that a witness signed.

mod blobs;
mod project;
mod session;

use std::collections::BTreeSet;

use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::name::{ProjectId, SessionId};
use serde::Serialize;

pub use self::project::{VerifyOptions, verify_project};
pub use self::session::{is_live, verify_session, verify_shipped};
use crate::problem::Problem;

/// What came of checking one session.
#[derive(Debug, Clone, Serialize)]
pub struct SessionReport {
    /// Which.
    pub session: SessionId,
    /// Whether it is being written, open or closed.
    pub state: SessionState,
    /// How many events it has.
    pub events: u64,
    /// The root over them.
    pub root: Digest,
    /// How many of them a signed checkpoint covers.
    pub proven: u64,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
    /// What is worth knowing and not wrong.
    pub remarks: Vec<Remark>,
}

impl SessionReport {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// A process is writing it.
    Live,
    /// Nobody writes it, and it was not closed.
    Open,
    /// Closed, with a closing checkpoint in the ledger.
    Closed,
}

impl std::fmt::Display for SessionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Live => "live",
            Self::Open => "open",
            Self::Closed => "closed",
        })
    }
}

/// What is worth knowing and not wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "remark")]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum Remark {
    #[error("the last {events} events are not yet under a checkpoint: unproven")]
    UnprovenTail { events: u64 },
    #[error(
        "the last {bytes} bytes are a torn line; they are set aside when the session is reopened"
    )]
    TornTail { bytes: u64 },
    #[error(
        "the session's last event closes it, but the ledger has no closing record: the close was interrupted"
    )]
    CloseInterrupted,
    #[error("{events} payloads are redacted by #{redaction}, signed by `{operator}`: {reason}")]
    Redacted {
        redaction: u64,
        events: u64,
        operator: String,
        reason: String,
    },
    #[error("#{seq}: after a crash {bytes} bytes were cut off and kept in `{kept}`")]
    Recovered { seq: u64, bytes: u64, kept: String },
    #[error(
        "events #{from} to #{to} were signed only when the session was taken up again (ledger record #{record}): until then anybody could have changed them"
    )]
    SignedLate { from: u64, to: u64, record: u64 },
    #[error("the checkpoint carries a signature of `{name}`, whose key is not known here")]
    UnknownSignature { name: String },
    #[error("session `{name}` was to begin, but nothing was written: its start was interrupted")]
    NotStarted { name: String },
    #[error("an append to the ledger was interrupted; the next one finishes it")]
    LedgerAppendInterrupted,
    #[error("ledger record #{seq}: head of {size} records co-signed by {names}")]
    Witnessed { seq: u64, size: u64, names: String },
    #[error("ledger record #{seq}: co-signature by `{name}`, whose key is not known here")]
    UnknownWitness { seq: u64, name: String },
}

/// What came of checking a project.
#[derive(Debug, Clone, Serialize)]
pub struct ProjectReport {
    /// Which.
    pub project: ProjectId,
    /// How many records the ledger has.
    pub ledger_records: u64,
    /// The root over them.
    pub ledger_root: Digest,
    /// What is wrong with the ledger, or between it and the sessions on disk.
    pub problems: Vec<Problem>,
    /// What is worth knowing.
    pub remarks: Vec<Remark>,
    /// The sessions that were checked, in the order they were opened.
    pub sessions: Vec<SessionReport>,
}

impl ProjectReport {
    /// Whether nothing is wrong anywhere.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty() && self.sessions.iter().all(SessionReport::is_intact)
    }

    /// Without what these find.
    fn without(mut self, defences: &BTreeSet<Defence>) -> Self {
        let all = defences.contains(&Defence::LogVerification);
        let is_seen = |problem: &Problem| !all && !defences.contains(&problem.kind.found_by());
        self.problems.retain(is_seen);
        for session in &mut self.sessions {
            session.problems.retain(is_seen);
        }
        self
    }

    /// All problems, the ledger's first.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems
            .iter()
            .chain(self.sessions.iter().flat_map(|s| &s.problems))
    }
}

/// How far a check is, for people who wait.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The session that is being checked.
    pub session: &'a SessionId,
    /// Bytes of it that were read.
    pub done: u64,
    /// Bytes it has.
    pub total: u64,
}
