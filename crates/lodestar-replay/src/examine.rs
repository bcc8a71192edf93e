//! Does a store say what its logs say?
//!
//! The logs are folded once more, into a store of their own, and both are walked side by side in
//! the order of ids. Every row's signature is checked, not only its seal.

use std::collections::BTreeSet;

use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_firewall::event::Contradiction;
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::row::keys::{Keyring, Standing};
use lodestar_firewall::store::{SqliteStore, Store, Tally};
use lodestar_log::verify::is_live;
use lodestar_log::{Event, ProjectLog, Reader, Trust};
use serde::Serialize;
use thiserror::Error;

use crate::follow::{Followed, LOST, PAGE, ReplayError, StoreProgress, lead, transact, verified};
use crate::results::changes_beliefs;

/// Something about a store that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum StoreFinding {
    #[error(
        "belief `{id}`: its row was edited: its signature is not right; it is left out of every context"
    )]
    Edited { id: String },
    #[error(
        "belief `{id}`: written by an installation that is not trusted here ({signer}); it counts as imported"
    )]
    Foreign { id: String, signer: String },
    #[error(
        "belief `{id}`: event #{seq} of session `{session}` adopted it, but it is not in the store"
    )]
    Missing {
        id: String,
        session: String,
        seq: i64,
    },
    #[error("belief `{id}`: the store has it otherwise than the log says: {}", .columns.join(", "))]
    Differs {
        id: String,
        columns: Vec<&'static str>,
    },
    #[error(
        "belief `{id}`: it names event #{seq} of session `{session}`, which adopted no such belief"
    )]
    NotInLog {
        id: String,
        session: String,
        seq: i64,
    },
    #[error(
        "session `{session}`: the store has followed it up to #{next}, the log goes on to #{last}: run any command that opens the store for writing, or rebuild it"
    )]
    Behind {
        session: String,
        next: u64,
        last: u64,
    },
    #[error(
        "session `{session}`: the store has followed it up to #{next}, but the log ends before: rebuild the store"
    )]
    Ahead { session: String, next: u64 },
    #[error("session `{session}` does not count: {reason}")]
    RefusedSession { session: String, reason: String },
    #[error("belief `{id}`: its history in the store is not the one that the log tells")]
    HistoryDiffers { id: String },
    #[error(
        "belief `{belief}`: that `{against}` speaks against it stands in {}",
        if *.in_store { "the store alone" } else { "the log alone" }
    )]
    ContradictionDiffers {
        belief: String,
        against: String,
        in_store: bool,
    },
    #[error(
        "event #{seq} of session `{session}` was redacted: what it brought is not known, and what it superseded or set apart may stand again"
    )]
    Redacted { session: String, seq: u64 },
    #[error(
        "event #{seq} of session `{session}` changes belief `{belief}`, which is not there or had changed otherwise before"
    )]
    NeverApplied {
        belief: String,
        session: String,
        seq: u64,
    },
}

impl StoreFinding {
    /// Whether something is wrong; a trusted neighbour's rows, or a store that lags, are not.
    pub fn is_problem(&self) -> bool {
        !matches!(self, Self::Foreign { .. } | Self::Behind { .. })
    }
}

/// What came of examining a store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreReport {
    /// What and where the store is.
    pub store: String,
    /// How many rows it has, of all projects.
    pub rows: u64,
    /// Where they stand.
    pub tally: Vec<Tally>,
    /// How many events of this project's logs belong in it.
    pub events: u64,
    /// What a person should know.
    pub findings: Vec<StoreFinding>,
}

impl StoreReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(StoreFinding::is_problem)
    }
}

