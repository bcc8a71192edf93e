//! Rows, into PostgreSQL and out of it.

use postgres::Row;
use postgres::types::ToSql;

use crate::database::{from_database, to_database};
use crate::row::StoredRow;
use crate::store::columns::hash;
use crate::store::query::Indexed;

/// The types of the columns, in their order, and of the words behind them.
pub(super) const TYPES: [&str; 36] = [
    "text",
    "bigint",
    "text",
    "text",
    "text",
    "text",
    "text",
    "text",
    "text",
    "text",
    "double precision",
    "text",
    "bigint",
    "text",
    "text",
    "text",
    "text",
    "text",
    "bigint",
    "bigint",
    "bigint",
    "text",
    "text",
    "bigint",
    "text",
    "text",
    "bigint",
    "bytea",
    "text",
    "text",
    "bigint",
    "bytea",
    "text",
    "bytea",
    "bytea",
    "text",
];

type Values<'a> = Vec<Box<dyn ToSql + Sync + 'a>>;

/// One list per column: what many rows have there, and their words, with blanks between.
pub(super) fn lists(rows: &[StoredRow]) -> Values<'_> {
    type Text = fn(&StoredRow) -> &str;
    type Number = fn(&StoredRow) -> Option<i64>;
    type Bytes = fn(&StoredRow) -> &[u8];
    let text = |of: Text| -> Box<dyn ToSql + Sync> {
        Box::new(
            rows.iter()
                .map(|row| to_database(of(row)))
                .collect::<Vec<_>>(),
        )
    };
    let some_text = |of: fn(&StoredRow) -> Option<&str>| -> Box<dyn ToSql + Sync> {
        let all = rows.iter().map(|row| of(row).map(to_database));
        Box::new(all.collect::<Vec<_>>())
    };
    let number =
        |of: Number| -> Box<dyn ToSql + Sync> { Box::new(rows.iter().map(of).collect::<Vec<_>>()) };
    let bytes =
        |of: Bytes| -> Box<dyn ToSql + Sync> { Box::new(rows.iter().map(of).collect::<Vec<_>>()) };
    let confidence: Vec<f64> = rows.iter().map(|row| row.confidence).collect();
    let words = rows
        .iter()
        .map(|row| Indexed::of(row).map(|found| found.words()));
    let words: Vec<_> = words.collect();
    vec![
        text(|row| &row.id),
        number(|row| row.key),
        text(|row| &row.scope),
        text(|row| &row.subject),
        text(|row| &row.relation),
        text(|row| &row.object),
        text(|row| &row.statement),
        text(|row| &row.claim),
        text(|row| &row.evidence),
        text(|row| &row.authority),
        Box::new(confidence),
        text(|row| &row.class),
        number(|row| Some(row.sensitivity)),
        text(|row| &row.quality),
        text(|row| &row.truth),
        text(|row| &row.retrieval),
        text(|row| &row.security),
        text(|row| &row.freshness),
        number(|row| Some(row.observed_at)),
        number(|row| Some(row.adopted_at)),
        number(|row| row.due_at),
        some_text(|row| row.server.as_deref()),
        some_text(|row| row.tool.as_deref()),
        number(|row| Some(row.revision)),
        text(|row| &row.project),
        text(|row| &row.session),
        number(|row| Some(row.seq)),
        bytes(|row| &row.leaf),
        text(|row| &row.changed_project),
        text(|row| &row.changed_session),
        number(|row| Some(row.changed_seq)),
        bytes(|row| &row.changed_leaf),
        text(|row| &row.signer),
        bytes(|row| &row.signature),
        bytes(|row| &row.seal),
        Box::new(words),
    ]
}

/// Reads columns one after the other.
struct Reader<'a> {
    row: &'a Row,
    next: usize,
}

type Read<T> = Result<T, postgres::Error>;

impl<'a> Reader<'a> {
    fn take<T: postgres::types::FromSql<'a>>(&mut self) -> Read<T> {
        let at = self.next;
        self.next += 1;
        self.row.try_get(at)
    }

    fn text(&mut self) -> Read<String> {
        self.take().map(from_database)
    }

    fn some_text(&mut self) -> Read<Option<String>> {
        Ok(self.take::<Option<&str>>()?.map(from_database))
    }

    fn hash(&mut self) -> Read<[u8; 32]> {
        self.take().map(hash)
    }
}

/// Reads a row whose columns stand in their order.
pub(super) fn read(row: &Row) -> Read<StoredRow> {
    let mut column = Reader { row, next: 0 };
    Ok(StoredRow {
        id: column.text()?,
        key: column.take()?,
        scope: column.text()?,
        subject: column.text()?,
        relation: column.text()?,
        object: column.text()?,
        statement: column.text()?,
        claim: column.text()?,
        evidence: column.text()?,
        authority: column.text()?,
        confidence: column.take()?,
        class: column.text()?,
        sensitivity: column.take()?,
        quality: column.text()?,
        truth: column.text()?,
        retrieval: column.text()?,
        security: column.text()?,
        freshness: column.text()?,
        observed_at: column.take()?,
        adopted_at: column.take()?,
        due_at: column.take()?,
        server: column.some_text()?,
        tool: column.some_text()?,
        revision: column.take()?,
        project: column.text()?,
        session: column.text()?,
        seq: column.take()?,
        leaf: column.hash()?,
        changed_project: column.text()?,
        changed_session: column.text()?,
        changed_seq: column.take()?,
        changed_leaf: column.hash()?,
        signer: column.text()?,
        signature: column.take()?,
        seal: column.hash()?,
    })
}
