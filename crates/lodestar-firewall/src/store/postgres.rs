//! The store that many machines share: a schema in a PostgreSQL database.
//!
//! Readers never wait. Writers of one store come one after another, by a lock that each transaction
//! takes first: a change is decided by what stands there, so two at once could only conflict.
//!
//! It connects without TLS, and therefore to this machine only: by a Unix socket or a loopback
//! address. A server elsewhere is reached through a tunnel, such as `ssh -L`.

mod ledger;
mod rows;
mod schema;
mod statements;
mod writing;

pub use ledger::PostgresLedger;

use std::collections::BTreeSet;
use std::fmt;

use lodestar_core::id::BeliefId;
use postgres::NoTls;
use postgres::types::ToSql;

use super::{
    AppliedLog, ContextQuery, Disputes, HistoryRow, ListQuery, Store, StoreError, Tally, Verdict,
    Writing, columns, guard, query,
};
use crate::database::{BadPlace, Connection, Place, from_database, to_database, whole};
use crate::event::Contradiction;
use crate::row::StoredRow;
use statements::{Prepared, Statements};

/// The schema, unless another is named.
const SCHEMA: &str = "lodestar";

/// Rows that a list is read by. One page is enough for what people look at.
const PAGE: usize = 256;

/// Rows in a PostgreSQL database.
pub struct PostgresStore {
    place: Place,
    client: Connection,
    prepared: Prepared,
    statements: Statements,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore")
            .field(&self.describe())
            .finish()
    }
}

/// The error with everything beneath it; the database's own words are there.
fn failed(error: postgres::Error) -> StoreError {
    StoreError::database(whole(&error))
}

impl From<BadPlace> for StoreError {
    fn from(bad: BadPlace) -> Self {
        Self::Open {
            place: bad.place,
            problem: bad.problem,
        }
    }
}

impl PostgresStore {
    /// Connects, and makes the schema or brings it to the version known here.
    ///
    /// `url` is a connection string such as `postgres://user@localhost/beliefs`; `schema` is `lodestar`
    /// unless said otherwise.
    pub fn connect(url: &str, schema: Option<&str>) -> Result<Self, StoreError> {
        let place = Place::of(url, schema.unwrap_or(SCHEMA))?;
        let client = connect(&place)?;
        Ok(Self {
            place,
            client,
            prepared: Prepared::default(),
            statements: Statements::new(),
        })
    }

    /// A server that was restarted is no reason to restart too.
    fn revive(&mut self) -> Result<(), StoreError> {
        if self.client.is_closed() {
            self.prepared = Prepared::default();
            self.client = connect(&self.place)?;
        }
        Ok(())
    }

    fn rows(
        &mut self,
        text: fn(&Statements) -> &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<StoredRow>, StoreError> {
        self.revive()?;
        let text = text(&self.statements);
        self.prepared.rows(&mut *self.client, text, params)
    }

    fn query(
        &mut self,
        text: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<postgres::Row>, StoreError> {
        self.revive()?;
        self.prepared.query(&mut *self.client, text, params)
    }
}

fn connect(place: &Place) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, StoreError> {
        let mut client = Connection::from(place.config.connect(NoTls).map_err(failed)?);
        let encoding = client
            .query_one("SHOW server_encoding", &[])
            .map_err(failed)?;
        if encoding.get::<_, &str>(0) != "UTF8" {
            return Err(
                place.refused("the database is not in UTF-8; create one with ENCODING 'UTF8'").into()
            );
        }
        client
            .batch_execute(&format!("SET search_path TO \"{}\"", place.schema))
            .map_err(failed)?;
        schema::prepare(&mut client, &place.schema)?;
        Ok(client)
    };
    open().map_err(|error| match error {
        StoreError::Database(problem) => place.refused(&problem.to_string()).into(),
        other => other,
    })
}

impl Store for PostgresStore {
    fn describe(&self) -> String {
        format!("PostgreSQL, {}", self.place.shown)
    }

    fn write(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Writing) -> Result<Verdict, StoreError>,
    ) -> Result<(), StoreError> {
        self.revive()?;
        let mut transaction = self.client.transaction().map_err(failed)?;
        schema::lock(&mut transaction, &self.place.schema)?;
        let mut writer = writing::Writer {
            transaction: &mut transaction,
            statements: &self.statements,
            prepared: &mut self.prepared,
        };
        match guard::run(&mut writer, work)? {
            Verdict::Commit => transaction.commit().map_err(failed),
            Verdict::Rollback => transaction.rollback().map_err(failed),
        }
    }

    fn row(&mut self, id: &BeliefId) -> Result<Option<StoredRow>, StoreError> {
        Ok(self.rows(|of| &of.row, &[&id.to_string()])?.pop())
    }

    fn rows_starting(&mut self, prefix: &str, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        let params: [&(dyn ToSql + Sync); 2] = [&to_database(prefix), &query::limit(limit)];
        let mut rows = self.rows(|of| &of.from_id, &params)?;
        rows.retain(|row| row.id.starts_with(prefix));
        Ok(rows)
    }

