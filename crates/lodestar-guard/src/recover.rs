//! Sessions that are over: one that ended in a crash is ended properly, what it had called and nobody
//! saw the end of is recorded as unknown, and never run again; what it had read and not taken in is. One whose requests can still be answered
//! is taken up again, if everything its verdicts depend on is as it was; if not, its requests are closed.

mod past;
mod unbelieved;

pub(crate) use past::Past;

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};

use lodestar_core::event::EventType;
use lodestar_core::id::RequestId;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_firewall::store::Store;
use lodestar_kernel::opening::Opening;
use lodestar_log::verify::is_live;
use lodestar_log::{
    Ledger, LedgerState, LogWriter, OpenError, ProjectLog, SessionDir, SessionFacts, WriterOptions,
};
use lodestar_policy::{Closed, Closing};
use serde::Serialize;
use serde_json::json;

use crate::error::GuardError;
use crate::keys::Keys;
use past::unreadable;
use unbelieved::take_in_rest;

/// The actor of what is written about a session that is over.
const ACTOR: &str = "lodestar";

/// Most of a log's end that is looked at for how it was closed.
const MAX_TAIL: u64 = 64 << 10;

/// A session that goes on.
pub(crate) struct TakenUp {
    pub(crate) writer: LogWriter,
    pub(crate) past: Past,
}

/// A session whose requests nobody can answer any more, because it cannot be taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Abandoned {
    /// Which.
    pub session: SessionId,
    /// How many requests were closed.
    pub requests: usize,
}

/// A request that ended with its session, and of which people may still believe that it waits.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) session: SessionId,
    pub(crate) request: RequestId,
    pub(crate) closing: Closing,
}

/// What became of the sessions that are over.
#[derive(Default)]
pub(crate) struct Recovered {
    pub(crate) again: Option<TakenUp>,
    pub(crate) abandoned: Vec<Abandoned>,
    pub(crate) ended: Vec<Ended>,
}

impl Recovered {
    fn note(&mut self, session: &SessionId, ended: Vec<Ended>) {
        let given_up = |ended: &&Ended| ended.closing == Closing::Abandoned;
        let requests = ended.iter().filter(given_up).count();
        if requests > 0 {
            self.abandoned.push(Abandoned {
                session: session.clone(),
                requests,
            });
        }
        self.ended.extend(ended);
    }
}

/// Which session is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The latest that still waits.
    Any,
    /// The one of this name.
    This(SessionId),
    /// The latest of a conversation; the names of its sessions begin so.
    Conversation(String),
    /// None: one of its own, whose name begins so. Others are not its business.
    Apart(&'static str),
}

/// How the names of sessions begin that belong to a conversation. Whatever else starts in the project leaves
/// one alone that still waits for people: its conversation comes back to it.
pub(crate) const OF_CONVERSATION: &str = "hook-";

impl Wanted {
    fn fits(&self, session: &SessionId) -> bool {
        match self {
            Self::Any => !session.as_str().starts_with(OF_CONVERSATION),
            Self::This(wanted) => wanted == session,
            Self::Conversation(prefix) => begins(session, prefix),
            Self::Apart(kin) => begins(session, kin),
        }
    }

    /// Whether a session is not even looked at.
    fn passes_by(&self, session: &SessionId) -> bool {
        matches!(self, Self::Apart(_)) && !self.fits(session)
    }

    /// Whether a session is somebody else's to come back to.
    fn leaves(&self, session: &SessionId) -> bool {
        let of_conversation = session.as_str().starts_with(OF_CONVERSATION);
        !self.fits(session) && (of_conversation || matches!(self, Self::Conversation(_)))
    }
}

fn begins(session: &SessionId, prefix: &str) -> bool {
    let rest = session.as_str().strip_prefix(prefix);
    rest.is_some_and(|rest| rest.starts_with('-'))
}

