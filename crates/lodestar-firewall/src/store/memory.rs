//! A store that lives as long as its process: for tests, probes and comparisons.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lodestar_core::id::BeliefId;
use lodestar_core::time::Timestamp;

use super::{
    AppliedLog, ContextQuery, Disputes, HistoryRow, ListQuery, Store, StoreError, Tally, Verdict,
    Writing, guard, query,
};
use crate::event::{Contradiction, LogName};
use crate::row::{Key, StoredRow};
use crate::text;

/// Rows in memory, found by maps.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// By arrival.
    rows: BTreeMap<u64, StoredRow>,
    arrivals: BTreeMap<String, u64>,
    keys: HashMap<i64, BTreeSet<u64>>,
    /// Eligible rows only, as in every store.
    words: HashMap<String, BTreeSet<u64>>,
    due: BTreeSet<(i64, u64)>,
    history: BTreeMap<BeliefId, Vec<HistoryRow>>,
    contradictions: BTreeSet<Contradiction>,
    logs: BTreeMap<(String, LogName), u64>,
    next_arrival: u64,
    undo: Vec<Undo>,
}

/// How to take back one step of a transaction.
#[derive(Debug)]
enum Undo {
    Remove(u64),
    Restore(u64, Box<StoredRow>),
    History(BeliefId, Option<Vec<HistoryRow>>),
    Contradiction(Contradiction),
    Forgotten(Contradiction),
    Log(String, LogName, Option<u64>),
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn put(&mut self, arrival: u64, row: StoredRow) {
        if let Some(key) = row.key {
            self.keys.entry(key).or_default().insert(arrival);
        }
        if let Some(due) = row.due_at {
            self.due.insert((due, arrival));
        }
        if row.is_eligible() {
            for word in text::indexed_words(&row) {
                self.words.entry(word).or_default().insert(arrival);
            }
        }
        self.arrivals.insert(row.id.clone(), arrival);
        self.rows.insert(arrival, row);
    }

    fn take(&mut self, arrival: u64) -> Option<StoredRow> {
        let row = self.rows.remove(&arrival)?;
        self.arrivals.remove(&row.id);
        if let Some(found) = row.key.and_then(|key| self.keys.get_mut(&key)) {
            found.remove(&arrival);
        }
        if let Some(due) = row.due_at {
            self.due.remove(&(due, arrival));
        }
        if row.is_eligible() {
            for word in text::indexed_words(&row) {
                if let Some(found) = self.words.get_mut(&word) {
                    found.remove(&arrival);
                }
            }
        }
        Some(row)
    }

    fn newest(
        &self,
        key: &Key,
        limit: usize,
        wanted: impl Fn(&StoredRow) -> bool,
    ) -> Vec<StoredRow> {
        let arrivals = self.keys.get(&key.hash).into_iter().flatten().rev();
        arrivals
            .map(|arrival| &self.rows[arrival])
            .filter(|row| key.is_of(row) && wanted(row))
            .take(limit)
            .cloned()
            .collect()
    }

    fn forget_belief(&mut self, id: BeliefId) {
        if let Some(rows) = self.history.remove(&id) {
            self.undo.push(Undo::History(id, Some(rows)));
        }
        let is_part = |pair: &Contradiction| pair.belief == id || pair.against == id;
        let pairs: Vec<_> = self
            .contradictions
            .iter()
            .copied()
            .filter(is_part)
            .collect();
        for pair in pairs {
            self.contradictions.remove(&pair);
            self.undo.push(Undo::Forgotten(pair));
        }
    }