/// Compares a store with the logs of a project.
pub fn examine(
    store: &mut dyn Store,
    keys: &Keyring,
    log: &ProjectLog,
    trust: &Trust,
    progress: &mut dyn FnMut(StoreProgress<'_>),
) -> Result<StoreReport, ReplayError> {
    let scratch = tempfile::tempdir()?;
    let mut reference = SqliteStore::open(&scratch.path().join("reference.db"))?;
    let (counted, refused) = verified(log, trust, progress)?;
    let mut followed = Followed::default();
    transact(&mut reference, |tx| {
        lead(tx, keys, &counted, &mut followed, progress)
    })?;
    let tally = store.tally()?;
    let rows = tally.iter().map(|tally| tally.rows).sum();
    let mut findings: Vec<_> = refused
        .into_iter()
        .map(|refused| StoreFinding::RefusedSession {
            session: refused.session,
            reason: refused.reason,
        })
        .collect();
    findings.extend(followed.left.iter().map(|left| StoreFinding::NeverApplied {
        belief: left.change.belief.to_string(),
        session: left.at.log.session.to_string(),
        seq: left.at.seq,
    }));
    let redacted = followed.redacted.into_iter();
    findings.extend(redacted.map(|(session, seq)| StoreFinding::Redacted { session, seq }));
    compare_logs(store, &mut reference, keys, log, &mut findings)?;
    compare_rows(
        store,
        &mut reference,
        keys,
        log,
        rows,
        progress,
        &mut findings,
    )?;
    compare_histories(store, &mut reference, keys, &mut findings)?;
    compare_contradictions(store, &mut reference, &mut findings)?;
    Ok(StoreReport {
        store: store.describe(),
        rows,
        tally,
        events: followed.events,
        findings,
    })
}

fn compare_logs(
    store: &mut dyn Store,
    reference: &mut dyn Store,
    keys: &Keyring,
    log: &ProjectLog,
    findings: &mut Vec<StoreFinding>,
) -> Result<(), ReplayError> {
    let own = keys.own_id().as_str();
    let ours = store.logs()?;
    for wanted in reference.logs()? {
        let found = ours
            .iter()
            .find(|found| found.signer == own && found.log == wanted.log)
            .map_or(0, |found| found.next);
        // A closed session may end in events that change no belief.
        let is_behind =
            found < wanted.next && has_changes_from(log, &wanted.log.session, found, wanted.next)?;
        if is_behind {
            findings.push(StoreFinding::Behind {
                session: wanted.log.session.to_string(),
                next: found,
                last: wanted.next.saturating_sub(1),
            });
        }
    }
    for found in ours {
        if found.signer != own || found.log.project != *log.project() || found.next == LOST {
            continue;
        }
        let dir = log.session(&found.log.session);
        let events = match Reader::open(&dir) {
            Ok(reader) => reader.take_while(Result::is_ok).count() as u64,
            Err(_) => continue,
        };
        // What a live session has written may not be on disk yet.
        if found.next > events && !is_live(&dir)? {
            findings.push(StoreFinding::Ahead {
                session: found.log.session.to_string(),
                next: found.next,
            });
        }
    }
    Ok(())
}

/// Whether an event between the two changes beliefs.
fn has_changes_from(
    log: &ProjectLog,
    session: &SessionId,
    from: u64,
    until: u64,
) -> Result<bool, ReplayError> {
    let reader = Reader::open(&log.session(session))?;
    Ok(reader
        .map_while(Result::ok)
        .any(|event| (from..until).contains(&event.seq) && is_change(&event)))
}

fn is_change(event: &Event) -> bool {
    EventType::parse(event.kind.as_bytes()).is_some_and(changes_beliefs)
}

/// Rows of a store in the order of ids, page by page.
struct Rows<'a> {
    store: &'a mut dyn Store,
    page: std::vec::IntoIter<StoredRow>,
    last: Option<String>,
    next: Option<StoredRow>,
}

impl<'a> Rows<'a> {
    fn new(store: &'a mut dyn Store) -> Result<Self, ReplayError> {
        let mut rows = Self {
            store,
            page: Vec::new().into_iter(),
            last: None,
            next: None,
        };
        rows.advance()?;
        Ok(rows)
    }

    fn advance(&mut self) -> Result<Option<StoredRow>, ReplayError> {
        if self.page.as_slice().is_empty() {
            self.page = self.store.scan(self.last.as_deref(), PAGE)?.into_iter();
        }
        let row = self.page.next();
        self.last = row.as_ref().map(|row| row.id.clone()).or(self.last.take());
        Ok(std::mem::replace(&mut self.next, row))
    }
}

fn compare_rows(
    store: &mut dyn Store,
    reference: &mut dyn Store,
    keys: &Keyring,
    log: &ProjectLog,
    total: u64,
    progress: &mut dyn FnMut(StoreProgress<'_>),
    findings: &mut Vec<StoreFinding>,
) -> Result<(), ReplayError> {
    let mut found = Rows::new(store)?;
    let mut wanted = Rows::new(reference)?;
    let mut done = 0;
    loop {
        let order = match (&found.next, &wanted.next) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(found), Some(wanted)) => found.id.cmp(&wanted.id),
        };
        if order.is_le() {
            done += 1;
            if done % PAGE as u64 == 0 {
                progress(StoreProgress {
                    step: "comparing",
                    session: None,
                    done,
                    total,
                });
            }
        }
        match order {
            std::cmp::Ordering::Less => {
                if let Some(row) = found.advance()? {
                    findings.extend(unexpected(&row, keys, log));
                }
            }
            std::cmp::Ordering::Greater => {
                if let Some(row) = wanted.advance()? {
                    findings.push(StoreFinding::Missing {
                        id: row.id,
                        session: row.session,
                        seq: row.seq,
                    });
                }
            }
            std::cmp::Ordering::Equal => {
                if let (Some(row), Some(wanted)) = (found.advance()?, wanted.advance()?) {
                    findings.extend(differing(&row, &wanted, keys, log));
                }
            }
        }
    }
}

