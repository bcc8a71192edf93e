//! Whether a session may be exported: only what verifies and follows from its own log.

use lodestar_core::digest::Digest;
use lodestar_core::name::{Excerpt, SessionId};
use lodestar_log::SessionDir;
use lodestar_log::verify::{ProjectReport, SessionState};
use lodestar_replay::SessionReplay;
use thiserror::Error;

/// A session that was verified and derived again; there is no other way to one.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub(super) dir: SessionDir,
    pub(super) state: SessionState,
    pub(super) events: u64,
    pub(super) proven: u64,
    pub(super) root: Digest,
}

impl Admitted {
    /// How many events the session has.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many of them a signed checkpoint covers; only these are exported.
    pub fn proven(&self) -> u64 {
        self.proven
    }

    /// Whether it is being written, open or closed.
    pub fn state(&self) -> SessionState {
        self.state
    }
}

/// Why a session is not exported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAdmitted {
    /// Something is not as it was written.
    #[error("the log is not intact, so nothing of it is exported: {problem}")]
    NotIntact {
        /// The first problem.
        problem: String,
    },
    /// Something does not follow from the log.
    #[error(
        "the session does not follow from its own log, so nothing of it is exported: {difference}"
    )]
    Differs {
        /// The first difference.
        difference: String,
    },
    /// A harness took a defence out.
    #[error(
        "the session was opened with defences taken out ({names}): it shows what an attack does, and is no record of work"
    )]
    DefencesOff {
        /// Which.
        names: String,
    },
    /// No event is under a checkpoint yet.
    #[error("nothing of the session is proven yet: no signed checkpoint covers any of its events")]
    NothingProven,
    /// It was not checked.
    #[error("session `{0}` was not checked")]
    NotChecked(SessionId),
}

/// Admits a session that verified, with the ledger around it, and follows from its log.
pub fn admit(
    dir: &SessionDir,
    report: &ProjectReport,
    replay: &SessionReplay,
) -> Result<Admitted, NotAdmitted> {
    if let Some(problem) = report.all_problems().next() {
        return Err(NotAdmitted::NotIntact {
            problem: problem.to_string(),
        });
    }
    if !replay.defences_off.is_empty() {
        let names = replay.defences_off.iter();
        let names: Vec<String> = names.map(|one| Excerpt::of(one).to_string()).collect();
        return Err(NotAdmitted::DefencesOff {
            names: names.join(", "),
        });
    }
    if let Some(difference) = replay.differences.first() {
        return Err(NotAdmitted::Differs {
            difference: difference.to_string(),
        });
    }
    let mut sessions = report.sessions.iter();
    let session = sessions.find(|session| {
        report.project == *dir.project()
            && session.session == *dir.session()
            && replay.session == *dir.session()
    });
    let session = session.ok_or_else(|| NotAdmitted::NotChecked(dir.session().clone()))?;
    match session.proven {
        0 => Err(NotAdmitted::NothingProven),
        proven => Ok(Admitted {
            dir: dir.clone(),
            state: session.state,
            events: session.events,
            proven,
            root: session.root,
        }),
    }
}
