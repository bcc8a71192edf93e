//! Beliefs outlive sessions: what other sessions did to those of the one that is reported on.

use std::collections::BTreeSet;

use lodestar_core::event::EventType;
use lodestar_firewall::event::FirewallEvent;
use lodestar_log::verify::verify_session;
use lodestar_log::{Ledger, ProjectLog, Reader, SessionDir};
use lodestar_replay::Defences;

use super::{Examination, ReportError};
use crate::fold::{Changed, Fold};

/// Beliefs outlive sessions: what other sessions that verify did to those of this one. What is left
/// out is said.
pub(super) fn moved(
    examination: &Examination<'_>,
    log: &ProjectLog,
    fold: &mut Fold<'_>,
) -> Result<Vec<String>, ReportError> {
    let mut left_out = Vec::new();
    let mut ledger = None;
    for other in log.sessions_on_disk()? {
        if other == *examination.dir.session() {
            continue;
        }
        let dir = log.session(&other);
        let changes = changes_of(&dir, fold);
        if changes.is_empty() {
            continue;
        }
        let ledger = match &ledger {
            Some(ledger) => ledger,
            None => {
                let (read, _) = Ledger::read(log, examination.trust, &BTreeSet::new())?;
                &*ledger.insert(read)
            }
        };
        let facts = ledger.session(&other);
        let verified = verify_session(&dir, facts, examination.trust, &|_| ())?;
        if facts.is_none() || !verified.is_intact() || Defences::of(&dir)? != Defences::Whole {
            left_out.push(format!(
                    "Session {other} changes beliefs of this one, but it does not verify, or had defences taken out: what it says is left out."
                ));
            continue;
        }
        changes.into_iter().for_each(|change| fold.moved(change));
    }
    Ok(left_out)
}

/// What a session did to beliefs of the one that is reported on.
fn changes_of(dir: &SessionDir, fold: &Fold<'_>) -> Vec<Changed> {
    let Ok(reader) = Reader::open(dir) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for event in reader.map_while(Result::ok) {
        let kind = EventType::parse(event.kind.as_bytes());
        let Some(kind) = kind.filter(|kind| changes_others(*kind)) else {
            continue;
        };
        let payload = event.whole(dir).ok().flatten();
        let read = payload.and_then(|payload| FirewallEvent::read(kind, payload)?.ok());
        let changes = match read {
            Some(FirewallEvent::Adopted(adopted)) => adopted.changes,
            Some(FirewallEvent::Moved(moved)) => moved.changes,
            Some(FirewallEvent::Promoted(promoted)) => vec![promoted.change],
            _ => continue,
        };
        let ours = changes.into_iter().filter(|one| fold.knows(one.belief));
        found.extend(ours.map(|one| Changed::new(&one, event.seq, Some(dir.session()))));
    }
    found
}

/// Whether events of this type can change where a belief of another session stands.
fn changes_others(kind: EventType) -> bool {
    [
        EventType::BELIEF_ADOPTED,
        EventType::BELIEF_MOVED,
        EventType::BELIEF_PROMOTED,
    ]
    .contains(&kind)
}
