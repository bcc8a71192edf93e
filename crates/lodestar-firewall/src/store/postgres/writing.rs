//! A transaction of the PostgreSQL store.

use std::collections::HashSet;

use lodestar_core::id::BeliefId;
use lodestar_core::time::Timestamp;
use postgres::Transaction;
use postgres::types::ToSql;

use super::rows;
use super::statements::{Prepared, Statements};
use crate::database::to_database;
use crate::event::{Contradiction, LogName};
use crate::row::{Key, StoredRow};
use crate::store::query;
use crate::store::{HistoryRow, StoreError, Writing};

pub(super) struct Writer<'a, 'c> {
    pub(super) transaction: &'a mut Transaction<'c>,
    pub(super) statements: &'a Statements,
    pub(super) prepared: &'a mut Prepared,
}

const SETTLED: i16 = 1;
const UNVERIFIED: i16 = 0;

impl Writer<'_, '_> {
    fn rows(
        &mut self,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<StoredRow>, StoreError> {
        self.prepared.rows(self.transaction, text, params)
    }

    fn execute(&mut self, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        self.prepared.execute(self.transaction, text, params)
    }

    fn in_phase(
        &mut self,
        key: &Key,
        phase: i16,
        limit: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        let [scope, subject, relation] =
            [&key.scope, &key.subject, &key.relation].map(|text| to_database(text));
        let limit = query::limit(limit);
        let params: [&(dyn ToSql + Sync); 6] =
            [&key.hash, &phase, &scope, &subject, &relation, &limit];
        self.rows(&self.statements.in_phase, &params)
    }
}

/// As the database takes them: by reference.
fn borrowed<'a>(values: &'a [Box<dyn ToSql + Sync + 'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| &**value as _).collect()
}

impl Writing for Writer<'_, '_> {
    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        Ok(self.rows(&self.statements.row, &[&id.to_string()])?.pop())
    }

    fn settled(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.in_phase(key, SETTLED, limit)
    }

    fn unverified(&mut self, key: &Key, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.in_phase(key, UNVERIFIED, limit)
    }

    fn due(&mut self, at: Timestamp, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let params: [&(dyn ToSql + Sync); 2] = [&at.unix_micros(), &query::limit(limit)];
        self.rows(&self.statements.due, &params)
    }

    fn insert(&mut self, rows: &[StoredRow]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let values = rows::lists(rows);
        let text = &self.statements.insert;
        let inserted = self
            .prepared
            .query(self.transaction, text, &borrowed(&values))?;
        // An error of the database would end the transaction, and could not name the row.
        let mut inserted: HashSet<&str> = inserted.iter().map(|row| row.get(0)).collect();
        match rows
            .iter()
            .find(|row| !inserted.remove(&*to_database(&row.id)))
        {
            Some(row) => Err(StoreError::there_already(&row.id)),
            None => Ok(()),
        }
    }

    fn replace(&mut self, row: &StoredRow) -> Result<(), StoreError> {
        let values = rows::lists(std::slice::from_ref(row));
        match self.execute(&self.statements.update, &borrowed(&values))? {
            0 => Err(StoreError::not_before(&row.id)),
            _ => Ok(()),
        }
    }

    fn remove(&mut self, ids: &[&str]) -> Result<(), StoreError> {
        let text = "WITH gone AS (DELETE FROM beliefs WHERE id = ANY($1::text[]))
             DELETE FROM history WHERE belief = ANY($1::text[])";
        self.execute(text, &[&ids]).map(drop)
    }

    fn add_history(&mut self, row: &HistoryRow) -> Result<(), StoreError> {
        let change = serde_json::to_string(&row.change).map_err(StoreError::database)?;
        let belief = row.change.belief.to_string();
        let params: [&(dyn ToSql + Sync); 7] = [
            &belief,
            &query::revision(row.change.revision),
            &to_database(&change),
            &row.at.log.project.as_str(),
            &row.at.log.session.as_str(),
            &row.at.seq.cast_signed(),
            &&row.at.leaf.as_bytes()[..],
        ];
        let text = "INSERT INTO history (belief, revision, change, project, session, seq, leaf)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
        match self.execute(text, &params)? {
            0 => Err(StoreError::changed_already(&belief)),
            _ => Ok(()),
        }
    }

    fn add_contradictions(&mut self, pairs: &[Contradiction]) -> Result<(), StoreError> {
        if pairs.is_empty() {
            return Ok(());
        }
        let (beliefs, against): (Vec<_>, Vec<_>) = pairs
            .iter()
            .map(|pair| (pair.belief.to_string(), pair.against.to_string()))
            .unzip();
        let text = "INSERT INTO contradictions (belief, against)
             SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING";
        self.execute(text, &[&beliefs, &against]).map(drop)
    }

    fn next(&mut self, signer: &str, log: &LogName) -> Result<u64, StoreError> {
        let text = "SELECT next FROM logs WHERE signer = $1 AND project = $2 AND session = $3";
        let place: [&(dyn ToSql + Sync); 3] = [
            &to_database(signer),
            &log.project.as_str(),
            &log.session.as_str(),
        ];
        let found = self.prepared.query(self.transaction, text, &place)?;
        let next: i64 = found.first().map(|row| row.get(0)).unwrap_or_default();
        Ok(next.cast_unsigned())
    }

    fn advance(&mut self, signer: &str, log: &LogName, next: u64) -> Result<(), StoreError> {
        let text = "INSERT INTO logs (signer, project, session, next) VALUES ($1, $2, $3, $4)
             ON CONFLICT (signer, project, session) DO UPDATE SET next = excluded.next";
        let params: [&(dyn ToSql + Sync); 4] = [
            &to_database(signer),
            &log.project.as_str(),
            &log.session.as_str(),
            &next.cast_signed(),
        ];
        self.execute(text, &params).map(drop)
    }

    fn forget(&mut self, signer: &str, project: &str) -> Result<(), StoreError> {
        let text = "WITH gone AS (DELETE FROM beliefs WHERE project = $2 AND (
                 session IN (SELECT session FROM logs WHERE signer = $1 AND project = $2)
                 OR (signer = $1 AND session NOT IN
                     (SELECT session FROM logs WHERE signer <> $1 AND project = $2)))
                 RETURNING id),
             changes AS (DELETE FROM history WHERE belief IN (SELECT id FROM gone)),
             pairs AS (DELETE FROM contradictions WHERE belief IN (SELECT id FROM gone)
                 OR against IN (SELECT id FROM gone))
             DELETE FROM logs WHERE signer = $1 AND project = $2";
        self.execute(text, &[&to_database(signer), &to_database(project)])
            .map(drop)
    }
}
