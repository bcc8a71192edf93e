//! Rows that this program cannot have written: an error, never a default.

use lodestar_core::id::AccountId;
use lodestar_gateway::store::{Sql, StoreError, accounts, devices, transaction};

use super::place::{As, on_both};
use super::world::{account, device, furnish};

fn unreadable<T: std::fmt::Debug>(
    sql: &mut dyn Sql,
    work: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError>,
) -> (usize, String) {
    let outcome = transaction(sql, |sql| {
        sql.act_as_server()?;
        work(sql)
    });
    match outcome {
        Err(StoreError::Unreadable { column, problem }) => (column, problem),
        other => panic!("expected an unreadable row, found {other:?}"),
    }
}

#[test]
fn a_row_that_does_not_parse_is_an_error() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        let mut direct = place.direct();
        for (n, (id, key, created)) in [
            ("'no id'", "'ab'", "5"),
            ("{id}", "'no key'", "5"),
            ("{id}", "{key}", "-5"),
            ("{id}", "{key}", "9223372036854775807"),
        ]
        .into_iter()
        .enumerate()
        {
            let n = 900 + n as u64;
            let id = id.replace("{id}", &format!("'{}'", account(n)));
            let key = key.replace("{key}", &format!("'{}'", super::world::key(1)));
            direct.begin(As::Server);
            let text = format!(
                "INSERT INTO accounts (id, name, owner_key, created_at) VALUES ({id}, 'odd {n}', {key}, {created})"
            );
            assert_eq!(direct.run(&text), Ok(1));
            direct.run("COMMIT").unwrap();
            let name = format!("odd {n}");
            let (column, problem) = unreadable(&mut *sql, |sql| accounts::by_name(sql, &name));
            assert_eq!(column, [1, 3, 4, 4][n as usize - 900], "{problem}");
        }
        // The good ones are read as before.
        let found = transaction(&mut *sql, |sql| {
            sql.act_as_server()?;
            Ok::<_, StoreError>((
                accounts::get(sql, account(1))?,
                devices::get(sql, device(1))?,
            ))
        });
        assert!(matches!(found, Ok((Some(_), Some(_)))));
    });
}

#[test]
fn values_of_another_kind_are_told_apart() {
    on_both(|place| {
        let mut sql = place.open();
        let read = |sql: &mut dyn Sql, text: &'static str| {
            transaction(sql, |sql| sql.query(text, &[]))
                .unwrap()
                .remove(0)
        };
        let mut row = read(
            &mut *sql,
            "SELECT CAST('7' AS TEXT), CAST(7 AS BIGINT), CAST(NULL AS TEXT)",
        );
        assert!(row.read::<i64>().is_err());
        assert!(row.read::<String>().is_err());
        assert!(row.read::<AccountId>().is_err());
        let past = row.read::<i64>().unwrap_err();
        assert_eq!(
            past.to_string(),
            "a row of the database cannot be read: column 4: there is none"
        );
        let mut row = read(
            &mut *sql,
            "SELECT CAST(2 AS BIGINT), CAST(-1 AS BIGINT), CAST(NULL AS TEXT)",
        );
        assert!(row.read::<bool>().is_err());
        assert!(row.read::<u64>().is_err());
        assert_eq!(row.read::<Option<AccountId>>().unwrap(), None);
    });
}