/// Compares what became of each belief that both have in the same state.
fn compare_histories(
    store: &mut dyn Store,
    reference: &mut dyn Store,
    keys: &Keyring,
    findings: &mut Vec<StoreFinding>,
) -> Result<(), ReplayError> {
    let mut after: Option<String> = None;
    loop {
        let page = reference.scan(after.as_deref(), PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.id.clone());
        for wanted in page.iter().filter(|row| row.revision > 0) {
            let Ok(id) = wanted.belief_id() else { continue };
            let same_state = store.row(&id)?.is_some_and(|row| {
                row.revision == wanted.revision && row.signer == keys.own_id().as_str()
            });
            // A history that cannot be read is not the one that the log tells.
            let same = store.history(&id).ok() == reference.history(&id).ok();
            if same_state && !same {
                let id = wanted.id.clone();
                findings.push(StoreFinding::HistoryDiffers { id });
            }
        }
    }
}

/// Compares contradictions. Other machines may know more about their own beliefs.
fn compare_contradictions(
    store: &mut dyn Store,
    reference: &mut dyn Store,
    findings: &mut Vec<StoreFinding>,
) -> Result<(), ReplayError> {
    let found = all_contradictions(store)?;
    let wanted = all_contradictions(reference)?;
    let mut differing: Vec<_> = wanted
        .difference(&found)
        .map(|pair| (*pair, false))
        .collect();
    for pair in found.difference(&wanted) {
        let is_ours =
            reference.row(&pair.belief)?.is_some() && reference.row(&pair.against)?.is_some();
        if is_ours {
            differing.push((*pair, true));
        }
    }
    let finding = |(pair, in_store): (Contradiction, bool)| StoreFinding::ContradictionDiffers {
        belief: pair.belief.to_string(),
        against: pair.against.to_string(),
        in_store,
    };
    findings.extend(differing.into_iter().map(finding));
    Ok(())
}

fn all_contradictions(store: &mut dyn Store) -> Result<BTreeSet<Contradiction>, ReplayError> {
    let mut all = BTreeSet::new();
    let mut after = None;
    loop {
        let page = store.scan_contradictions(after, PAGE)?;
        after = page.last().copied();
        if after.is_none() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// What a row means that the logs here do not have.
fn unexpected(row: &StoredRow, keys: &Keyring, log: &ProjectLog) -> Option<StoreFinding> {
    match keys.standing(row) {
        Standing::Edited => Some(StoreFinding::Edited { id: row.id.clone() }),
        Standing::Foreign => Some(StoreFinding::Foreign {
            id: row.id.clone(),
            signer: row.signer.clone(),
        }),
        // Other projects share the store, and so do other machines.
        Standing::Genuine if row.project != log.project().as_str() => None,
        Standing::Genuine if row.signer != keys.own_id().as_str() => None,
        // What a running session has written may not be in the file yet.
        Standing::Genuine if is_running(row, log) => None,
        Standing::Genuine => Some(StoreFinding::NotInLog {
            id: row.id.clone(),
            session: row.session.clone(),
            seq: row.seq,
        }),
    }
}

fn is_running(row: &StoredRow, log: &ProjectLog) -> bool {
    let session = row.session.parse::<SessionId>();
    session.is_ok_and(|session| is_live(&log.session(&session)).unwrap_or(false))
}

fn differing(
    row: &StoredRow,
    wanted: &StoredRow,
    keys: &Keyring,
    log: &ProjectLog,
) -> Option<StoreFinding> {
    let id = row.id.clone();
    if keys.standing(row) == Standing::Foreign {
        let signer = row.signer.clone();
        return Some(StoreFinding::Foreign { id, signer });
    }
    if !keys.has_right_signature(row) {
        return Some(StoreFinding::Edited { id });
    }
    // What another trusted machine changed since is in its log, not here.
    if row.signer != wanted.signer && row.revision > wanted.revision {
        return None;
    }
    let changed_now = StoredRow {
        session: row.changed_session.clone(),
        ..row.clone()
    };
    if row.revision > wanted.revision && is_running(&changed_now, log) {
        return None;
    }
    let columns = row.differences(wanted);
    (!columns.is_empty()).then_some(StoreFinding::Differs { id, columns })
}
