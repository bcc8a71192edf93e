//! The PostgreSQL schema and its versions.

use postgres::{Client, Transaction};

use super::failed;
use crate::store::StoreError;

/// The first of the two numbers that name our lock among those of other programs; the second comes
/// from the schema, so that stores in one database do not wait for each other.
pub(super) const LOCK: i32 = 0x4C4F_4445;

/// What each version adds to the one before.
const MIGRATIONS: [&str; 2] = [FIRST, CONFIRMATIONS];

/// The newest version known here.
pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Makes sure of the schema and of its version; several programs may come at once.
pub(super) fn prepare(client: &mut Client, schema: &str) -> Result<(), StoreError> {
    let mut transaction = client.transaction().map_err(failed)?;
    lock(&mut transaction, schema)?;
    let there = transaction
        .query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&schema])
        .map_err(failed)?;
    // Asked first, since `IF NOT EXISTS` needs the right to create even where nothing is created.
    if there.is_none() {
        transaction
            .batch_execute(&format!("CREATE SCHEMA \"{schema}\""))
            .map_err(failed)?;
    }
    let found = version(&mut transaction)?;
    if found > KNOWN {
        return Err(StoreError::TooNew {
            found,
            known: KNOWN,
        });
    }
    let done = usize::try_from(found).unwrap_or_default();
    for migration in &MIGRATIONS[done..] {
        transaction.batch_execute(migration).map_err(failed)?;
    }
    if found < KNOWN {
        transaction
            .execute("UPDATE schema_version SET version = $1", &[&KNOWN])
            .map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Waits until no other writer of this store is at work; until the transaction ends, none comes.
pub(super) fn lock(transaction: &mut Transaction<'_>, schema: &str) -> Result<(), StoreError> {
    // One writer that hangs must not stop all others for ever.
    transaction
        .batch_execute("SET LOCAL lock_timeout = '30s'")
        .map_err(failed)?;
    transaction
        .execute(
            "SELECT pg_advisory_xact_lock($1, hashtext($2))",
            &[&LOCK, &schema],
        )
        .map(drop)
        .map_err(failed)
}

/// The version that is there; 0 for none.
fn version(transaction: &mut Transaction<'_>) -> Result<i64, StoreError> {
    let there = transaction
        .query_one("SELECT to_regclass('schema_version') IS NOT NULL", &[])
        .map_err(failed)?;
    if !there.get::<_, bool>(0) {
        transaction
            .batch_execute(
                "CREATE TABLE schema_version (version bigint NOT NULL);
                 INSERT INTO schema_version VALUES (0)",
            )
            .map_err(failed)?;
    }
    let row = transaction
        .query_one("SELECT version FROM schema_version", &[])
        .map_err(failed)?;
    Ok(row.get(0))
}

/// `n` is the order of arrival; writers come one after another, so it is that of commits too.
/// `phase` tells apart what the firewall looks for by key. `words` are those of eligible rows, and
/// null for all others: gated content is in no index. They are a list and not a search vector, which
/// ends at a megabyte. Text compares by bytes, as everywhere else.
const FIRST: &str = r#"
CREATE TABLE beliefs (
    n bigserial PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    key bigint,
    scope text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    statement text COLLATE "C" NOT NULL,
    claim text COLLATE "C" NOT NULL,
    evidence text COLLATE "C" NOT NULL,
    authority text COLLATE "C" NOT NULL,
    confidence double precision NOT NULL,
    class text COLLATE "C" NOT NULL,
    sensitivity bigint NOT NULL,
    quality text COLLATE "C" NOT NULL,
    truth text COLLATE "C" NOT NULL,
    retrieval text COLLATE "C" NOT NULL,
    security text COLLATE "C" NOT NULL,
    freshness text COLLATE "C" NOT NULL,
    observed_at bigint NOT NULL,
    adopted_at bigint NOT NULL,
    due_at bigint,
    server text COLLATE "C",
    tool text COLLATE "C",
    revision bigint NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    leaf bytea NOT NULL,
    changed_project text COLLATE "C" NOT NULL,
    changed_session text COLLATE "C" NOT NULL,
    changed_seq bigint NOT NULL,
    changed_leaf bytea NOT NULL,
    signer text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    seal bytea NOT NULL,
    words text[] COLLATE "C",
    phase smallint GENERATED ALWAYS AS (CASE truth
        WHEN 'unverified' THEN 0
        WHEN 'supported' THEN 1
        WHEN 'contradicted' THEN 1
        ELSE 2 END) STORED
);
CREATE INDEX beliefs_by_key ON beliefs (key, phase, n) WHERE key IS NOT NULL;
CREATE INDEX beliefs_by_due ON beliefs (due_at, n) WHERE due_at IS NOT NULL;
CREATE INDEX beliefs_by_scope ON beliefs (scope, n)
    WHERE truth = 'supported' AND retrieval = 'normal' AND security = 'clean' AND freshness <> 'expired';
CREATE INDEX beliefs_by_words ON beliefs USING gin (words) WHERE words IS NOT NULL;
CREATE TABLE history (
    belief text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    change text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    leaf bytea NOT NULL,
    PRIMARY KEY (belief, revision)
);
CREATE TABLE contradictions (
    belief text COLLATE "C" NOT NULL,
    against text COLLATE "C" NOT NULL,
    PRIMARY KEY (belief, against)
);
CREATE TABLE logs (
    signer text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    next bigint NOT NULL,
    PRIMARY KEY (signer, project, session)
);
"#;

/// Who spent which confirmation: an entry is made once and never changed.
const CONFIRMATIONS: &str = r#"
CREATE TABLE confirmations (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    statement text COLLATE "C" NOT NULL,
    operator text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    spent_at bigint NOT NULL
);
"#;
