//! Sessions that ended in a crash are ended properly: what they had called and nobody saw the end of
//! is recorded as unknown, and never run again.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::event::EventType;
use lodestar_core::id::ActionId;
use lodestar_core::name::{ActorId, SessionId};
use lodestar_kernel::record::{Cleared, Finished, Unknown};
use lodestar_log::verify::is_live;
use lodestar_log::{
    Ledger, LedgerState, LogWriter, OpenError, ProjectLog, Reader, SessionFacts, WriterOptions,
};
use serde_json::json;

use crate::error::GuardError;
use crate::keys::Keys;

/// The actor of what is written about a session that is over.
const ACTOR: &str = "lodestar";

/// Ends every session of the project that is neither closed nor running. The first that cannot be taken
/// up again is named: nothing is built on a log that does not hold.
pub(crate) fn interrupted(log: &ProjectLog, keys: &Keys) -> Result<(), GuardError> {
    if !log.ledger_path().exists() {
        return Ok(());
    }
    let read = Ledger::read(log, &keys.trust(), &BTreeSet::new());
    let (ledger, _) = read.map_err(|problem| GuardError::Unreadable(problem.to_string()))?;
    for (session, facts) in ledger.sessions() {
        let dir = log.session(session);
        let is_over = facts.state != LedgerState::Open || !dir.dir().is_dir();
        if is_over || is_live(&dir).unwrap_or(true) {
            continue;
        }
        // It may have been closed between the two looks.
        let read = Ledger::read(log, &keys.trust(), &BTreeSet::new());
        let (now, _) = read.map_err(|problem| GuardError::Unreadable(problem.to_string()))?;
        let is_open = |facts: &SessionFacts| facts.state == LedgerState::Open;
        if !now.session(session).is_some_and(is_open) {
            continue;
        }
        match end(log, session, keys) {
            // Somebody else is ending it, or it was stopped before anybody was told of it.
            Ok(()) | Err(GuardError::Open(OpenError::Busy { .. } | OpenError::NotFound { .. })) => {
            }
            Err(problem) => {
                return Err(GuardError::Unreadable(format!(
                    "session `{session}` ended in a crash and cannot be ended properly: \
                     {problem}; `lodestar log verify` says more"
                )));
            }
        }
    }
    Ok(())
}

fn end(log: &ProjectLog, session: &SessionId, keys: &Keys) -> Result<(), GuardError> {
    let options = WriterOptions::new(keys.log.clone());
    let writer = LogWriter::reopen(log, session, &options)?;
    let actor = ActorId::new(ACTOR).expect("INVARIANT: a short constant");
    for (seq, unknown) in unfinished(&writer)? {
        writer.append(EventType::ACTION_UNKNOWN, &actor, &[seq], &unknown)?;
    }
    writer.close(&actor, &json!({"reason": "interrupted"}))?;
    Ok(())
}

/// What was cleared and has no end, in the order of clearing.
fn unfinished(writer: &LogWriter) -> Result<Vec<(u64, Unknown)>, GuardError> {
    let dir = writer.dir();
    let unreadable = |problem: &dyn std::fmt::Display| GuardError::Unreadable(problem.to_string());
    let reader = Reader::open(dir).map_err(|problem| unreadable(&problem))?;
    let mut open: BTreeMap<ActionId, (u64, Unknown)> = BTreeMap::new();
    for event in reader {
        let event = event.map_err(|problem| unreadable(&problem))?;
        let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
            continue;
        };
        let is_clearing = kind == EventType::ACTION_CLEARED;
        let is_end = [
            EventType::ACTION_COMPLETED,
            EventType::ACTION_FAILED,
            EventType::ACTION_UNKNOWN,
        ]
        .contains(&kind);
        if !is_clearing && !is_end {
            continue;
        }
        let whole = event.whole(dir).map_err(|problem| unreadable(&problem))?;
        // What was redacted cannot be named any more.
        let Some(payload) = whole else { continue };
        if is_clearing {
            if let Ok(cleared) = serde_json::from_value::<Cleared>(payload) {
                let unknown = Unknown {
                    action: cleared.action,
                    clearance: cleared.clearance,
                    because: "the session ended before the call's result was recorded".to_owned(),
                };
                open.insert(cleared.action, (event.seq, unknown));
            }
        } else if let Some(action) = action_of(payload) {
            open.remove(&action);
        }
    }
    let mut open: Vec<_> = open.into_values().collect();
    open.sort_by_key(|(seq, _)| *seq);
    Ok(open)
}

fn action_of(payload: serde_json::Value) -> Option<ActionId> {
    let finished = serde_json::from_value::<Finished>(payload.clone());
    match finished {
        Ok(finished) => Some(finished.outcome.action),
        Err(_) => serde_json::from_value::<Unknown>(payload)
            .ok()
            .map(|one| one.action),
    }
}
