//! Letting a store follow the sessions of a project.

use std::collections::BTreeSet;
use std::io;

use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_firewall::event::{FirewallEvent, LogName, LogPosition};
use lodestar_firewall::fold::{FoldError, Rebuild, Waiting};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{Store, StoreError, Verdict, Writing};
use lodestar_log::verify::{SessionState, VerifyOptions, verify_project, verify_session};
use lodestar_log::{
    Event, Ledger, LedgerState, Problem, ProblemKind, ProjectLog, ReadError, Reader, SessionDir,
    SessionFacts, Trust,
};
use serde_json::Value;
use thiserror::Error;

/// A session that does not count, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Refused {
    /// Which.
    pub session: String,
    /// Why.
    pub reason: String,
}

/// What a store was led through.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Followed {
    /// Events that were applied.
    pub events: u64,
    /// Sessions that they came from.
    pub sessions: u64,
    /// Sessions that do not count.
    pub refused: Vec<Refused>,
    /// Changes that never had their turn: the belief had changed otherwise before.
    pub left: Vec<Waiting>,
}

/// How far the work is.
#[derive(Debug, Clone, Copy)]
pub struct StoreProgress<'a> {
    /// What is being done, in a word.
    pub step: &'static str,
    /// With which session.
    pub session: Option<&'a SessionId>,
    /// How much is done.
    pub done: u64,
    /// Of how much.
    pub total: u64,
}

/// Why a store could not follow.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A file cannot be read.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The ledger is not as its writer left it, so it cannot say which sessions count.
    #[error("the project's ledger does not verify, so no session counts: {0}")]
    Ledger(Problem),
    /// A session changed while it was read.
    #[error("session `{session}` cannot be read any more: {problem}")]
    Session {
        /// Which.
        session: SessionId,
        /// Why.
        problem: String,
    },
    /// An event cannot be applied.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session whose events count.
pub(crate) struct Counted {
    dir: SessionDir,
    /// How many events its closing record vouches for; none while it is open.
    closed: Option<u64>,
}

impl Counted {
    fn new(dir: SessionDir, facts: Option<&SessionFacts>) -> Self {
        let closed = match facts.map(|facts| &facts.state) {
            Some(LedgerState::Closed(checkpoint)) => Some(checkpoint.size),
            _ => None,
        };
        Self { dir, closed }
    }

    fn name(&self) -> LogName {
        LogName {
            project: self.dir.project().clone(),
            session: self.dir.session().clone(),
        }
    }

    fn gone(&self, problem: impl ToString) -> ReplayError {
        ReplayError::Session {
            session: self.dir.session().clone(),
            problem: problem.to_string(),
        }
    }
}

/// Whether the session was opened with a defence taken out: a probe's world, which says nothing about
/// this one.
fn is_probe_world(dir: &SessionDir) -> Result<bool, ReplayError> {
    let first = Reader::open(dir)?.next_event();
    let payload = first.ok().flatten().and_then(|event| event.inline().ok());
    let off = payload
        .flatten()
        .and_then(|payload| payload.get("defences_off").cloned());
    Ok(off.is_some_and(|off| !matches!(off, Value::Null | Value::Bool(false))))
}

const PROBE_WORLD: &str = "it was opened with defences taken out (`defences_off`)";

/// Lets a store follow what was recorded and not applied yet; one that knows more than its log is
/// made again. Sessions that were closed and followed
/// to their end are not looked at again.
pub fn catch_up(
    store: &mut dyn Store,
    keys: &Keyring,
    log: &ProjectLog,
    trust: &Trust,
) -> Result<Followed, ReplayError> {
    if !log.ledger_path().exists() {
        return Ok(Followed::default());
    }
    let (ledger, problems) = Ledger::read(log, trust, &BTreeSet::new())?;
    if let Some(problem) = problems.into_iter().next() {
        return Err(ReplayError::Ledger(problem));
    }
    let mut followed = Followed::default();
    let mut behind = Vec::new();
    let mut ahead = false;
    let own = keys.own_id().as_str();
    let applied: std::collections::BTreeMap<_, _> = store
        .logs()?
        .into_iter()
        .filter(|applied| applied.signer == own)
        .map(|applied| (applied.log.session.clone(), applied))
        .collect();
    for (session, facts) in ledger.sessions() {
        let dir = log.session(session);
        let counted = Counted::new(dir, Some(facts));
        let next = applied
            .get(session)
            .filter(|applied| applied.log.project == *log.project())
            .map_or(0, |applied| applied.next);
        if counted.closed.is_some_and(|size| next >= size) || !counted.dir.dir().is_dir() {
            continue;
        }
        let report = verify_session(&counted.dir, Some(facts), trust, &|_| ())?;
        ahead |= next > report.events && report.state != SessionState::Live;
        match report.problems.first() {
            None if is_probe_world(&counted.dir)? => followed.refused.push(Refused {
                session: session.to_string(),
                reason: PROBE_WORLD.to_owned(),
            }),
            None => behind.push(counted),
            Some(problem) => followed.refused.push(Refused {
                session: session.to_string(),
                reason: problem.to_string(),
            }),
        }
    }
    // A process died after the store kept an event and before its log was written: the log counts.
    if ahead {
        return rebuild(store, keys, log, trust, &mut |_| ());
    }
    if behind.is_empty() {
        return Ok(followed);
    }
    transact(store, |tx| {
        lead(tx, keys, &behind, &mut followed, &mut |_| ())
    })?;
    Ok(followed)
}

