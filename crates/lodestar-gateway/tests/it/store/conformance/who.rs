//! Accounts, tokens, orders, agents and runners.

use lodestar_gateway::store::accounts::{self, Account};
use lodestar_gateway::store::agents::{self, Agent};
use lodestar_gateway::store::orders;
use lodestar_gateway::store::runners::{self, Runner};
use lodestar_gateway::store::tokens::{self, TokenKind};
use lodestar_gateway::store::{Sql, devices};

use crate::store::world::{
    a_device, a_token, account, agent, an_account, an_order, at, device, digest, key, refusal,
    runner, token, write,
};

pub(super) fn accounts_have_names_of_their_own(sql: &mut dyn Sql) {
    write(sql, |sql| {
        assert!(accounts::add(sql, &an_account(1))?);
        assert!(!accounts::add(sql, &an_account(1))?);
        let same_name = Account {
            id: account(2),
            ..an_account(1)
        };
        assert!(!accounts::add(sql, &same_name)?);
        assert_eq!(accounts::get(sql, account(1))?, Some(an_account(1)));
        assert_eq!(accounts::get(sql, account(2))?, None);
        assert_eq!(accounts::by_name(sql, "account 1")?, Some(an_account(1)));
        assert_eq!(accounts::by_name(sql, "ACCOUNT 1")?, None);
        Ok(())
    });
}

pub(super) fn accounts_are_listed_page_by_page(sql: &mut dyn Sql) {
    write(sql, |sql| {
        for n in [3, 1, 2] {
            assert!(accounts::add(sql, &an_account(n))?);
        }
        let ids = |found: Vec<Account>| found.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids(accounts::list(sql, None, 2)?), [account(1), account(2)]);
        assert_eq!(ids(accounts::list(sql, Some(account(2)), 2)?), [account(3)]);
        assert_eq!(ids(accounts::list(sql, Some(account(3)), 2)?), []);
        assert_eq!(ids(accounts::list(sql, None, usize::MAX)?).len(), 3);
        Ok(())
    });
}

fn with_a_device(sql: &mut dyn Sql) {
    write(sql, |sql| {
        for n in [1, 2] {
            assert!(accounts::add(sql, &an_account(n))?);
            assert!(devices::add(sql, &a_device(n, n))?);
        }
        Ok(())
    });
}

pub(super) fn tokens_are_found_by_their_hash(sql: &mut dyn Sql) {
    with_a_device(sql);
    write(sql, |sql| {
        for (n, &kind) in (1..).zip(TokenKind::ALL) {
            let new = a_token(n, 1, kind);
            assert!(tokens::add(sql, &new)?);
            assert_eq!(tokens::by_hash(sql, new.hash)?, Some(new.clone()));
            assert!(new.is_open(at(3599)) && !new.is_open(at(3600)));
        }
        let same_hash = tokens::Token {
            id: token(9),
            ..a_token(1, 2, TokenKind::Owner)
        };
        assert!(!tokens::add(sql, &same_hash)?);
        assert_eq!(tokens::by_hash(sql, digest("no token"))?, None);
        assert_eq!(tokens::list(sql, account(1), None, 10)?.len(), 3);
        assert_eq!(tokens::list(sql, account(2), None, 10)?, []);
        Ok(())
    });
    refusal(sql, |sql| {
        let of_another = tokens::Token {
            device: Some(device(2)),
            ..a_token(8, 1, TokenKind::Device)
        };
        tokens::add(sql, &of_another)
    });
}

pub(super) fn a_token_is_spent_once(sql: &mut dyn Sql) {
    with_a_device(sql);
    write(sql, |sql| {
        for n in [1, 2] {
            assert!(tokens::add(sql, &a_token(n, 1, TokenKind::Enrol))?);
        }
        assert!(tokens::spend(sql, token(1), at(5))?);
        assert!(!tokens::spend(sql, token(1), at(6))?);
        assert!(tokens::revoke(sql, account(1), token(2), at(5))?);
        assert!(!tokens::spend(sql, token(2), at(6))?);
        assert!(!tokens::spend(sql, token(3), at(6))?);
        let spent = tokens::by_hash(sql, digest("token 1"))?.unwrap();
        assert_eq!(spent.used_at, Some(at(5)));
        assert!(!spent.is_open(at(6)));
        Ok(())
    });
}

