//! The statements that name all columns, written once per connection, and those prepared already.

use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{GenericClient, Row, Statement};

use super::rows::TYPES;
use super::{failed, rows};
use crate::row::StoredRow;
use crate::store::StoreError;
use crate::store::columns::{self, COLUMNS, ELIGIBLE};

/// Statements by their text, prepared at first use: each saves a round trip after that.
#[derive(Default)]
pub(super) struct Prepared(HashMap<String, Statement>);

impl Prepared {
    fn get(
        &mut self,
        client: &mut impl GenericClient,
        text: &str,
    ) -> Result<Statement, StoreError> {
        if let Some(statement) = self.0.get(text) {
            return Ok(statement.clone());
        }
        let statement = client.prepare(text).map_err(failed)?;
        self.0.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn query(
        &mut self,
        client: &mut impl GenericClient,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.get(client, text)?;
        client.query(&statement, params).map_err(failed)
    }

    /// Rows of beliefs.
    pub(super) fn rows(
        &mut self,
        client: &mut impl GenericClient,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<StoredRow>, StoreError> {
        let found = self.query(client, text, params)?;
        found
            .iter()
            .map(|row| rows::read(row).map_err(failed))
            .collect()
    }

    pub(super) fn execute(
        &mut self,
        client: &mut impl GenericClient,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, StoreError> {
        let statement = self.get(client, text)?;
        client.execute(&statement, params).map_err(failed)
    }
}

pub(super) struct Statements {
    pub(super) row: String,
    pub(super) from_id: String,
    pub(super) behind_id: String,
    pub(super) newest: String,
    pub(super) with_words: String,
    /// With the arrival behind the columns.
    pub(super) page: String,
    pub(super) in_phase: String,
    pub(super) due: String,
    pub(super) insert: String,
    pub(super) update: String,
}

impl Statements {
    pub(super) fn new() -> Self {
        let (all, of_row) = (columns::list(""), columns::list("b."));
        Self {
            row: format!("SELECT {all} FROM beliefs WHERE id = $1"),
            from_id: format!("SELECT {all} FROM beliefs WHERE id >= $1 ORDER BY id LIMIT $2"),
            behind_id: format!("SELECT {all} FROM beliefs WHERE id > $1 ORDER BY id LIMIT $2"),
            // Per scope, so that each is read in the order of its index.
            newest: format!(
                "SELECT {of_row} FROM unnest($1::text[]) AS asked (scope)
                 CROSS JOIN LATERAL (SELECT * FROM beliefs AS own
                     WHERE own.scope = asked.scope AND observed_at >= $2 AND sensitivity <= $3
                     AND {ELIGIBLE} ORDER BY n DESC LIMIT $4) AS b
                 ORDER BY b.n DESC LIMIT $4"
            ),
            with_words: format!(
                "SELECT {all} FROM beliefs WHERE words @> $5 AND words IS NOT NULL
                 AND scope = ANY($1) AND observed_at >= $2 AND sensitivity <= $3 AND {ELIGIBLE}
                 ORDER BY n DESC LIMIT $4"
            ),
            page: format!(
                "SELECT {all}, n FROM beliefs WHERE n < $1
                 AND ($2::text IS NULL OR truth = $2) AND ($3::text IS NULL OR retrieval = $3)
                 AND ($4::text IS NULL OR security = $4) AND ($5::text IS NULL OR freshness = $5)
                 AND ($6::text IS NULL OR session = $6)
                 AND ($7::text[] IS NULL OR scope = ANY($7)) ORDER BY n DESC LIMIT $8"
            ),
            in_phase: format!(
                "SELECT {all} FROM beliefs WHERE key = $1 AND phase = $2 AND scope = $3
                 AND subject = $4 AND relation = $5 ORDER BY n DESC LIMIT $6"
            ),
            due: format!(
                "SELECT {all} FROM beliefs WHERE due_at <= $1 ORDER BY due_at, n LIMIT $2"
            ),
            insert: format!(
                "INSERT INTO beliefs ({all}, words)
                 SELECT {all}, string_to_array(words, ' ')
                 FROM unnest({}) WITH ORDINALITY AS given ({all}, words, place) ORDER BY place
                 ON CONFLICT (id) DO NOTHING RETURNING id",
                lists()
            ),
            update: format!(
                "UPDATE beliefs SET ({all}, words) =
                     (SELECT {all}, string_to_array(words, ' ') FROM unnest({}) AS given ({all}, words))
                 WHERE id = ($1::text[])[1] AND revision = ($24::bigint[])[1] - 1",
                lists()
            ),
        }
    }
}

/// One list per column, as parameters.
fn lists() -> String {
    debug_assert_eq!(TYPES.len(), COLUMNS.len() + 1);
    let lists = TYPES.iter().zip(1..);
    let lists = lists.map(|(kind, n)| format!("${n}::{kind}[]"));
    lists.collect::<Vec<_>>().join(", ")
}
