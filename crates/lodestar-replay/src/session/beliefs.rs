//! Belief statuses, derived again.
//!
//! Beliefs outlive sessions, so all sessions of the project are followed, in a store of their own; what
//! is compared are the events of the one that was asked for.

mod lost;

use std::collections::HashSet;
use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_core::id::BeliefId;
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::SessionId;
use lodestar_firewall::Plain;
use lodestar_firewall::event::{Change, FirewallEvent, LogName, LogPosition};
use lodestar_firewall::fold::{self, Rebuild};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{MemoryStore, Store as _};
use lodestar_log::{ProjectLog, Reader};

use super::{Beside, Difference, Seen, SessionReplay};
use crate::follow::{ReplayError, transact};
use crate::results::{Recorded, Results};
use lost::Lost;

pub(super) fn derive(
    log: &ProjectLog,
    (session, until, beside): (&SessionId, u64, Beside),
    operators: &[PublicKey],
    replay: &mut SessionReplay,
    seen: Seen<'_>,
) -> Result<(), ReplayError> {
    let is_alone = beside != Beside::Project;
    // The rows are thrown away afterwards, so any key signs them.
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("the system has randomness");
    let keys = Keyring::new(Arc::new(SecretKey::from_seed(seed)));
    let keys = keys.with_operators(operators.iter().copied());
    let mut store = MemoryStore::new();
    let mut fold = Rebuild::default();
    let mut suspects = Vec::new();
    let mut lost = Lost::default();
    let sessions = match beside {
        Beside::Project => log.sessions_on_disk()?,
        Beside::Nothing(_) => vec![session.clone()],
    };
    let named = named(log, &sessions, (session, until, beside))?;
    for other in sessions {
        let name = LogName {
            project: log.project().clone(),
            session: other.clone(),
        };
        let is_this = other == *session;
        follow(
            (log, beside),
            &name,
            &keys,
            &mut store,
            &mut fold,
            (&mut suspects, &mut lost, &named),
            is_this.then_some((&mut *replay, &mut *seen, until)),
        )?;
    }
    let mut left = Vec::new();
    transact(&mut store, |tx| {
        left = fold.finish(tx, &keys)?;
        Ok(())
    })?;
    for waiting in left.iter().filter(|one| one.at.log.session == *session) {
        if lost.before(waiting.at.seq) || lost.elsewhere(log, operators)? {
            replay.redacted.push(waiting.at.seq);
            continue;
        }
        if is_alone && is_of_others(&mut store, &waiting.change)? {
            replay.elsewhere.push(waiting.at.seq);
            continue;
        }
        replay.differ(Difference {
            seq: waiting.at.seq,
            recorded: format!("a change of belief `{}`", waiting.change.belief),
            derived: "that it is not there, or stood otherwise".to_owned(),
        });
    }
    for (seq, belief) in suspects {
        // What another session did to it may have been before: nobody can tell.
        let changes = store.history(&belief)?;
        if !changes.iter().all(|one| one.at.log.session == *session) {
            continue;
        }
        if lost.before(seq) {
            // What was redacted may have set it aside.
            replay.redacted.push(seq);
        } else {
            replay.differ(Difference {
                seq,
                recorded: "that the results say nothing beyond themselves".to_owned(),
                derived: format!("that belief `{belief}` has a say in them"),
            });
        }
    }
    Ok(())
}

/// Whether a change that never had its turn rests on another session: that adopted the belief, or changed it in
/// between.
fn is_of_others(store: &mut MemoryStore, change: &Change) -> Result<bool, ReplayError> {
    let row = store.row(&change.belief)?;
    let known = row.and_then(|row| u64::try_from(row.revision).ok());
    Ok(known.is_none_or(|known| change.revision > known.saturating_add(1)))
}

/// Every belief that some event of these sessions changes. A line that cannot be read says nothing here, and is
/// found where it is followed.
fn named(
    log: &ProjectLog,
    sessions: &[SessionId],
    (this, until, beside): (&SessionId, u64, Beside),
) -> Result<HashSet<BeliefId>, ReplayError> {
    let mut named = HashSet::new();
    for session in sessions {
        let dir = log.session(session);
        let Ok(reader) = Reader::open(&dir) else {
            continue;
        };
        let is_this = session == this;
        let events = reader.map_while(Result::ok);
        for event in events.take_while(|event| !is_this || event.seq < until) {
            beside.patience().check()?;
            let kind = EventType::parse(event.kind.as_bytes());
            let changes = [
                EventType::BELIEF_ADOPTED,
                EventType::BELIEF_MOVED,
                EventType::BELIEF_PROMOTED,
            ];
            let Some(kind) = kind.filter(|kind| changes.contains(kind)) else {
                continue;
            };
            let payload = event.whole(&dir).ok().flatten();
            let read = payload.and_then(|payload| FirewallEvent::read(kind, payload)?.ok());
            let changed = read.iter().flat_map(fold::changes);
            named.extend(changed.map(|change| change.belief));
        }
    }
    Ok(named)
}

