//! The kill switch: one row, for all.

use lodestar_core::time::Timestamp;

use super::sql::{Columns, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// How the kill switch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Whether everything is to stop.
    pub kill_switch: bool,
    /// Since when it stands so; never, if nobody touched it.
    pub since: Option<Timestamp>,
    /// What was said when it was set.
    pub reason: String,
}

impl Columns for Control {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            kill_switch: row.read()?,
            since: row.read()?,
            reason: row.read()?,
        })
    }
}

/// How it stands.
pub fn get(sql: &mut dyn Sql) -> Result<Control, StoreError> {
    let found = one(sql, "SELECT kill_switch, since, reason FROM control", &[])?;
    found.ok_or_else(|| StoreError::Refused("the row of the kill switch is gone".to_owned()))
}

/// Sets it.
pub fn set(
    sql: &mut dyn Sql,
    kill_switch: bool,
    since: Timestamp,
    reason: &str,
) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE control SET kill_switch = $1, since = $2, reason = $3",
        values![kill_switch, since, reason],
    )
    .map(drop)
}
