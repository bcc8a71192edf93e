//! What the gateway made of runs, each time it looked.

use lodestar_core::execution::{ExecutionFact, ExecutionLevel, FactSet};
use lodestar_core::id::{AccountId, AttestationId, EvaluationId, RunId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// An evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationRow {
    /// Which.
    pub id: EvaluationId,
    /// Of which run.
    pub run: RunId,
    /// Whose.
    pub account: AccountId,
    /// The attestation that the facts rest on; none, if there is none.
    pub attestation: Option<AttestationId>,
    /// What held.
    pub facts: FactSet,
    /// The level that follows from it.
    pub level: ExecutionLevel,
    /// The first fact that was missing; none at the top.
    pub stopped_by: Option<ExecutionFact>,
    /// What it was made for.
    pub cause: String,
    /// When.
    pub at: Timestamp,
}

impl Columns for EvaluationRow {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            run: row.read()?,
            account: row.read()?,
            attestation: row.read()?,
            facts: row.read()?,
            level: row.read()?,
            stopped_by: row.read()?,
            cause: row.read()?,
            at: row.read()?,
        })
    }
}

/// Keeps an evaluation.
///
/// Refused by the database if the level does not follow from the facts, or if a fact is claimed that the attestation
/// named, or the run, does not have.
pub fn add(sql: &mut dyn Sql, evaluation: &EvaluationRow) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        values![
            evaluation.id,
            evaluation.run,
            evaluation.account,
            evaluation.attestation,
            evaluation.facts,
            evaluation.level,
            evaluation.stopped_by,
            &evaluation.cause,
            evaluation.at
        ],
    )
    .map(drop)
}

/// One of them.
pub fn get(sql: &mut dyn Sql, id: EvaluationId) -> Result<Option<EvaluationRow>, StoreError> {
    one(
        sql,
        "SELECT id, run, account, attestation, facts, level, stopped_by, cause, at FROM evaluations WHERE id = $1",
        values![id],
    )
}

/// The one that holds: the last.
pub fn latest(sql: &mut dyn Sql, run: RunId) -> Result<Option<EvaluationRow>, StoreError> {
    one(
        sql,
        "SELECT id, run, account, attestation, facts, level, stopped_by, cause, at FROM evaluations
         WHERE run = $1 ORDER BY n DESC LIMIT 1",
        values![run],
    )
}

/// All of a run, in their order.
pub fn of_run(sql: &mut dyn Sql, run: RunId) -> Result<Vec<EvaluationRow>, StoreError> {
    all(
        sql,
        "SELECT id, run, account, attestation, facts, level, stopped_by, cause, at FROM evaluations
         WHERE run = $1 ORDER BY n",
        values![run],
    )
}