/// Adoptions that were recorded as plain, and the beliefs of the same log that had a say in them.
fn contested(
    store: &mut MemoryStore,
    keys: &Keyring,
    results: &[Plain],
    at: &LogPosition,
) -> Result<Vec<(u64, BeliefId)>, ReplayError> {
    let mut found = Vec::new();
    transact(store, |tx| {
        for plain in results {
            let beliefs = plain.contested(tx, keys, &at.log)?;
            found.extend(beliefs.into_iter().map(|belief| (at.seq, belief)));
        }
        Ok(())
    })?;
    Ok(found)
}

fn follow(
    (log, beside): (&ProjectLog, Beside),
    name: &LogName,
    keys: &Keyring,
    store: &mut MemoryStore,
    fold: &mut Rebuild,
    (suspects, lost, named): (&mut Vec<(u64, BeliefId)>, &mut Lost, &HashSet<BeliefId>),
    this: Option<(&mut SessionReplay, Seen<'_>, u64)>,
) -> Result<(), ReplayError> {
    let (mut replay, mut seen, until) = match this {
        Some((replay, seen, until)) => (Some(replay), Some(seen), until),
        // To its end: what others write meanwhile does not change what was before it.
        None => (None, None, u64::MAX),
    };
    let dir = log.session(&name.session);
    let reader = match Reader::open(&dir) {
        Ok(reader) => reader,
        // Another session's trouble is that one's own.
        Err(_) if replay.is_none() => return Ok(()),
        Err(problem) => return Err(problem.into()),
    };
    let mut results = Results::new(&dir);
    let events = reader.map_while(Result::ok);
    for event in events.take_while(|event| event.seq < until) {
        beside.patience().check()?;
        let at = LogPosition {
            log: name.clone(),
            seq: event.seq,
            leaf: event.leaf_hash,
        };
        let recorded = results.follow(&event);
        if let Some(seen) = &mut seen {
            seen(&event, recorded.as_ref(), &results);
        }
        let applied = match recorded {
            Ok(Recorded::Other) => continue,
            Ok(Recorded::Redacted) => {
                match replay.as_deref_mut() {
                    Some(replay) => {
                        replay.redacted.push(event.seq);
                        lost.here(event.seq);
                    }
                    None => lost.there(&name.session, event.seq),
                }
                continue;
            }
            Err(problem) => {
                differ(&mut replay, event.seq, problem.to_string());
                continue;
            }
            Ok(Recorded::Event(recorded)) => {
                transact(store, |tx| Ok(fold.apply(tx, keys, &recorded, &at)?))
            }
            Ok(Recorded::Results(adoption)) => {
                match replay.as_deref_mut() {
                    Some(replay) if !adoption.redacted.is_empty() => {
                        replay.redacted.extend(&adoption.redacted);
                        lost.here(event.seq);
                    }
                    Some(_) => {}
                    None => {
                        let gone = adoption.redacted.iter();
                        gone.for_each(|seq| lost.there(&name.session, *seq));
                    }
                }
                let plain = adoption.plain();
                // Of one that stands alone, another session may have set aside whatever had a say.
                if replay.is_some() && beside == Beside::Project {
                    suspects.extend(contested(store, keys, &plain, &at)?);
                }
                transact(store, |tx| {
                    Ok(fold.apply_needed(tx, keys, &plain, &at, named)?)
                })
            }
        };
        if let Some(replay) = replay.as_deref_mut() {
            replay.beliefs += 1;
        }
        match applied {
            Ok(()) => {}
            Err(ReplayError::Fold(problem)) => differ(&mut replay, event.seq, problem.to_string()),
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

fn differ(replay: &mut Option<&mut SessionReplay>, seq: u64, derived: String) {
    if let Some(replay) = replay.as_deref_mut() {
        replay.differ(Difference {
            seq,
            recorded: "beliefs".to_owned(),
            derived,
        });
    }
}