/// Ends every session of the project that is neither closed nor running, and takes up the latest that
/// still waits for people. The first that cannot be read is named: nothing is built on a log that does
/// not hold.
pub(crate) fn interrupted(
    log: &ProjectLog,
    (keys, options): (&Keys, &WriterOptions),
    opening: &Opening,
    wanted: &Wanted,
    now: Timestamp,
    open_store: &dyn Fn() -> Result<Box<dyn Store>, GuardError>,
) -> Result<Recovered, GuardError> {
    let mut recovered = Recovered::default();
    if !log.ledger_path().exists() {
        return Ok(recovered);
    }
    let read = Ledger::read(log, &keys.trust(), &BTreeSet::new());
    let (ledger, _) = read.map_err(unreadable)?;
    let mut sessions = ledger.sessions();
    sessions.sort_by_key(|(_, facts)| std::cmp::Reverse(facts.opened_seq));
    for (session, facts) in sessions {
        if wanted.passes_by(session) {
            continue;
        }
        let dir = log.session(session);
        if !dir.dir().is_dir() || is_live(&dir).unwrap_or(true) || !is_of_interest(facts, &dir) {
            continue;
        }
        let named = |problem: GuardError| {
            GuardError::Unreadable(format!(
                "session `{session}` cannot be ended properly: {problem}; `lodestar log verify` \
                 says more"
            ))
        };
        if wanted.leaves(session) && Past::of(&dir).map_err(named)?.waits(now) {
            continue;
        }
        let writer = match LogWriter::reopen_as_seen(log, session, facts, options) {
            Ok(writer) => writer,
            // Somebody else has dealt with it, or it was stopped before anybody was told of it.
            Err(
                OpenError::Busy { .. } | OpenError::Changed { .. } | OpenError::NotFound { .. },
            ) => continue,
            Err(problem) => return Err(named(problem.into())),
        };
        let past = Past::of(&dir).map_err(named)?;
        if let Some(before) = &past.opening {
            take_in_rest(&writer, keys, before, open_store).map_err(named)?;
        }
        end_calls(&writer, &past).map_err(named)?;
        let over = past.lately_over().into_iter();
        recovered.ended.extend(over.map(|(request, closing)| Ended {
            session: session.clone(),
            request,
            closing,
        }));
        let fits = wanted.fits(session) && is_same(&past, opening);
        if recovered.again.is_none() && past.waits(now) && fits {
            recovered.again = Some(TakenUp { writer, past });
        } else {
            let ended = end(&writer, &past, now).map_err(named)?;
            recovered.note(session, ended);
        }
    }
    Ok(recovered)
}

/// One that ended in a crash, or that was closed while requests were open.
fn is_of_interest(facts: &SessionFacts, dir: &SessionDir) -> bool {
    match facts.state {
        LedgerState::Open => true,
        LedgerState::Closed(_) => left_requests(dir).unwrap_or(false),
    }
}

/// Whether the last line of a log says that requests are open. Only a hint: the log is read before
/// anything follows from it.
fn left_requests(dir: &SessionDir) -> std::io::Result<bool> {
    let mut file = std::fs::File::open(dir.events_path())?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
    let mut tail = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut tail)?;
    let last = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    let last: serde_json::Value = serde_json::from_slice(last.unwrap_or_default())?;
    // What was written after the closing, as a redaction is, says nothing of requests.
    let kind = last.pointer("/head/type").and_then(|kind| kind.as_str());
    let is_closing = kind.is_some_and(|kind| kind.starts_with(EventType::SESSION_CLOSED.name()));
    Ok(match last.pointer("/payload/open_requests") {
        None => !is_closing,
        Some(serde_json::Value::Array(open)) => !open.is_empty(),
        // A long list does not stand in the line itself.
        Some(_) => true,
    })
}

/// Whether everything that a verdict depends on is as it was.
fn is_same(past: &Past, opening: &Opening) -> bool {
    past.opening.as_ref().is_some_and(|before| {
        let mut before = before.clone();
        before.versions = opening.versions.clone();
        // Who measured again and found the same has changed nothing.
        if before.flagged().eq(opening.flagged()) {
            before.calibration = opening.calibration.clone();
        }
        before == *opening
    })
}

fn end_calls(writer: &LogWriter, past: &Past) -> Result<(), GuardError> {
    for (seq, unknown) in past.unfinished() {
        writer.append(EventType::ACTION_UNKNOWN, &actor(), &[seq], &unknown)?;
    }
    Ok(())
}

/// Closes a session for good, and what is open in it.
fn end(writer: &LogWriter, past: &Past, now: Timestamp) -> Result<Vec<Ended>, GuardError> {
    let mut ended = Vec::new();
    for hearing in past.requests.live() {
        let request = hearing.request();
        let closing = match now >= request.expires_at {
            true => Closing::Expired,
            false => Closing::Abandoned,
        };
        let recorded = past.recorded.get(&request.id);
        let parents: Vec<u64> = recorded.copied().into_iter().collect();
        let closed = Closed {
            request: request.id,
            closing,
        };
        writer.append(EventType::APPROVAL_EXPIRED, &actor(), &parents, &closed)?;
        ended.push(Ended {
            session: request.session.clone(),
            request: request.id,
            closing,
        });
    }
    writer.close(&actor(), &json!({"reason": "interrupted"}))?;
    Ok(ended)
}

fn actor() -> ActorId {
    ActorId::new(ACTOR).expect("INVARIANT: a short constant")
}
