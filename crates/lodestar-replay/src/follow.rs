//! Letting a store follow the sessions of a project.

use std::collections::BTreeSet;
use std::io;

use lodestar_core::name::SessionId;
use lodestar_firewall::event::{LogName, LogPosition};
use lodestar_firewall::fold::{FoldError, Rebuild, Waiting};
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::{Keyring, Standing};
use lodestar_firewall::store::{Store, StoreError, Verdict, Writing};
use lodestar_log::verify::{SessionState, VerifyOptions, is_live, verify_project, verify_session};
use lodestar_log::{
    Ledger, LedgerState, Problem, ProblemKind, ProjectLog, ReadError, Reader, SessionDir,
    SessionFacts, Trust,
};
use thiserror::Error;

use crate::defences::Defences;
use crate::results::{Recorded, Results};

/// Rows that are held at a time.
pub(crate) const PAGE: usize = 512;

/// Stands for the end of a session that a rebuild left out: nobody waits for it any more.
pub(crate) const LOST: u64 = i64::MAX as u64;

/// A session that does not count, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// Redacted events that adopted or changed beliefs, or that what was adopted rests on, by session
    /// and number: what they brought is not there, and what they superseded or set apart may stand again.
    pub redacted: Vec<(String, u64)>,
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
    /// What a session did to beliefs is not known any more: it may have set some apart.
    #[error(
        "session `{session}` stands in the ledger, but cannot be followed: {reason}; `lodestar store rebuild` makes the store without it, and says so"
    )]
    Lost {
        /// Which.
        session: SessionId,
        /// Why.
        reason: String,
    },
    /// A session is being written, and its store with it.
    #[error(
        "session `{session}` is being written; a store is made again when no session of the project is"
    )]
    Live {
        /// Which.
        session: SessionId,
    },
    /// Sessions were opened or closed while the logs were verified.
    #[error("the project's ledger changed meanwhile; try again")]
    Changed,
    /// A session changed while it was read.
    #[error("session `{session}` cannot be followed: {problem}")]
    Session {
        /// Which.
        session: SessionId,
        /// Why.
        problem: String,
    },
    /// Whoever asked did not want to wait longer.
    #[error("the log takes too long to follow")]
    OutOfPatience,
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

    pub(crate) fn dir(&self) -> &SessionDir {
        &self.dir
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
    // A session whose opening cannot be read, or was redacted, does not say that it was none.
    Ok(Defences::of(dir)? != Defences::Whole)
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
    let ledger = ledger(log, trust)?;
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
        if next == LOST {
            followed.refused.push(Refused {
                session: session.to_string(),
                reason: "it is damaged or gone, and the store was made without it".to_owned(),
            });
            continue;
        }
        if counted.closed.is_some_and(|size| next >= size) {
            continue;
        }
        if !counted.dir.dir().is_dir() {
            return Err(ReplayError::Lost {
                session: session.clone(),
                reason: "its directory is gone".to_owned(),
            });
        }
        let report = verify_session(&counted.dir, Some(facts), trust, &|_| ())?;
        ahead |= next > report.events && report.state != SessionState::Live;
        match report.problems.first() {
            // Its start was interrupted before anybody was told of it: there is nothing to follow.
            None if report.events == 0 => {}
            None if is_probe_world(&counted.dir)? => followed.refused.push(Refused {
                session: session.to_string(),
                reason: PROBE_WORLD.to_owned(),
            }),
            None => behind.push(counted),
            Some(problem) => {
                return Err(ReplayError::Lost {
                    session: session.clone(),
                    reason: problem.to_string(),
                });
            }
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
    let known = ledger(log, trust)?;
    let signer = keys.own_id().as_str();
    let neighbours = changed_by_neighbours(store, keys, log)?;
    let mut followed = Followed {
        refused,
        ..Followed::default()
    };
    transact(store, |tx| {
        // With the store's lock held, nobody changes beliefs; a session may still have been opened.
        let now = ledger(log, trust)?;
        if now.size() != known.size() {
            return Err(ReplayError::Changed);
        }
        for (session, _) in now.sessions() {
            let dir = log.session(session);
            if dir.dir().is_dir() && is_live(&dir)? {
                let session = session.clone();
                return Err(ReplayError::Live { session });
            }
        }
        tx.forget(signer, log.project().as_str())?;
        lead(tx, keys, &counted, &mut followed, progress)?;
        for refused in &followed.refused {
            if let Ok(session) = refused.session.parse::<SessionId>()
                && now.session(&session).is_some()
            {
                let project = log.project().clone();
                tx.advance(signer, &LogName { project, session }, LOST)?;
            }
        }
        keep_newer(tx, &neighbours)
    })?;
    Ok(followed)
}

/// Folds one session into a store of its own, also one that was opened with defences taken out: to see what
/// came of it there. It is not verified.
pub fn follow_alone(
    store: &mut dyn Store,
    keys: &Keyring,
    dir: &SessionDir,
) -> Result<Followed, ReplayError> {
    let sessions = [Counted::new(dir.clone(), None)];
    let mut followed = Followed::default();
    transact(store, |tx| {
        lead(tx, keys, &sessions, &mut followed, &mut |_| ())
    })?;
    Ok(followed)
}

/// Rows of ours that another trusted installation changed last. Its logs are not here, so its word
/// is all that there is.
fn changed_by_neighbours(
    store: &mut dyn Store,
    keys: &Keyring,
    log: &ProjectLog,
) -> Result<Vec<StoredRow>, ReplayError> {
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.scan(after.as_deref(), PAGE)?;
        let Some(last) = page.last() else {
            return Ok(found);
        };
        after = Some(last.id.clone());
        found.extend(page.into_iter().filter(|row| {
            row.project == log.project().as_str()
                && row.signer != keys.own_id().as_str()
                && keys.standing(row) == Standing::Genuine
        }));
    }
}

