//! What submissions earned: each effect once.

use lodestar_core::execution::Effect;
use lodestar_core::id::{BattleId, EvaluationId, SubmissionId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert};
use super::value::values;
use super::{Row, Sql, StoreError};

/// Something that was earned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    /// By which submission.
    pub submission: SubmissionId,
    /// What.
    pub effect: Effect,
    /// The evaluation that it rests on; none for what is earned without any.
    pub evaluation: Option<EvaluationId>,
    /// When.
    pub at: Timestamp,
}

impl Columns for EffectRow {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            submission: row.read()?,
            effect: row.read()?,
            evaluation: row.read()?,
            at: row.read()?,
        })
    }
}

/// Grants an effect; `false` if the submission has it already.
///
/// Refused by the database unless the evaluation is the last one of a run of that submission and its level earns the
/// effect; without an evaluation, unless the lowest level earns it.
pub fn grant(sql: &mut dyn Sql, effect: &EffectRow) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO effects (submission, effect, evaluation, at) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
        values![effect.submission, effect.effect, effect.evaluation, effect.at],
    )
}

/// What a submission earned, in the order of granting.
pub fn of_submission(
    sql: &mut dyn Sql,
    submission: SubmissionId,
) -> Result<Vec<EffectRow>, StoreError> {
    all(
        sql,
        "SELECT submission, effect, evaluation, at FROM effects WHERE submission = $1 ORDER BY at, effect",
        values![submission],
    )
}

/// What the submissions to a contest earned, by submission: of all accounts for the server, else one's own.
pub fn of_battle(sql: &mut dyn Sql, battle: BattleId) -> Result<Vec<EffectRow>, StoreError> {
    all(
        sql,
        "SELECT e.submission, e.effect, e.evaluation, e.at
         FROM submissions AS s JOIN effects AS e ON e.submission = s.id
         WHERE s.battle = $1 ORDER BY e.submission, e.at, e.effect",
        values![battle],
    )
}
