//! Both databases, empty, with a way past the store: as the role that serves requests, or a shell on the file.

use std::sync::atomic::{AtomicU32, Ordering};

use lodestar_gateway::store::{PostgresSql, Sql, SqliteSql};
use postgres::{Client, NoTls};
use tempfile::TempDir;

use super::server;

/// A database of its own.
pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres(Schema),
}

/// A schema with its runtime role and a login that is a member of that role and of nothing else.
pub(crate) struct Schema {
    name: String,
    url: &'static str,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// `None` where there is no PostgreSQL, after saying so.
    pub(crate) fn postgres() -> Option<Self> {
        Schema::new().map(Self::Postgres)
    }

    pub(crate) fn open(&self) -> Box<dyn Sql> {
        match self {
            Self::Sqlite(folder) => {
                Box::new(SqliteSql::open(&folder.path().join("gateway.db")).unwrap())
            }
            Self::Postgres(schema) => Box::new(schema.open()),
        }
    }

    /// A way past the store. The store has to be open, or to have been.
    pub(crate) fn direct(&self) -> Direct {
        match self {
            Self::Sqlite(folder) => {
                let path = folder.path().join("gateway.db");
                let connection = rusqlite::Connection::open(path).unwrap();
                // As a shell has it: what holds must not hang on a setting of the connection.
                connection.pragma_update(None, "foreign_keys", false).unwrap();
                Direct::Sqlite(connection)
            }
            Self::Postgres(schema) => Direct::Postgres(schema.login()),
        }
    }
}

impl Schema {
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let url = server::url()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gateway_{}_{count}", std::process::id());
        Some(Self { name, url })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> &'static str {
        self.url
    }

    pub(crate) fn open(&self) -> PostgresSql {
        PostgresSql::connect(self.url, Some(&self.name)).unwrap()
    }

    /// As whoever owns the server.
    pub(crate) fn client(&self) -> Client {
        let mut client = Client::connect(self.url, NoTls).unwrap();
        let path = format!("SET search_path TO {}", self.name);
        client.batch_execute(&path).unwrap();
        client
    }

    /// The address of the login, which is made if it is not there.
    pub(crate) fn login_url(&self) -> String {
        let Self { name, .. } = self;
        let make = format!(
            "DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{name}_login') THEN
             CREATE ROLE {name}_login LOGIN IN ROLE {name}_runtime; END IF; END $$"
        );
        self.client().batch_execute(&make).unwrap();
        let url: Vec<_> = self.url.split(' ').map(|part| match part.split_once('=') {
            Some(("user", _)) => format!("user={name}_login"),
            _ => part.to_owned(),
        });
        url.join(" ")
    }

    fn login(&self) -> Client {
        let mut client = Client::connect(&self.login_url(), NoTls).unwrap();
        let path = format!("SET search_path TO {}", self.name);
        client.batch_execute(&path).unwrap();
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let Self { name, url } = self;
        let drop = format!(
            "DROP SCHEMA IF EXISTS {name} CASCADE; DROP ROLE IF EXISTS {name}_login;
             DROP ROLE IF EXISTS {name}_runtime"
        );
        let _ = Client::connect(url, NoTls).and_then(|mut c| c.batch_execute(&drop));
    }
}

/// In whose name statements go past the store.
#[derive(Debug, Clone, Copy)]
pub(crate) enum As<'a> {
    Server,
    Account(&'a str),
    Nobody,
}

/// A connection past the store.
pub(crate) enum Direct {
    Sqlite(rusqlite::Connection),
    Postgres(Client),
}

impl Direct {
    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    pub(crate) fn begin(&mut self, who: As<'_>) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("BEGIN IMMEDIATE").unwrap(),
            Self::Postgres(client) => {
                let (account, role) = match who {
                    As::Server => ("", "server"),
                    As::Account(account) => (account, ""),
                    As::Nobody => ("", ""),
                };
                client.batch_execute("BEGIN").unwrap();
                let text = "SELECT set_config('lodestar.account', $1, true), set_config('lodestar.role', $2, true)";
                client.query(text, &[&account, &role]).unwrap();
            }
        }
    }

    pub(crate) fn rollback(&mut self) {
        self.run("ROLLBACK").unwrap();
    }

    /// How many rows a statement changed, or what the database says.
    pub(crate) fn run(&mut self, text: &str) -> Result<u64, String> {
        match self {
            Self::Sqlite(connection) => connection
                .execute(text, [])
                .map(|changed| changed as u64)
                .map_err(|error| error.to_string()),
            Self::Postgres(client) => client.execute(text, &[]).map_err(|error| {
                let known = error.as_db_error();
                known.map_or_else(|| error.to_string(), |known| known.message().to_owned())
            }),
        }
    }

    /// What a statement does in a transaction that is taken back.
    pub(crate) fn attempt(&mut self, before: &[String], text: &str) -> Result<u64, String> {
        self.begin(As::Server);
        for statement in before {
            let done = self.run(statement);
            assert!(done.is_ok(), "`{statement}` prepares: {done:?}");
        }
        let outcome = self.run(text);
        self.rollback();
        outcome
    }

    /// The only number that a question has for an answer.
    pub(crate) fn number(&mut self, text: &str) -> i64 {
        match self {
            Self::Sqlite(connection) => connection.query_row(text, [], |row| row.get(0)).unwrap(),
            Self::Postgres(client) => client.query_one(text, &[]).unwrap().get(0),
        }
    }
}

/// Runs on both; all of PostgreSQL in one go, since each test may be a process of its own with a server of its own.
pub(crate) fn on_both(test: impl Fn(&Place)) {
    test(&Place::sqlite());
    if let Some(place) = Place::postgres() {
        test(&place);
    }
}
