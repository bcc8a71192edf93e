//! Values as PostgreSQL has them: `bigint`, `text` and `bytea`.

use lodestar_firewall::database::{from_database, to_database};
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::failed;
use crate::store::{Row, StoreError, Value};

type Failure = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Failure> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => checked(number, kind, out),
            Self::Text(text) => checked(&to_database(text), kind, out),
            Self::Blob(bytes) => checked(&&**bytes, kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

/// A number where text is wanted is a mistake in a statement, and told so.
fn checked(
    value: &(impl ToSql + ?Sized),
    kind: &Type,
    out: &mut bytes::BytesMut,
) -> Result<IsNull, Failure> {
    value.to_sql_checked(kind, out)
}

pub(super) fn row(row: &postgres::Row) -> Result<Row, StoreError> {
    let columns = row.columns().iter().enumerate();
    let read = |(n, column): (usize, &postgres::Column)| -> Result<Value<'static>, StoreError> {
        let value = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(n).map_err(failed)?.map(Value::Int),
            Type::BYTEA => {
                let bytes = row.try_get::<_, Option<Vec<u8>>>(n).map_err(failed)?;
                bytes.map(|bytes| Value::Blob(bytes.into()))
            }
            Type::TEXT => {
                let text = row.try_get::<_, Option<&str>>(n).map_err(failed)?;
                text.map(|text| Value::Text(from_database(text).into()))
            }
            ref other => {
                return Err(StoreError::Unreadable {
                    column: n + 1,
                    problem: format!("its type is `{other}`"),
                });
            }
        };
        Ok(value.unwrap_or(Value::Null))
    };
    Ok(Row::new(columns.map(read).collect::<Result<_, _>>()?))
}
