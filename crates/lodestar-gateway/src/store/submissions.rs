//! Work that was handed in, and the runs that it came from.

use lodestar_core::execution::ExecutionLevel;
use lodestar_core::id::{AccountId, BattleId, ContenderId, RunId, SubmissionId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, limit, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Which.
    pub id: SubmissionId,
    /// Whose.
    pub account: AccountId,
    /// The contest that it is for, if it is for one. The account has to take part.
    pub battle: Option<BattleId>,
    /// What was handed in.
    pub content: String,
    /// When.
    pub created_at: Timestamp,
}

impl Columns for Submission {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            battle: row.read()?,
            content: row.read()?,
            created_at: row.read()?,
        })
    }
}

/// Keeps a submission; `false` if there is one with this id.
pub fn add(sql: &mut dyn Sql, submission: &Submission) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO submissions (id, account, battle, content, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        values![
            submission.id,
            submission.account,
            submission.battle,
            &submission.content,
            submission.created_at
        ],
    )
}

/// Says that a submission came from a run; `false` if that was said before.
///
/// Refused by the database for a run of another account, and, in a contest, for one of an agent that does not take part.
pub fn link(
    sql: &mut dyn Sql,
    submission: SubmissionId,
    run: RunId,
    account: AccountId,
) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO submission_runs (submission, run, account) VALUES ($1, $2, $3)
         ON CONFLICT DO NOTHING",
        values![submission, run, account],
    )
}

/// One submission.
pub fn get(sql: &mut dyn Sql, id: SubmissionId) -> Result<Option<Submission>, StoreError> {
    one(
        sql,
        "SELECT id, account, battle, content, created_at FROM submissions WHERE id = $1",
        values![id],
    )
}

/// Submissions of an account in the order of their ids, from behind `after` on.
pub fn list(
    sql: &mut dyn Sql,
    account: AccountId,
    after: Option<SubmissionId>,
    at_most: usize,
) -> Result<Vec<Submission>, StoreError> {
    all(
        sql,
        "SELECT id, account, battle, content, created_at FROM submissions
         WHERE account = $1 AND id > COALESCE(CAST($2 AS TEXT), '') ORDER BY id LIMIT $3",
        &[account.into(), after.into(), limit(at_most)],
    )
}

/// Submissions to a contest, oldest first: of all accounts for the server, else one's own.
pub fn of_battle(sql: &mut dyn Sql, battle: BattleId) -> Result<Vec<Submission>, StoreError> {
    all(
        sql,
        "SELECT id, account, battle, content, created_at FROM submissions WHERE battle = $1
         ORDER BY created_at, id",
        values![battle],
    )
}

/// The runs behind submissions to a contest: whose agent's each is, and how far it is proved by now.
pub fn runs_of_battle(
    sql: &mut dyn Sql,
    battle: BattleId,
) -> Result<Vec<(SubmissionId, ContenderId, Option<ExecutionLevel>)>, StoreError> {
    let found = sql.query(
        "SELECT s.id, r.agent, (SELECT e.level FROM evaluations AS e WHERE e.run = r.id ORDER BY e.n DESC LIMIT 1)
         FROM submissions AS s JOIN submission_runs AS l ON l.submission = s.id
         JOIN runs AS r ON r.id = l.run WHERE s.battle = $1",
        values![battle],
    )?;
    let read = |mut row: Row| Ok((row.read()?, row.read()?, row.read()?));
    found.into_iter().map(read).collect()
}

/// The submissions that came from a run.
pub fn of_run(sql: &mut dyn Sql, run: RunId) -> Result<Vec<Submission>, StoreError> {
    all(
        sql,
        "SELECT s.id, s.account, s.battle, s.content, s.created_at
         FROM submission_runs AS l JOIN submissions AS s ON s.id = l.submission
         WHERE l.run = $1 ORDER BY s.id",
        values![run],
    )
}

/// The runs that a submission came from.
pub fn runs(sql: &mut dyn Sql, submission: SubmissionId) -> Result<Vec<RunId>, StoreError> {
    let found = sql.query(
        "SELECT run FROM submission_runs WHERE submission = $1 ORDER BY run",
        values![submission],
    )?;
    found.into_iter().map(|mut row| row.read()).collect()
}
