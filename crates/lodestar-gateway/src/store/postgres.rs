//! The gateway's store in a schema of a PostgreSQL database, which one service has for itself.
//!
//! Two roles keep it. One owns the schema and makes the tables; it is used for that and for nothing else. The other is
//! `<schema>_runtime`: it reads and writes rows, as far as [`schema`] grants, cannot change what there is, and sees the
//! rows of one account at a time. The first connection makes both. It may be the owner's ever after, since it takes the
//! other role on before it does anything; a service that should not be able to take it off again is given a login that
//! is a member of the second role only, such as `CREATE ROLE gateway LOGIN IN ROLE lodestar_gateway_runtime`.
//!
//! It connects without TLS, and therefore to this machine only: by a Unix socket or a loopback address. A server
//! elsewhere is reached through a tunnel, such as `ssh -L`.

mod schema;
mod value;

use std::collections::HashMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use lodestar_core::id::AccountId;
use lodestar_firewall::database::{BadPlace, Connection, Place, whole};
use postgres::types::ToSql;
use postgres::{Client, NoTls, Statement};

use super::{Row, Sql, StoreError, Value};

/// The schema, unless another is named.
const SCHEMA: &str = "lodestar_gateway";

/// What the name of the runtime role adds to that of the schema.
const RUNTIME: &str = "_runtime";

/// The first of the two numbers that name our lock among those of other programs, `LODG`; the second comes from the
/// schema, so that services of one database do not exclude each other.
const LOCK: i32 = 0x4C4F_4447;

/// How long to wait for the lock: the server may still be letting go of a connection that just ended.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// Whether text names a PostgreSQL database, and not a file.
pub fn is_address(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://") || place.contains("host=")
}

/// A connection to a PostgreSQL database.
pub struct PostgresSql {
    place: Place,
    client: Connection,
    prepared: HashMap<&'static str, Statement>,
    within: bool,
}

impl fmt::Debug for PostgresSql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresSql").field(&self.place.shown).finish()
    }
}

impl From<BadPlace> for StoreError {
    fn from(bad: BadPlace) -> Self {
        Self::Open {
            place: bad.place,
            problem: bad.problem,
        }
    }
}

/// Constraints, triggers, rights and row-level security are the database's rules; the rest is failure.
fn failed(error: postgres::Error) -> StoreError {
    let refused = error.as_db_error().filter(|known| {
        let code = known.code().code();
        code.starts_with("23") || code == "42501"
    });
    match refused {
        Some(known) => StoreError::Refused(known.message().to_owned()),
        None => StoreError::database(whole(&error)),
    }
}

impl PostgresSql {
    /// Connects, makes the schema if it is not there and this login may, and takes the runtime role on.
    ///
    /// `url` is a connection string such as `postgres://user@localhost/gateway`; `schema` is `lodestar_gateway` unless
    /// said otherwise. A second service is refused.
    pub fn connect(url: &str, schema: Option<&str>) -> Result<Self, StoreError> {
        let place = Place::of(url, schema.unwrap_or(SCHEMA))?;
        if place.schema.len() + RUNTIME.len() > MAX_NAME {
            return Err(place.refused("the name of the schema is too long").into());
        }
        let client = connect(&place)?;
        Ok(Self {
            place,
            client,
            prepared: HashMap::new(),
            within: false,
        })
    }

    fn prepared(&mut self, text: &'static str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.prepared.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text).map_err(failed)?;
        self.prepared.insert(text, statement.clone());
        Ok(statement)
    }

    fn run(&mut self, text: &str) -> Result<(), StoreError> {
        self.client.batch_execute(text).map_err(failed)
    }
}

/// PostgreSQL cuts longer names off.
const MAX_NAME: usize = 63;

fn connect(place: &Place) -> Result<Connection, StoreError> {
    let open = || -> Result<Connection, StoreError> {
        let mut client = Connection::from(place.config.connect(NoTls).map_err(failed)?);
        let encoding = client.query_one("SHOW server_encoding", &[]).map_err(failed)?;
        if encoding.get::<_, &str>(0) != "UTF8" {
            let problem = "the database is not in UTF-8; create one with ENCODING 'UTF8'";
            return Err(place.refused(problem).into());
        }
        schema::prepare(&mut client, place)?;
        claim(&mut client, place)?;
        Ok(client)
    };
    open().map_err(|error| match error {
        StoreError::Database(problem) => place.refused(&problem.to_string()).into(),
        StoreError::Refused(problem) => place.refused(&problem).into(),
        other => other,
    })
}

/// Takes the lock that a service holds for as long as it is connected.
fn claim(client: &mut Client, place: &Place) -> Result<(), StoreError> {
    let begun = Instant::now();
    loop {
        let row = client
            .query_one(
                "SELECT pg_try_advisory_lock($1, hashtext($2))",
                &[&LOCK, &place.schema],
            )
            .map_err(failed)?;
        if row.get(0) {
            return Ok(());
        }
        if begun.elapsed() > LOCK_WAIT {
            return Err(StoreError::InUse {
                place: place.shown.clone(),
            });
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn params<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as _).collect()
}

/// In nobody's name.
const NOBODY: &str =
    "SELECT set_config('lodestar.account', '', true), set_config('lodestar.role', '', true)";

impl Sql for PostgresSql {
    fn describe(&self) -> String {
        format!("PostgreSQL, {}", self.place.shown)
    }

    fn execute(&mut self, text: &'static str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let statement = self.prepared(text)?;
        self.client
            .execute(&statement, &params(values))
            .map_err(failed)
    }

    fn query(&mut self, text: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepared(text)?;
        let found = self
            .client
            .query(&statement, &params(values))
            .map_err(failed)?;
        found.iter().map(value::row).collect()
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        // A server that was restarted is no reason to restart too.
        if self.client.is_closed() {
            self.prepared.clear();
            self.client = connect(&self.place)?;
        }
        self.run("BEGIN")?;
        self.within = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.within = false;
        self.run("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        match std::mem::take(&mut self.within) && !self.client.is_closed() {
            true => self.run("ROLLBACK"),
            false => Ok(()),
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        self.run(&format!("SAVEPOINT attempt; {NOBODY}"))
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.run(&format!("RELEASE SAVEPOINT attempt; {NOBODY}"))
    }

    fn rollback_to(&mut self) -> Result<(), StoreError> {
        self.run(&format!(
            "ROLLBACK TO SAVEPOINT attempt; RELEASE SAVEPOINT attempt; {NOBODY}"
        ))
    }

    fn act_for(&mut self, account: AccountId) -> Result<(), StoreError> {
        self.query(
            "SELECT set_config('lodestar.account', $1, true), set_config('lodestar.role', '', true)",
            &[account.into()],
        )
        .map(drop)
    }

    fn act_as_server(&mut self) -> Result<(), StoreError> {
        self.query(
            "SELECT set_config('lodestar.account', '', true), set_config('lodestar.role', 'server', true)",
            &[],
        )
        .map(drop)
    }
}