    fn take_back(&mut self) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::Remove(arrival) => drop(self.take(arrival)),
                Undo::Restore(arrival, row) => {
                    self.take(arrival);
                    self.put(arrival, *row);
                }
                Undo::History(belief, Some(rows)) => drop(self.history.insert(belief, rows)),
                Undo::History(belief, None) => drop(self.history.remove(&belief)),
                Undo::Forgotten(pair) => drop(self.contradictions.insert(pair)),
                Undo::Contradiction(pair) => drop(self.contradictions.remove(&pair)),
                Undo::Log(signer, log, Some(next)) => {
                    self.logs.insert((signer, log), next);
                }
                Undo::Log(signer, log, None) => drop(self.logs.remove(&(signer, log))),
            }
        }
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn write(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Writing) -> Result<Verdict, StoreError>,
    ) -> Result<(), StoreError> {
        // What work that panicked has left.
        self.take_back();
        let outcome = guard::run(self, work);
        if !matches!(outcome, Ok(Verdict::Commit)) {
            self.take_back();
        }
        self.undo.clear();
        outcome.map(drop)
    }

    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        Ok(self
            .arrivals
            .get(&id.to_string())
            .map(|arrival| self.rows[arrival].clone()))
    }

    fn rows_starting(&mut self, prefix: &str, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        Ok(self
            .arrivals
            .range(prefix.to_owned()..)
            .take_while(|(id, _)| id.starts_with(prefix))
            .take(limit)
            .map(|(_, arrival)| self.rows[arrival].clone())
            .collect())
    }

    fn context(&mut self, query: &ContextQuery) -> Result<Vec<StoredRow>, StoreError> {
        let none = BTreeSet::new();
        let lists: Vec<_> = query
            .words
            .iter()
            .map(|word| self.words.get(word).unwrap_or(&none))
            .collect();
        let has_all = |arrival: &u64| lists.iter().all(|list| list.contains(arrival));
        let candidates: Box<dyn Iterator<Item = &u64>> =
            match lists.iter().min_by_key(|list| list.len()) {
                Some(shortest) => Box::new(shortest.iter().rev().filter(|a| has_all(a))),
                None => Box::new(self.rows.keys().rev()),
            };
        Ok(candidates
            .map(|arrival| &self.rows[arrival])
            .filter(|row| query::suits(row, query))
            .take(query.limit)
            .cloned()
            .collect())
    }

    fn list(&mut self, query: &ListQuery) -> Result<Vec<StoredRow>, StoreError> {
        let all = self.rows.values().rev();
        Ok(all
            .filter(|row| query::is_listed(row, query))
            .take(query.limit)
            .cloned()
            .collect())
    }

    fn disputes(
        &mut self,
        beliefs: &[BeliefId],
        limit: usize,
    ) -> Result<Vec<Disputes>, StoreError> {
        let of = |belief: &BeliefId| {
            let all = self.contradictions.iter().rev();
            let against: Vec<_> = all
                .filter(|pair| pair.belief == *belief)
                .map(|pair| pair.against)
                .take(limit.saturating_add(1))
                .collect();
            (!against.is_empty()).then(|| Disputes {
                belief: *belief,
                more: against.len() > limit,
                against: against.into_iter().take(limit).collect(),
            })
        };
        Ok(beliefs.iter().filter_map(of).collect())
    }

    fn history(&mut self, belief: &BeliefId) -> Result<Vec<HistoryRow>, StoreError> {
        let mut rows = self.history.get(belief).cloned().unwrap_or_default();
        rows.sort_by_key(|row| row.change.revision);
        Ok(rows)
    }

    fn scan(&mut self, after: Option<&str>, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let behind = |id: &String| after.is_none_or(|after| id.as_str() > after);
        let from = after.unwrap_or_default().to_owned();
        Ok(self
            .arrivals
            .range(from..)
            .filter(|(id, _)| behind(id))
            .take(limit)
            .map(|(_, arrival)| self.rows[arrival].clone())
            .collect())
    }

    fn scan_contradictions(
        &mut self,
        after: Option<Contradiction>,
        limit: usize,
    ) -> Result<Vec<Contradiction>, StoreError> {
        let behind = |pair: &&Contradiction| after.is_none_or(|after| **pair > after);
        Ok(self
            .contradictions
            .iter()
            .filter(behind)
            .take(limit)
            .copied()
            .collect())
    }

    fn logs(&mut self) -> Result<Vec<AppliedLog>, StoreError> {
        let all = self.logs.iter();
        Ok(all
            .map(|((signer, log), next)| AppliedLog {
                signer: signer.clone(),
                log: log.clone(),
                next: *next,
            })
            .collect())
    }

    fn tally(&mut self) -> Result<Vec<Tally>, StoreError> {
        let mut counts = BTreeMap::new();
        for row in self.rows.values() {
            let place = [&row.truth, &row.retrieval, &row.security, &row.freshness];
            *counts.entry(place.map(String::clone)).or_insert(0) += 1;
        }
        let tally = |([truth, retrieval, security, freshness], rows): ([String; 4], u64)| Tally {
            truth,
            retrieval,
            security,
            freshness,
            rows,
        };
        Ok(counts.into_iter().map(tally).collect())
    }
}

