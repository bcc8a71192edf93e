//! Errors of writing and opening. What verification finds is in [`crate::problem`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use lodestar_core::canonical::CanonicalError;
use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;

use crate::problem::Problem;

/// Why a session could not be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another part of this one, is writing it.
    #[error("session `{session}` is already being written by another process")]
    Busy {
        /// Which.
        session: SessionId,
    },
    /// A new session was asked for, and there is one of that name.
    #[error("session `{session}` exists already; reopen it, or choose another id")]
    Exists {
        /// Which.
        session: SessionId,
    },
    /// There is no such session.
    #[error("there is no session `{session}` in this project")]
    NotFound {
        /// Which.
        session: SessionId,
    },
    /// Somebody has closed it or taken it up since it was looked at.
    #[error("session `{session}` was closed or taken up by somebody else meanwhile")]
    Changed {
        /// Which.
        session: SessionId,
    },
    /// The session's log is not as its writer left it, and more is wrong than a crash explains.
    #[error("session `{session}` cannot be continued: {problem}")]
    Tampered {
        /// Which.
        session: SessionId,
        /// The first thing that is wrong; `log verify` lists all.
        problem: Box<Problem>,
    },
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The first or the recovery event could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A file operation failed.
    #[error("`{path}`: {source}", path = path.display())]
    Io {
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// Why the project's ledger could not be read or extended.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The ledger is not as its writers left it.
    #[error("the project's ledger cannot be continued: {problem}")]
    Tampered {
        /// The first thing that is wrong.
        problem: Box<Problem>,
    },
    /// A record could not be written as JSON.
    #[error("a ledger record cannot be written: {0}")]
    Record(#[from] CanonicalError),
    /// A file operation failed.
    #[error("`{path}`: {source}", path = path.display())]
    Io {
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl LedgerError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The payload has no canonical form.
    #[error("the payload has no canonical form: {0}")]
    Payload(#[from] CanonicalError),
    /// The payload is a string, a list or a number.
    #[error("the payload is not a JSON object")]
    NotAnObject,
    /// The payload uses the key under which the log lists blobs.
    #[error("the payload has a field `blobs`, which is the log's own")]
    ReservedKey,
    /// Even with its large values in blobs it does not fit a line.
    #[error("the payload takes {bytes} bytes without its large values; the limit is {limit}", limit = crate::line::MAX_PAYLOAD_BYTES)]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Only the log itself writes this type.
    #[error("`{kind}` is written by the log itself")]
    OwnType {
        /// Which.
        kind: EventType,
    },
    /// A cause that does not come before the event.
    #[error("the causes must be earlier events in increasing order, at most {limit}", limit = crate::line::MAX_PARENTS)]
    BadParents,
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// A blob could not be stored.
    #[error("a blob cannot be stored: {0}")]
    Blob(#[source] Arc<io::Error>),
    /// Writing failed earlier; nothing is accepted any more.
    #[error("{0}")]
    Stopped(#[from] Stopped),
}

impl AppendError {
    pub(crate) fn blob(error: io::Error) -> Self {
        Self::Blob(Arc::new(error))
    }
}

/// The log could not write or sync, and has stopped for good: after a failed sync nobody knows
/// what is on disk, so carrying on would acknowledge what may be lost.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the log has stopped: cannot {step} `{path}`: {source}; what was acknowledged durable is safe, nothing further is accepted", path = path.display())]
pub struct Stopped {
    pub(crate) step: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) source: Arc<io::Error>,
}

impl Stopped {
    /// The kind of I/O error that stopped it.
    pub fn io_kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}
