//! Contests, and who takes part.

use lodestar_core::id::{AccountId, BattleId, ContenderId};
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// A contest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Battle {
    /// Which.
    pub id: BattleId,
    /// Its name, unlike any other's.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Columns for Battle {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            name: row.read()?,
            created_at: row.read()?,
        })
    }
}

/// An agent that takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participation {
    /// In which contest.
    pub battle: BattleId,
    /// Whose agent.
    pub account: AccountId,
    /// Which.
    pub agent: ContenderId,
    /// Since when.
    pub at: Timestamp,
}

impl Columns for Participation {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            battle: row.read()?,
            account: row.read()?,
            agent: row.read()?,
            at: row.read()?,
        })
    }
}

/// Adds a contest; `false` if there is one with this id or name.
pub fn add(sql: &mut dyn Sql, battle: &Battle) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO battles (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        values![battle.id, &battle.name, battle.created_at],
    )
}

/// One contest.
pub fn get(sql: &mut dyn Sql, id: BattleId) -> Result<Option<Battle>, StoreError> {
    one(
        sql,
        "SELECT id, name, created_at FROM battles WHERE id = $1",
        values![id],
    )
}

/// All contests, oldest first.
pub fn list(sql: &mut dyn Sql) -> Result<Vec<Battle>, StoreError> {
    all(
        sql,
        "SELECT id, name, created_at FROM battles ORDER BY id",
        &[],
    )
}

/// Takes part; `false` if the agent does already.
pub fn join(sql: &mut dyn Sql, participation: &Participation) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO participations (battle, account, agent, at) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING",
        values![
            participation.battle,
            participation.account,
            participation.agent,
            participation.at
        ],
    )
}

/// Who takes part: of all accounts for the server, else of one's own.
pub fn participations(
    sql: &mut dyn Sql,
    battle: BattleId,
) -> Result<Vec<Participation>, StoreError> {
    all(
        sql,
        "SELECT battle, account, agent, at FROM participations WHERE battle = $1 ORDER BY at, agent",
        values![battle],
    )
}
