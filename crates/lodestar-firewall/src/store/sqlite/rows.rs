//! Rows, into SQLite and out of it.
//!
//! A row that somebody edited is read all the same, whatever its columns hold: its signature tells,
//! and one bad row must not hide all others.

use rusqlite::types::ValueRef;
use rusqlite::{Row, ToSql};

use crate::row::StoredRow;
use crate::store::columns::{COLUMNS, hash, history};
use crate::store::{HistoryRow, StoreError};

/// The values of a row, in the order of the columns.
pub(super) fn values(row: &StoredRow) -> [&dyn ToSql; COLUMNS.len()] {
    [
        &row.id,
        &row.key,
        &row.scope,
        &row.subject,
        &row.relation,
        &row.object,
        &row.statement,
        &row.claim,
        &row.evidence,
        &row.authority,
        &row.confidence,
        &row.class,
        &row.sensitivity,
        &row.quality,
        &row.truth,
        &row.retrieval,
        &row.security,
        &row.freshness,
        &row.observed_at,
        &row.adopted_at,
        &row.due_at,
        &row.server,
        &row.tool,
        &row.revision,
        &row.project,
        &row.session,
        &row.seq,
        &row.leaf,
        &row.changed_project,
        &row.changed_session,
        &row.changed_seq,
        &row.changed_leaf,
        &row.signer,
        &row.signature,
        &row.seal,
    ]
}

/// Reads columns one after the other.
struct Reader<'a, 'stmt> {
    row: &'a Row<'stmt>,
    next: usize,
}

impl<'a> Reader<'a, '_> {
    fn value(&mut self) -> rusqlite::Result<ValueRef<'a>> {
        let at = self.next;
        self.next += 1;
        self.row.get_ref(at)
    }

    fn bytes(&mut self) -> rusqlite::Result<Option<&'a [u8]>> {
        Ok(match self.value()? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
            _ => None,
        })
    }

    fn some_text(&mut self) -> rusqlite::Result<Option<String>> {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(self.bytes()?.map(lossy))
    }

    fn text(&mut self) -> rusqlite::Result<String> {
        Ok(self.some_text()?.unwrap_or_default())
    }

    fn some_number(&mut self) -> rusqlite::Result<Option<i64>> {
        Ok(match self.value()? {
            ValueRef::Integer(number) => Some(number),
            _ => None,
        })
    }

    fn number(&mut self) -> rusqlite::Result<i64> {
        Ok(self.some_number()?.unwrap_or_default())
    }

    fn real(&mut self) -> rusqlite::Result<f64> {
        Ok(match self.value()? {
            ValueRef::Real(number) => number,
            _ => f64::NAN,
        })
    }

    fn hash(&mut self) -> rusqlite::Result<[u8; 32]> {
        Ok(hash(self.bytes()?.unwrap_or_default()))
    }
}

/// Reads a row whose columns stand in their order.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    let mut column = Reader { row, next: 0 };
    Ok(StoredRow {
        id: column.text()?,
        key: column.some_number()?,
        scope: column.text()?,
        subject: column.text()?,
        relation: column.text()?,
        object: column.text()?,
        statement: column.text()?,
        claim: column.text()?,
        evidence: column.text()?,
        authority: column.text()?,
        confidence: column.real()?,
        class: column.text()?,
        sensitivity: column.number()?,
        quality: column.text()?,
        truth: column.text()?,
        retrieval: column.text()?,
        security: column.text()?,
        freshness: column.text()?,
        observed_at: column.number()?,
        adopted_at: column.number()?,
        due_at: column.some_number()?,
        server: column.some_text()?,
        tool: column.some_text()?,
        revision: column.number()?,
        project: column.text()?,
        session: column.text()?,
        seq: column.number()?,
        leaf: column.hash()?,
        changed_project: column.text()?,
        changed_session: column.text()?,
        changed_seq: column.number()?,
        changed_leaf: column.hash()?,
        signer: column.text()?,
        signature: column.bytes()?.unwrap_or_default().to_vec(),
        seal: column.hash()?,
    })
}

/// Reads a change, project, session, seq and leaf hash.
pub(super) fn read_history(row: &Row<'_>) -> rusqlite::Result<Result<HistoryRow, StoreError>> {
    let mut column = Reader { row, next: 0 };
    let change = column.text()?;
    let project = column.text()?;
    let session = column.text()?;
    let seq = column.number()?;
    Ok(history(&change, &project, &session, seq, column.hash()?))
}
