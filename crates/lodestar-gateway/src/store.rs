//! What the gateway keeps, in SQLite or PostgreSQL.
//!
//! SQL is written once, over [`Sql`]; the two databases differ in how a connection is made ([`sqlite`],
//! [`postgres`]) and in how they hold to what must be true. They do that themselves: a level moves only with
//! a transition of the table, nothing of one account hangs on another's, and what was attested, evaluated or
//! earned is never changed. Code that forgets a rule is refused, and so is whoever comes past the code.
//!
//! | module | tables |
//! |---|---|
//! | [`accounts`], [`tokens`] | who owns what, and what they may show |
//! | [`devices`], [`levels`], [`keys`], [`challenges`] | machines, how far each is trusted, and by which key |
//! | [`nonces`], [`strikes`] | what was seen before, and what counts against a device; both are forgotten in time |
//! | [`orders`] | what owners signed and was obeyed |
//! | [`agents`], [`runners`], [`bindings`] | in whose name runs are made, and by what |
//! | [`terms`], [`runs`], [`bundles`] | what was registered, what was sent while it ran and after |
//! | [`attestations`], [`evaluations`] | a device's word, and what the gateway made of it |
//! | [`battles`], [`submissions`], [`effects`] | contests, work handed in, and what it earned |
//! | [`control`], [`outbox`] | the kill switch; events that are not in the log yet |

pub mod accounts;
pub mod agents;
pub mod attestations;
pub mod battles;
pub mod bindings;
pub mod bundles;
pub mod challenges;
pub mod control;
pub mod devices;
pub mod effects;
pub mod evaluations;
pub mod keys;
pub mod levels;
pub mod nonces;
pub mod orders;
pub mod outbox;
pub mod postgres;
pub mod runners;
pub mod runs;
mod schema;
mod sql;
pub mod sqlite;
pub mod strikes;
pub mod submissions;
pub mod terms;
pub mod tokens;
mod value;
mod words;

use thiserror::Error;

pub use postgres::PostgresSql;
pub use sql::{Sql, attempt, transaction};
pub use sqlite::SqliteSql;
pub use value::{FromValue, Row, Value};

/// Why the store could not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store cannot be opened.
    #[error("the gateway's store at `{place}` cannot be opened: {problem}")]
    Open {
        /// Which.
        place: String,
        /// Why.
        problem: String,
    },
    /// Another service has it.
    #[error("the gateway's store at `{place}` is in use by another service")]
    InUse {
        /// Which.
        place: String,
    },
    /// A newer program wrote it.
    #[error(
        "the gateway's store has schema version {found}; this program knows versions up to {known}: use the newer program"
    )]
    TooNew {
        /// Its version.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// The database holds to its rules, and this would have broken one.
    #[error("the database refused: {0}")]
    Refused(String),
    /// A row that this program cannot have written.
    #[error("a row of the database cannot be read: column {column}: {problem}")]
    Unreadable {
        /// Counted from 1.
        column: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The database failed.
    #[error("the gateway's store failed: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    fn database(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Database(error.into())
    }
}

/// Opens the store that `place` names: a `postgres://` address, or the path of a SQLite file.
pub fn open(place: &str) -> Result<Box<dyn Sql>, StoreError> {
    match postgres::is_address(place) {
        true => Ok(Box::new(PostgresSql::connect(place, None)?)),
        false => Ok(Box::new(SqliteSql::open(place.as_ref())?)),
    }
}