fn keep_newer(tx: &mut dyn Writing, rows: &[StoredRow]) -> Result<(), ReplayError> {
    for row in rows {
        let there = row.belief_id().map_err(FoldError::from)?;
        if let Some(made) = tx.row(&there)?
            && made.revision < row.revision
        {
            tx.remove(&[&row.id])?;
            tx.insert(std::slice::from_ref(row))?;
        }
    }
    Ok(())
}

/// The ledger, as it stands now.
pub(crate) fn ledger(log: &ProjectLog, trust: &Trust) -> Result<Ledger, ReplayError> {
    let (ledger, problems) = Ledger::read(log, trust, &BTreeSet::new())?;
    match problems.into_iter().next() {
        Some(problem) => Err(ReplayError::Ledger(problem)),
        None => Ok(ledger),
    }
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
    let ledger = ledger(log, trust)?;
    let mut counted = Vec::new();
    for session in report.sessions {
        let dir = log.session(&session.session);
        match session.problems.first() {
            None if session.events == 0 => {}
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
    let mut results = Results::new(&session.dir);
    let redacted = |seq: u64| (log.session.to_string(), seq);
    for event in reader {
        let event = event.map_err(|error: ReadError| session.gone(error))?;
        if event.seq < next {
            results.pass(&event);
            continue;
        }
        let at = LogPosition {
            log: log.clone(),
            seq: event.seq,
            leaf: event.leaf_hash,
        };
        let recorded = results.follow(&event);
        match recorded.map_err(|problem| session.gone(format!("#{}: {problem}", event.seq)))? {
            Recorded::Other => continue,
            Recorded::Redacted => {
                followed.redacted.push(redacted(event.seq));
                continue;
            }
            Recorded::Event(recorded) => fold.apply(tx, keys, &recorded, &at)?,
            Recorded::Results(adoption) => {
                let gone = adoption.redacted.iter();
                followed.redacted.extend(gone.map(|seq| redacted(*seq)));
                fold.apply_results(tx, keys, &adoption.plain(), &at)?;
            }
        }
        followed.events += 1;
    }
    if let Some(size) = session.closed
        && tx.next(signer, &log)? < size
    {
        tx.advance(signer, &log, size)?;
    }
    Ok(())
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
