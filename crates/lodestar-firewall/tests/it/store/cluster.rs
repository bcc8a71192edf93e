//! Schemas of a real PostgreSQL, one for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use lodestar_firewall::store::PostgresStore;
use postgres::{Client, NoTls};

use super::server::url;

/// A schema of a server, empty at first and dropped at last.
pub(crate) struct Schema {
    name: String,
}

impl Schema {
    /// `None` where there is no PostgreSQL, after saying so.
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        url()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Some(Self {
            name: format!("test_{}_{count}", std::process::id()),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> &'static str {
        url().expect("a schema is made where a server is")
    }

    pub(crate) fn open(&self) -> PostgresStore {
        PostgresStore::connect(self.url(), Some(&self.name)).unwrap()
    }

    /// A way past the store.
    pub(crate) fn client(&self) -> Client {
        let mut client = Client::connect(self.url(), NoTls).unwrap();
        let path = format!("SET search_path TO {}", self.name);
        client.batch_execute(&path).unwrap();
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        let _ = Client::connect(self.url(), NoTls).and_then(|mut c| c.batch_execute(&drop));
    }
}
