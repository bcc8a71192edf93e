//! Runs as they were registered, and the checkpoints that came while they went on.

use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, ContenderId, DeviceId, RunId, RunnerId, TermsId};
use lodestar_core::name::SessionId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, count, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which.
    pub id: RunId,
    /// Whose.
    pub account: AccountId,
    /// The device that registered it.
    pub device: DeviceId,
    /// What makes it.
    pub runner: RunnerId,
    /// In whose name.
    pub agent: ContenderId,
    /// What it is judged by.
    pub terms: TermsId,
    /// The policy of those terms.
    pub policy: Digest,
    /// What the log's opening has to name: nobody knew it before.
    pub nonce: Nonce,
    /// SHA-256 of the canonical workflow file.
    pub workflow_hash: Option<Digest>,
    /// SHA-256 of the task and prompt files.
    pub lens_hash: Option<Digest>,
    /// When.
    pub registered_at: Timestamp,
}

impl Columns for Run {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            device: row.read()?,
            runner: row.read()?,
            agent: row.read()?,
            terms: row.read()?,
            policy: row.read()?,
            nonce: row.read()?,
            workflow_hash: row.read()?,
            lens_hash: row.read()?,
            registered_at: row.read()?,
        })
    }
}

/// Registers a run; `false` if there is one with this id or nonce.
///
/// Refused by the database if device, runner, agent or terms are another account's, if the terms are younger than
/// the run, or if the device is gone for good.
pub fn add(sql: &mut dyn Sql, run: &Run) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, workflow_hash, lens_hash, registered_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
        values![
            run.id,
            run.account,
            run.device,
            run.runner,
            run.agent,
            run.terms,
            run.policy,
            run.nonce,
            run.workflow_hash,
            run.lens_hash,
            run.registered_at
        ],
    )
}

/// One run.
pub fn get(sql: &mut dyn Sql, id: RunId) -> Result<Option<Run>, StoreError> {
    one(
        sql,
        "SELECT id, account, device, runner, agent, terms, policy, nonce, workflow_hash, lens_hash, registered_at
         FROM runs WHERE id = $1",
        values![id],
    )
}

/// Runs of an account in the order of their ids, which is that of their making, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<RunId>,
    at_most: usize,
) -> Result<Vec<Run>, StoreError> {
    all(
        sql,
        "SELECT id, account, device, runner, agent, terms, policy, nonce, workflow_hash, lens_hash, registered_at
         FROM runs WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}

/// Which session a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSession {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub account: AccountId,
    /// The session.
    pub session: SessionId,
    /// Since when that is known, by the server's clock.
    pub since: Timestamp,
}

impl Columns for RunSession {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            run: row.read()?,
            account: row.read()?,
            session: row.read()?,
            since: row.read()?,
        })
    }
}

/// Notes which session a run is; `false` if the run is one already, or the session another run of the account.
pub fn name_session(sql: &mut dyn Sql, named: &RunSession) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO run_sessions (run, account, session, since) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        values![named.run, named.account, named.session.clone(), named.since],
    )
}

/// Which session a run is, once that is known.
pub fn session(sql: &mut dyn Sql, run: RunId) -> Result<Option<RunSession>, StoreError> {
    one(
        sql,
        "SELECT run, account, session, since FROM run_sessions WHERE run = $1",
        values![run],
    )
}

/// How far a run's log had come when the server heard of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCheckpoint {
    /// Of which run.
    pub run: RunId,
    /// Events in the log.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// The signed note, as it came.
    pub note: String,
    /// When, by the server's clock.
    pub received_at: Timestamp,
}

impl Columns for RunCheckpoint {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            run: row.read()?,
            size: row.read()?,
            root: row.read()?,
            note: row.read()?,
            received_at: row.read()?,
        })
    }
}

/// Keeps a checkpoint; `false` if there is one of this run and size, whatever it says.
pub fn add_checkpoint(sql: &mut dyn Sql, checkpoint: &RunCheckpoint) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO run_checkpoints (run, size, root, note, received_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        values![
            checkpoint.run,
            checkpoint.size,
            checkpoint.root,
            &checkpoint.note,
            checkpoint.received_at
        ],
    )
}

/// How many checkpoints of a run there are.
pub fn count_checkpoints(sql: &mut dyn Sql, run: RunId) -> Result<u64, StoreError> {
    count(
        sql,
        "SELECT count(*) FROM run_checkpoints WHERE run = $1",
        values![run],
    )
}

/// The last checkpoint of a run: that of the longest log.
pub fn last_checkpoint(sql: &mut dyn Sql, run: RunId) -> Result<Option<RunCheckpoint>, StoreError> {
    one(
        sql,
        "SELECT run, size, root, note, received_at FROM run_checkpoints WHERE run = $1 ORDER BY size DESC LIMIT 1",
        values![run],
    )
}

/// The checkpoints of a run, shortest log first.
pub fn checkpoints(sql: &mut dyn Sql, run: RunId) -> Result<Vec<RunCheckpoint>, StoreError> {
    all(
        sql,
        "SELECT run, size, root, note, received_at FROM run_checkpoints WHERE run = $1 ORDER BY size",
        values![run],
    )
}
