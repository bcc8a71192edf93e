//! What both databases do alike: statements, transactions, savepoints, and in whose name they happen.

use lodestar_core::id::AccountId;

use super::{Row, StoreError, Value};

/// How an insertion ends that may find its row there.
pub(super) const DO_NOTHING: &str = "ON CONFLICT DO NOTHING";

/// A connection to the gateway's database.
///
/// Parameters are written `$1`, `$2` and so on, numbered in the order in which they first appear: SQLite counts
/// them by appearance, PostgreSQL by number. Statements are prepared once per connection, by their text.
///
/// Everything happens within a transaction, and in somebody's name: until [`Sql::act_for`] or
/// [`Sql::act_as_server`] is called, PostgreSQL shows no row of any account. [`Sql::begin`] and
/// [`Sql::savepoint`] begin in nobody's name again. SQLite has one file for all and does not tell them apart.
pub trait Sql: Send {
    /// What and where it is, for people; without a password.
    fn describe(&self) -> String;

    /// Runs a statement; gives how many rows it changed. A row that an insertion `ON CONFLICT DO NOTHING` found
    /// there is none.
    fn execute(&mut self, text: &'static str, values: &[Value<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement; gives its rows.
    fn query(&mut self, text: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError>;

    /// Begins a transaction. A connection that was lost is made again here.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Makes the transaction last. When it returns, it is on disk.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Takes the transaction back, if there is one.
    fn rollback(&mut self) -> Result<(), StoreError>;

    /// Begins what can be taken back alone, within the transaction. There is one at a time.
    fn savepoint(&mut self) -> Result<(), StoreError>;

    /// Keeps what came after the savepoint.
    fn release(&mut self) -> Result<(), StoreError>;

    /// Takes back what came after the savepoint, and ends it.
    fn rollback_to(&mut self) -> Result<(), StoreError>;

    /// From here to the end of the transaction, or of the savepoint: only rows of this account.
    fn act_for(&mut self, account: AccountId) -> Result<(), StoreError>;

    /// From here to the end of the transaction, or of the savepoint: all rows.
    fn act_as_server(&mut self) -> Result<(), StoreError>;
}

/// Runs `work` in a transaction of its own, which lasts if there was no error.
pub fn transaction<T, E: From<StoreError>>(
    sql: &mut dyn Sql,
    work: impl FnOnce(&mut dyn Sql) -> Result<T, E>,
) -> Result<T, E> {
    sql.begin()?;
    match work(sql) {
        Ok(value) => match sql.commit() {
            Ok(()) => Ok(value),
            Err(error) => {
                // What failed is told; that nothing is left behind is all that matters of this.
                let _ = sql.rollback();
                Err(error.into())
            }
        },
        Err(error) => {
            let _ = sql.rollback();
            Err(error)
        }
    }
}

/// Runs `work` within the open transaction; an error takes back what it did, and nothing else.
///
/// The outer error is the database's: after one the transaction as a whole has to be taken back.
pub fn attempt<T, E>(
    sql: &mut dyn Sql,
    work: impl FnOnce(&mut dyn Sql) -> Result<T, E>,
) -> Result<Result<T, E>, StoreError> {
    sql.savepoint()?;
    let outcome = work(sql);
    match &outcome {
        Ok(_) => sql.release()?,
        Err(_) => sql.rollback_to()?,
    }
    Ok(outcome)
}

/// Inserts a row `ON CONFLICT DO NOTHING`; whether it was not there yet.
pub(super) fn insert(
    sql: &mut dyn Sql,
    text: &'static str,
    values: &[Value<'_>],
) -> Result<bool, StoreError> {
    debug_assert!(text.ends_with(DO_NOTHING), "{text}");
    Ok(sql.execute(text, values)? > 0)
}

/// The only row of a statement, if there is one.
pub(super) fn one<T: Columns>(
    sql: &mut dyn Sql,
    text: &'static str,
    values: &[Value<'_>],
) -> Result<Option<T>, StoreError> {
    let found = sql.query(text, values)?;
    found.into_iter().next().map(T::read).transpose()
}

/// All rows of a statement.
pub(super) fn all<T: Columns>(
    sql: &mut dyn Sql,
    text: &'static str,
    values: &[Value<'_>],
) -> Result<Vec<T>, StoreError> {
    let found = sql.query(text, values)?;
    found.into_iter().map(T::read).collect()
}

/// The first column of the only row, a number.
pub(super) fn count(
    sql: &mut dyn Sql,
    text: &'static str,
    values: &[Value<'_>],
) -> Result<u64, StoreError> {
    Ok(one::<Count>(sql, text, values)?.map_or(0, |count| count.0))
}

struct Count(u64);

impl Columns for Count {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self(row.read()?))
    }
}

/// A row type: reads itself out of its columns, in their order.
pub(super) trait Columns: Sized {
    fn read(row: Row) -> Result<Self, StoreError>;
}

/// A limit as databases take it.
pub(super) fn limit(limit: usize) -> Value<'static> {
    Value::Int(i64::try_from(limit).unwrap_or(i64::MAX))
}