impl Writing for MemoryStore {
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        Store::row(self, id)
    }

    fn settled(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        Ok(self.newest(key, limit, StoredRow::is_settled))
    }

    fn unverified(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        Ok(self.newest(key, limit, StoredRow::is_unverified))
    }

    fn due(&mut self, at: Timestamp, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let due = self.due.iter();
        Ok(due
            .take_while(|(moment, _)| *moment <= at.unix_micros())
            .take(limit)
            .map(|(_, arrival)| self.rows[arrival].clone())
            .collect())
    }

    fn insert(&mut self, rows: &[StoredRow]) -> Result<(), StoreError> {
        for row in rows {
            if self.arrivals.contains_key(&row.id) {
                return Err(StoreError::there_already(&row.id));
            }
            let arrival = self.next_arrival;
            self.next_arrival += 1;
            self.put(arrival, row.clone());
            self.undo.push(Undo::Remove(arrival));
        }
        Ok(())
    }

    fn replace(&mut self, row: &StoredRow) -> Result<(), StoreError> {
        let conflict = || StoreError::not_before(&row.id);
        let arrival = *self.arrivals.get(&row.id).ok_or_else(conflict)?;
        if self.rows[&arrival].revision + 1 != row.revision {
            return Err(conflict());
        }
        if let Some(before) = self.take(arrival) {
            self.undo.push(Undo::Restore(arrival, Box::new(before)));
        }
        self.put(arrival, row.clone());
        Ok(())
    }

    fn remove(&mut self, ids: &[&str]) -> Result<(), StoreError> {
        for &id in ids {
            if let Some(&arrival) = self.arrivals.get(id)
                && let Some(row) = self.take(arrival)
            {
                self.undo.push(Undo::Restore(arrival, Box::new(row)));
            }
            if let Ok(id) = id.parse()
                && let Some(rows) = self.history.remove(&id)
            {
                self.undo.push(Undo::History(id, Some(rows)));
            }
        }
        Ok(())
    }

    fn add_history(&mut self, row: &HistoryRow) -> Result<(), StoreError> {
        let belief = row.change.belief;
        let before = self.history.get(&belief).cloned();
        let mut rows = before.clone().unwrap_or_default();
        let is_same = |other: &HistoryRow| other.change.revision == row.change.revision;
        if rows.iter().any(is_same) {
            return Err(StoreError::changed_already(&belief.to_string()));
        }
        rows.push(row.clone());
        self.history.insert(belief, rows);
        self.undo.push(Undo::History(belief, before));
        Ok(())
    }

    fn add_contradictions(&mut self, pairs: &[Contradiction]) -> Result<(), StoreError> {
        for pair in pairs {
            if self.contradictions.insert(*pair) {
                self.undo.push(Undo::Contradiction(*pair));
            }
        }
        Ok(())
    }

    fn next(&mut self, signer: &str, log: &LogName) -> Result<u64, StoreError> {
        let place = (signer.to_owned(), log.clone());
        Ok(self.logs.get(&place).copied().unwrap_or_default())
    }

    fn advance(&mut self, signer: &str, log: &LogName, next: u64) -> Result<(), StoreError> {
        let before = self.logs.insert((signer.to_owned(), log.clone()), next);
        self.undo
            .push(Undo::Log(signer.to_owned(), log.clone(), before));
        Ok(())
    }

    fn forget(&mut self, signer: &str, project: &str) -> Result<(), StoreError> {
        let own: BTreeSet<_> = self
            .logs
            .keys()
            .filter(|(by, log)| by == signer && log.project.as_str() == project)
            .cloned()
            .collect();
        let sessions: BTreeSet<_> = own.iter().map(|(_, log)| log.session.to_string()).collect();
        let others: BTreeSet<_> = self
            .logs
            .keys()
            .filter(|(by, log)| by != signer && log.project.as_str() == project)
            .map(|(_, log)| log.session.to_string())
            .collect();
        let is_own = |row: &StoredRow| {
            let nobodys = row.signer == signer && !others.contains(&row.session);
            row.project == project && (sessions.contains(&row.session) || nobodys)
        };
        let gone: Vec<_> = self
            .rows
            .iter()
            .filter(|(_, row)| is_own(row))
            .map(|(arrival, row)| (*arrival, row.belief_id().ok()))
            .collect();
        for (arrival, id) in gone {
            if let Some(row) = self.take(arrival) {
                self.undo.push(Undo::Restore(arrival, Box::new(row)));
            }
            if let Some(id) = id {
                self.forget_belief(id);
            }
        }
        for place in own {
            let next = self.logs.remove(&place);
            self.undo.push(Undo::Log(place.0, place.1, next));
        }
        Ok(())
    }
}