/// Makes a store again from the logs of a project: first the ledger and every session are verified,
/// then what this installation's logs gave is taken out and put in anew, all in one transaction.
pub fn rebuild(
    store: &mut dyn Store,
    keys: &Keyring,
    log: &ProjectLog,
    trust: &Trust,
    progress: &mut dyn FnMut(StoreProgress<'_>),
) -> Result<Followed, ReplayError> {
    let (counted, refused) = verified(log, trust, progress)?;
    let mut followed = Followed {
        refused,
        ..Followed::default()
    };
    transact(store, |tx| {
        tx.forget(keys.own_id().as_str(), log.project().as_str())?;
        lead(tx, keys, &counted, &mut followed, progress)
    })?;
    Ok(followed)
}

/// The sessions of a project that count, and those that do not.
pub(crate) fn verified(
    log: &ProjectLog,
    trust: &Trust,
    progress: &mut dyn FnMut(StoreProgress<'_>),
) -> Result<(Vec<Counted>, Vec<Refused>), ReplayError> {
    let progress = std::cell::RefCell::new(progress);
    let report = verify_project(log, trust, &VerifyOptions::default(), &|verifying| {
        progress.borrow_mut()(StoreProgress {
            step: "verifying",
            session: Some(verifying.session),
            done: verifying.done,
            total: verifying.total,
        });
    })?;
    let mut refused = Vec::new();
    for problem in report.problems {
        match &problem.kind {
            // Neither says anything of the sessions that the ledger knows and that are there.
            ProblemKind::UnknownSession { session }
            | ProblemKind::SessionMissing { session, .. } => {
                refused.push(Refused {
                    session: session.clone(),
                    reason: problem.kind.to_string(),
                });
            }
            _ => return Err(ReplayError::Ledger(problem)),
        }
    }
    let (ledger, problems) = Ledger::read(log, trust, &BTreeSet::new())?;
    if let Some(problem) = problems.into_iter().next() {
        return Err(ReplayError::Ledger(problem));
    }
    let mut counted = Vec::new();
    for session in report.sessions {
        let dir = log.session(&session.session);
        match session.problems.first() {
            None if is_probe_world(&dir)? => refused.push(Refused {
                session: session.session.to_string(),
                reason: PROBE_WORLD.to_owned(),
            }),
            None => counted.push(Counted::new(dir, ledger.session(&session.session))),
            Some(problem) => refused.push(Refused {
                session: session.session.to_string(),
                reason: problem.to_string(),
            }),
        }
    }
    Ok((counted, refused))
}

/// Applies the events of sessions from where the store stands in each.
pub(crate) fn lead(
    tx: &mut dyn Writing,
    keys: &Keyring,
    sessions: &[Counted],
    followed: &mut Followed,
    progress: &mut dyn FnMut(StoreProgress<'_>),
) -> Result<(), ReplayError> {
    let mut fold = Rebuild::default();
    let total = sessions.len() as u64;
    for (done, session) in (0..).zip(sessions) {
        progress(StoreProgress {
            step: "applying",
            session: Some(session.dir.session()),
            done,
            total,
        });
        let before = followed.events;
        lead_one(tx, keys, session, &mut fold, followed)?;
        followed.sessions += u64::from(followed.events > before);
    }
    followed.left = fold.finish(tx, keys)?;
    Ok(())
}

fn lead_one(
    tx: &mut dyn Writing,
    keys: &Keyring,
    session: &Counted,
    fold: &mut Rebuild,
    followed: &mut Followed,
) -> Result<(), ReplayError> {
    let log = session.name();
    let signer = keys.own_id().as_str();
    let next = tx.next(signer, &log)?;
    let reader = Reader::open(&session.dir)?;
    for event in reader {
        let event = event.map_err(|error: ReadError| session.gone(error))?;
        if event.seq < next {
            continue;
        }
        let Some(recorded) = firewall_event(&event, session)? else {
            continue;
        };
        let at = LogPosition {
            log: log.clone(),
            seq: event.seq,
            leaf: event.leaf_hash,
        };
        fold.apply(tx, keys, &recorded, &at)?;
        followed.events += 1;
    }
    if let Some(size) = session.closed
        && tx.next(signer, &log)? < size
    {
        tx.advance(signer, &log, size)?;
    }
    Ok(())
}

/// The event, if the firewall wrote it and it was not redacted.
fn firewall_event(event: &Event, session: &Counted) -> Result<Option<FirewallEvent>, ReplayError> {
    let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
        return Ok(None);
    };
    let changes_beliefs = [
        EventType::BELIEF_ADOPTED,
        EventType::BELIEF_MOVED,
        EventType::BELIEF_PROMOTED,
    ];
    if !changes_beliefs.contains(&kind) {
        return Ok(None);
    }
    let gone = |problem: String| session.gone(format!("#{}: {problem}", event.seq));
    let payload = event.whole(&session.dir).map_err(|e| gone(e.to_string()))?;
    let Some(payload) = payload else {
        return Ok(None);
    };
    match FirewallEvent::read(kind, payload) {
        Some(Ok(recorded)) => Ok(Some(recorded)),
        Some(Err(error)) => Err(gone(error.to_string())),
        None => Ok(None),
    }
}

/// Runs work in one transaction.
pub(crate) fn transact(
    store: &mut dyn Store,
    work: impl FnOnce(&mut dyn Writing) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    let mut work = Some(work);
    let mut outcome = Ok(());
    store.write(&mut |tx| {
        let work = work.take().expect("INVARIANT: a store runs the work once");
        outcome = work(tx);
        Ok(match outcome {
            Ok(()) => Verdict::Commit,
            Err(_) => Verdict::Rollback,
        })
    })?;
    outcome
}