pub(super) fn a_token_is_revoked_by_its_own_account(sql: &mut dyn Sql) {
    with_a_device(sql);
    write(sql, |sql| {
        assert!(tokens::add(sql, &a_token(1, 1, TokenKind::Device))?);
        assert!(tokens::add(sql, &a_token(2, 1, TokenKind::Device))?);
        assert!(!tokens::revoke(sql, account(2), token(1), at(5))?);
        assert!(tokens::revoke(sql, account(1), token(1), at(5))?);
        assert!(!tokens::revoke(sql, account(1), token(1), at(6))?);
        assert_eq!(tokens::revoke_of_device(sql, device(1), at(7))?, 1);
        let revoked = tokens::list(sql, account(1), None, 10)?;
        let when: Vec<_> = revoked.iter().map(|one| one.revoked_at).collect();
        assert_eq!(when, [Some(at(5)), Some(at(7))]);
        Ok(())
    });
}

pub(super) fn orders_are_kept_once(sql: &mut dyn Sql) {
    with_a_device(sql);
    write(sql, |sql| {
        let order = an_order("pause", 1);
        assert!(orders::add(sql, &order)?);
        assert!(!orders::add(sql, &order)?);
        let same_nonce = orders::OrderRow {
            digest: digest("another"),
            ..order.clone()
        };
        assert!(!orders::add(sql, &same_nonce)?);
        let of_another = orders::OrderRow {
            account: account(2),
            ..same_nonce
        };
        assert!(orders::add(sql, &of_another)?);
        assert_eq!(orders::get(sql, order.digest)?, Some(order));
        assert_eq!(orders::get(sql, digest("never"))?, None);
        Ok(())
    });
}

pub(super) fn agents_and_runners_have_names_of_their_own(sql: &mut dyn Sql) {
    with_a_device(sql);
    write(sql, |sql| {
        let named = |n, of, name: &str| Agent {
            id: agent(n),
            account: account(of),
            name: name.to_owned(),
            created_at: at(5),
        };
        assert!(agents::add(sql, &named(1, 1, "a"))?);
        assert!(!agents::add(sql, &named(2, 1, "a"))?);
        assert!(agents::add(sql, &named(2, 1, "b"))?);
        assert!(agents::add(sql, &named(3, 2, "a"))?);
        assert_eq!(
            agents::list(sql, account(1), None, 10)?,
            [named(1, 1, "a"), named(2, 1, "b")]
        );
        assert_eq!(agents::get(sql, agent(3))?, Some(named(3, 2, "a")));

        let named = |n, of, name: &str| Runner {
            id: runner(n),
            account: account(of),
            name: name.to_owned(),
            created_at: at(5),
            last_heartbeat: None,
        };
        assert!(runners::add(sql, &named(1, 1, "a"))?);
        assert!(!runners::add(sql, &named(2, 1, "a"))?);
        assert!(runners::add(sql, &named(2, 2, "a"))?);
        assert_eq!(
            runners::list(sql, account(2), None, 10)?,
            [named(2, 2, "a")]
        );
        assert_eq!(runners::get(sql, runner(1))?, Some(named(1, 1, "a")));
        assert_eq!(runners::get(sql, runner(9))?, None);
        Ok(())
    });
}

pub(super) fn text_of_any_kind_comes_back(sql: &mut dyn Sql) {
    let names = [
        "",
        "'; DROP TABLE accounts; --",
        "\" OR \"\"=\"",
        "$1 ?1 :a @b %s",
        "\0 and \u{1} and \u{1}0",
        "\u{202e}right to left \u{1F680} e\u{301}",
        "line\nline\r\n\ttab \\ \\n",
        &"long ".repeat(20_000),
    ];
    for (n, name) in (1..).zip(names) {
        let odd = Account {
            id: account(n),
            name: name.to_owned(),
            owner_key: key(1),
            created_at: at(0),
        };
        // An index entry has its bounds; the service's are narrower.
        let fits = name.len() < 2000;
        if !fits {
            continue;
        }
        write(sql, |sql| {
            assert!(accounts::add(sql, &odd)?);
            assert_eq!(accounts::by_name(sql, name)?, Some(odd.clone()));
            Ok(())
        });
    }
    let count = write(sql, |sql| accounts::list(sql, None, 99)).len();
    assert_eq!(count, 7);
}
