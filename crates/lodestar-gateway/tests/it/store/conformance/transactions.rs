//! Transactions and attempts within them.

use lodestar_gateway::store::{Sql, StoreError, accounts, attempt, devices, transaction};

use crate::store::world::{a_device, account, an_account, device, write};

/// Something went wrong that is not the database's business.
#[derive(Debug)]
struct Failure;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        panic!("the database has nothing against it: {error}");
    }
}

fn there(sql: &mut dyn Sql) -> Vec<u64> {
    write(sql, |sql| {
        let mut found = Vec::new();
        for n in 0..9 {
            if accounts::get(sql, account(n))?.is_some() {
                found.push(n);
            }
        }
        Ok(found)
    })
}

pub(super) fn an_error_takes_everything_back(sql: &mut dyn Sql) {
    let outcome = transaction(sql, |sql| {
        sql.act_as_server()?;
        assert!(accounts::add(sql, &an_account(1))?);
        Err::<(), _>(Failure)
    });
    assert!(matches!(outcome, Err(Failure)));
    assert!(there(sql).is_empty());
    write(sql, |sql| accounts::add(sql, &an_account(1)));
    assert_eq!(there(sql), [1]);
}

pub(super) fn an_attempt_is_taken_back_alone(sql: &mut dyn Sql) {
    write(sql, |sql| {
        for n in 1..=4 {
            let outcome = attempt(sql, |sql| {
                sql.act_as_server()?;
                assert!(accounts::add(sql, &an_account(n))?);
                match n % 2 {
                    0 => Err(Failure),
                    _ => Ok(n),
                }
            })?;
            assert_eq!(outcome.is_ok(), n % 2 == 1);
        }
        Ok(())
    });
    assert_eq!(there(sql), [1, 3]);
}

pub(super) fn an_attempt_that_the_database_refused_leaves_the_rest(sql: &mut dyn Sql) {
    write(sql, |sql| {
        attempt(sql, |sql| {
            sql.act_as_server()?;
            accounts::add(sql, &an_account(1))
        })?
        .map(drop)?;
        let refused = attempt(sql, |sql| {
            sql.act_as_server()?;
            assert!(accounts::add(sql, &an_account(2))?);
            devices::add(sql, &a_device(1, 7))
        })?;
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        attempt(sql, |sql| {
            sql.act_as_server()?;
            assert!(devices::add(sql, &a_device(1, 1))?);
            accounts::add(sql, &an_account(3))
        })?
        .map(drop)
    });
    assert_eq!(there(sql), [1, 3]);
    assert!(write(sql, |sql| devices::get(sql, device(1))).is_some());
}

pub(super) fn many_attempts_share_a_transaction(sql: &mut dyn Sql) {
    write(sql, |sql| accounts::add(sql, &an_account(1)));
    write(sql, |sql| {
        for n in 0..200 {
            let outcome = attempt(sql, |sql| {
                sql.act_for(account(1))?;
                devices::add(sql, &a_device(n / 2, 1))
            })?;
            assert_eq!(outcome?, n % 2 == 0);
        }
        Ok(())
    });
    let found = write(sql, |sql| devices::list(sql, account(1), None, 999));
    assert_eq!(found.len(), 100);
}

pub(super) fn a_rollback_without_a_transaction_is_nothing(sql: &mut dyn Sql) {
    sql.rollback().unwrap();
    sql.begin().unwrap();
    sql.rollback().unwrap();
    sql.rollback().unwrap();
    assert!(there(sql).is_empty());
}

pub(super) fn nothing_is_done_in_nobody_s_name(sql: &mut dyn Sql) {
    write(sql, |sql| accounts::add(sql, &an_account(1)));
    type Setting = fn(&mut dyn Sql) -> Result<(), StoreError>;
    let settings: [Setting; 3] = [
        |_| Ok(()),
        |sql| {
            sql.act_as_server()?;
            sql.savepoint()
        },
        |sql| {
            sql.savepoint()?;
            sql.act_as_server()?;
            sql.release()
        },
    ];
    for set in settings {
        sql.begin().unwrap();
        set(sql).unwrap();
        // One shows nothing, the other refuses.
        let found = accounts::get(sql, account(1));
        assert!(
            matches!(found, Ok(None) | Err(StoreError::Refused(_))),
            "{found:?}"
        );
        let added = devices::add(sql, &a_device(1, 1));
        assert!(matches!(added, Err(StoreError::Refused(_))), "{added:?}");
        sql.rollback().unwrap();
    }
}