    fn context(&mut self, query: &ContextQuery) -> Result<Vec<StoredRow>, StoreError> {
        if query::is_void(query) {
            return Ok(Vec::new());
        }
        let scopes: BTreeSet<_> = query.scopes.iter().map(|s| to_database(s)).collect();
        let scopes: Vec<_> = scopes.into_iter().collect();
        let not_before = query.not_before.unix_micros();
        let ceiling = query.ceiling as i64;
        let limit = query::limit(query.limit);
        let params: [&(dyn ToSql + Sync); 5] =
            [&scopes, &not_before, &ceiling, &limit, &query.words];
        match query.words.is_empty() {
            true => self.rows(|of| &of.newest, &params[..4]),
            false => self.rows(|of| &of.with_words, &params),
        }
    }

    fn list(&mut self, query: &ListQuery) -> Result<Vec<StoredRow>, StoreError> {
        self.revive()?;
        let session = query.session.as_deref().map(to_database);
        let scopes: Option<Vec<_>> = query
            .scopes
            .as_ref()
            .map(|scopes| scopes.iter().map(|scope| to_database(scope)).collect());
        let mut before = i64::MAX;
        let mut found = Vec::new();
        while found.len() < query.limit {
            let params: [&(dyn ToSql + Sync); 8] = [
                &before,
                &query.truth.map(|word| word.as_str()),
                &query.retrieval.map(|word| word.as_str()),
                &query.security.map(|word| word.as_str()),
                &query.freshness.map(|word| word.as_str()),
                &session,
                &scopes,
                &query::limit(PAGE),
            ];
            let text = &self.statements.page;
            let page = self.prepared.query(&mut *self.client, text, &params)?;
            let Some(last) = page.last() else { break };
            before = last.get("n");
            for row in &page {
                let row = rows::read(row).map_err(failed)?;
                if query::is_listed(&row, query) {
                    found.push(row);
                }
            }
        }
        found.truncate(query.limit);
        Ok(found)
    }

    fn disputes(
        &mut self,
        beliefs: &[BeliefId],
        limit: usize,
    ) -> Result<Vec<Disputes>, StoreError> {
        let asked: Vec<_> = beliefs.iter().map(BeliefId::to_string).collect();
        let rows = self.query(
            "SELECT asked.place, found.against
             FROM unnest($1::text[]) WITH ORDINALITY AS asked (belief, place)
             CROSS JOIN LATERAL (SELECT against FROM contradictions AS own
                 WHERE own.belief = asked.belief ORDER BY against DESC LIMIT $2) AS found
             ORDER BY asked.place, found.against DESC",
            &[&asked, &query::limit(limit.saturating_add(1))],
        )?;
        let mut found = Vec::new();
        for (belief, place) in beliefs.iter().zip(1_i64..) {
            let own = rows.iter().filter(|row| row.get::<_, i64>(0) == place);
            let against: Vec<String> = own.map(|row| row.get(1)).collect();
            found.extend(query::disputes(*belief, &against, limit)?);
        }
        Ok(found)
    }

    fn history(&mut self, belief: &BeliefId) -> Result<Vec<HistoryRow>, StoreError> {
        let rows = self.query(
            "SELECT change, project, session, seq, leaf FROM history WHERE belief = $1
             ORDER BY revision",
            &[&belief.to_string()],
        )?;
        let read = |row: &postgres::Row| {
            let change = from_database(row.get(0));
            let leaf = columns::hash(row.get(4));
            columns::history(&change, row.get(1), row.get(2), row.get(3), leaf)
        };
        rows.iter().map(read).collect()
    }

    fn scan(&mut self, after: Option<&str>, limit: usize) -> Result<Vec<StoredRow>, StoreError> {
        // No id is empty.
        let after = to_database(after.unwrap_or_default());
        self.rows(|of| &of.behind_id, &[&after, &query::limit(limit)])
    }

    fn scan_contradictions(
        &mut self,
        after: Option<Contradiction>,
        limit: usize,
    ) -> Result<Vec<Contradiction>, StoreError> {
        let (belief, against) = match after {
            Some(after) => (after.belief.to_string(), after.against.to_string()),
            None => Default::default(),
        };
        let rows = self.query(
            "SELECT belief, against FROM contradictions WHERE (belief, against) > ($1, $2)
             ORDER BY belief, against LIMIT $3",
            &[&belief, &against, &query::limit(limit)],
        )?;
        let read = |row: &postgres::Row| query::contradiction((row.get(0), row.get(1)));
        rows.iter().map(read).collect()
    }

    fn logs(&mut self) -> Result<Vec<AppliedLog>, StoreError> {
        let rows = self.query(
            "SELECT signer, project, session, next FROM logs ORDER BY signer, project, session",
            &[],
        )?;
        let read = |row: &postgres::Row| {
            let signer = from_database(row.get(0));
            columns::applied(signer, row.get(1), row.get(2), row.get(3))
        };
        rows.iter().map(read).collect()
    }

    fn tally(&mut self) -> Result<Vec<Tally>, StoreError> {
        let rows = self.query(
            "SELECT truth, retrieval, security, freshness, count(*) FROM beliefs
             GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
            &[],
        )?;
        let read = |row: &postgres::Row| Tally {
            truth: from_database(row.get(0)),
            retrieval: from_database(row.get(1)),
            security: from_database(row.get(2)),
            freshness: from_database(row.get(3)),
            rows: row.get::<_, i64>(4).cast_unsigned(),
        };
        Ok(rows.iter().map(read).collect())
    }
}
