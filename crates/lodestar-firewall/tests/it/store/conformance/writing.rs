//! Transactions, and what they leave.

use lodestar_core::chain::Truth;
use lodestar_firewall::row::EXPIRED_AFTER;
use lodestar_firewall::store::{AppliedLog, ListQuery, Store, StoreError, Verdict, Writing};

use super::super::rows::{
    Sketch, against, ageing, at, changed, hide, id, keys, log, moved, position, rows,
};
use super::{NONE, ask, found, insert, number, numbers, write};

pub(super) fn rows_come_back_as_they_went_in(store: &mut dyn Store) {
    let mut wanted = vec![
        Sketch::new(1).row(),
        Sketch::new(2).gated().row(),
        Sketch::new(3).about("call:inv-3").row(),
        Sketch::new(4).row_by(&keys(2)),
    ];
    wanted[1].server = None;
    wanted[1].tool = None;
    wanted[3].due_at = None;
    assert_eq!(wanted[2].key, None);
    insert(store, &wanted);
    for row in &wanted {
        let there = store.row(&row.belief_id().unwrap()).unwrap();
        assert_eq!(there.as_ref(), Some(row));
    }
    assert_eq!(store.scan(None, 10).unwrap(), wanted);
}

pub(super) fn a_second_row_with_an_id_is_a_conflict(store: &mut dyn Store) {
    insert(store, &rows([1]));
    let refused = store.write(&mut |writing| {
        writing.insert(&rows([2, 1, 3]))?;
        Ok(Verdict::Commit)
    });
    assert!(
        matches!(&refused, Err(StoreError::Conflict { id: which, .. }) if *which == id(1).to_string()),
        "{refused:?}"
    );
    let twice = store.write(&mut |writing| {
        writing.insert(&rows([4, 4]))?;
        Ok(Verdict::Commit)
    });
    assert!(
        matches!(&twice, Err(StoreError::Conflict { id: which, .. }) if *which == id(4).to_string()),
        "{twice:?}"
    );
    assert_eq!(numbers(&store.scan(None, 10).unwrap()), [1]);
}

pub(super) fn a_row_is_replaced_by_its_next_revision_only(store: &mut dyn Store) {
    let first = Sketch::new(1).row();
    let second = moved(&first, hide);
    let third = moved(&second, hide);
    insert(store, std::slice::from_ref(&first));
    let unknown = moved(&Sketch::new(9).row(), hide);
    for wrong in [&first, &third, &unknown] {
        let refused = store.write(&mut |writing| {
            writing.replace(wrong)?;
            Ok(Verdict::Commit)
        });
        assert!(
            matches!(&refused, Err(StoreError::Conflict { id, .. }) if *id == wrong.id),
            "{refused:?}"
        );
    }
    assert_eq!(store.scan(None, 10).unwrap(), [first]);
    for next in [&second, &third] {
        write(store, |writing| writing.replace(next));
        assert_eq!(store.scan(None, 10).unwrap(), std::slice::from_ref(next));
    }
}

pub(super) fn a_replaced_row_keeps_its_place_in_the_order(store: &mut dyn Store) {
    insert(store, &rows([1, 2, 3]));
    let after = moved(&Sketch::new(2).row(), |axes| axes.freshness = stale());
    write(store, |writing| writing.replace(&after));
    assert_eq!(found(store, &[]), [3, 2, 1]);
    let all = ListQuery {
        limit: 9,
        ..ListQuery::default()
    };
    assert_eq!(numbers(&store.list(&all).unwrap()), [3, 2, 1]);
}

fn stale() -> lodestar_core::chain::Freshness {
    lodestar_core::chain::Freshness::Stale
}

/// Every kind of change, on top of row 1.
fn everything(writing: &mut dyn Writing) -> Result<(), StoreError> {
    let first = Sketch::new(1).row();
    let (second, history) = changed(&first, ageing());
    writing.insert(&rows([5, 6]))?;
    writing.replace(&second)?;
    writing.replace(&moved(&second, hide))?;
    writing.add_history(&history)?;
    writing.add_contradictions(&[against(1, 5), against(1, 6)])?;
    writing.advance("someone", &log("web", "s-1"), 7)?;
    writing.advance("someone", &log("web", "s-2"), 8)
}

/// Whether the store has what [`prepared`] put there and nothing of [`everything`].
fn is_as_prepared(store: &mut dyn Store) {
    assert_eq!(store.scan(None, 9).unwrap(), rows([1]));
    assert_eq!(found(store, &["statement"]), [1]);
    assert_eq!(store.history(&id(1)).unwrap(), []);
    let pairs = store.scan_contradictions(None, 9).unwrap();
    assert_eq!(pairs, [against(1, 5)]);
    let logs = store.logs().unwrap();
    assert_eq!(logs.iter().map(|l| l.next).collect::<Vec<_>>(), [3]);
    let later = at(100 * 86_400);
    let due = ask(store, |writing| writing.due(later, 9));
    assert_eq!(numbers(&due), [1]);
}

fn prepared(store: &mut dyn Store) {
    write(store, |writing| {
        writing.insert(&rows([1]))?;
        writing.add_contradictions(&[against(1, 5)])?;
        writing.advance("someone", &log("web", "s-1"), 3)
    });
}

pub(super) fn an_error_takes_everything_back(store: &mut dyn Store) {
    prepared(store);
    let refused = store.write(&mut |writing| {
        everything(writing)?;
        Err(StoreError::Conflict {
            id: "mine".to_owned(),
            problem: "the work gave up",
        })
    });
    assert!(matches!(refused, Err(StoreError::Conflict { id, .. }) if id == "mine"));
    is_as_prepared(store);
}

pub(super) fn a_rollback_takes_everything_back(store: &mut dyn Store) {
    prepared(store);
    store
        .write(&mut |writing| everything(writing).map(|()| Verdict::Rollback))
        .unwrap();
    is_as_prepared(store);
}

pub(super) fn an_error_that_is_passed_over_takes_everything_back_too(store: &mut dyn Store) {
    prepared(store);
    let refused = store.write(&mut |writing| {
        everything(writing)?;
        assert!(writing.insert(&rows([1])).is_err());
        Ok(Verdict::Commit)
    });
    assert!(
        matches!(refused, Err(StoreError::PassedOver)),
        "{refused:?}"
    );
    is_as_prepared(store);
}

pub(super) fn work_sees_its_own_changes(store: &mut dyn Store) {
    prepared(store);
    write(store, |writing| {
        everything(writing)?;
        assert_eq!(writing.row(&id(1))?.unwrap().revision, 2);
        assert_eq!(writing.row(&id(5))?.unwrap(), Sketch::new(5).row());
        assert_eq!(writing.next("someone", &log("web", "s-2"))?, 8);
        let key = Sketch::new(6).key();
        assert_eq!(numbers(&writing.settled(&key, 9)?), [6]);
        Ok(())
    });
    assert_eq!(found(store, &["statement"]), [6, 5]);
    assert_eq!(store.history(&id(1)).unwrap().len(), 1);
}

pub(super) fn the_next_transaction_sees_nothing_of_one_that_was_taken_back(store: &mut dyn Store) {
    prepared(store);
    for _ in 0..3 {
        store
            .write(&mut |writing| everything(writing).map(|()| Verdict::Rollback))
            .unwrap();
    }
    write(store, everything);
    assert_eq!(store.row(&id(1)).unwrap().unwrap().revision, 2);
    assert_eq!(numbers(&store.scan(None, 9).unwrap()), [1, 5, 6]);
}

pub(super) fn history_comes_in_the_order_of_revisions(store: &mut dyn Store) {
    let row = Sketch::new(1).row();
    let (_, mut first) = changed(&row, ageing());
    let (mut second, mut tenth) = (first.clone(), first.clone());
    first.change.revision = 1;
    second.change.revision = 2;
    tenth.change.revision = 10;
    tenth.at = position(&log("other", "s-9"), u64::MAX);
    write(store, |writing| {
        [&tenth, &first, &second]
            .into_iter()
            .try_for_each(|row| writing.add_history(row))
    });
    assert_eq!(store.history(&id(1)).unwrap(), [first, second, tenth]);
    assert_eq!(store.history(&id(2)).unwrap(), []);
}

pub(super) fn one_revision_has_one_change(store: &mut dyn Store) {
    let (_, history) = changed(&Sketch::new(1).row(), ageing());
    write(store, |writing| writing.add_history(&history));
    let refused = store.write(&mut |writing| {
        writing.add_history(&history)?;
        Ok(Verdict::Commit)
    });
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    assert_eq!(store.history(&id(1)).unwrap(), [history]);
}

pub(super) fn contradictions_are_kept_once(store: &mut dyn Store) {
    for _ in 0..2 {
        write(store, |writing| {
            writing.add_contradictions(&[against(1, 2), against(1, 2), against(2, 1)])
        });
    }
    let pairs = store.scan_contradictions(None, 9).unwrap();
    assert_eq!(pairs, [against(1, 2), against(2, 1)]);
}

pub(super) fn logs_advance(store: &mut dyn Store) {
    let name = log("web", "s-1");
    assert_eq!(ask(store, |writing| writing.next("a", &name)), 0);
    for next in [1, 5, u64::MAX] {
        write(store, |writing| writing.advance("a", &name, next));
        assert_eq!(ask(store, |writing| writing.next("a", &name)), next);
    }
    assert_eq!(ask(store, |writing| writing.next("b", &name)), 0);
    let wanted = AppliedLog {
        signer: "a".to_owned(),
        log: name,
        next: u64::MAX,
    };
    assert_eq!(store.logs().unwrap(), [wanted]);
}

pub(super) fn rows_are_due_longest_first(store: &mut dyn Store) {
    let week = 7 * 86_400;
    let of = |n: u64, observed: u64| Sketch::new(n).observed(observed).row();
    let mut never = of(5, 0);
    never.due_at = None;
    insert(store, &[of(1, 30), of(2, 10), never, of(3, 20), of(4, 10)]);
    let mut due = |moment, limit| numbers(&ask(store, |writing| writing.due(moment, limit)));
    assert_eq!(due(at(week + 9), 9), NONE);
    assert_eq!(due(at(week + 10), 9), [2, 4]);
    assert_eq!(due(at(week + 99), 9), [2, 4, 3, 1]);
    assert_eq!(due(at(week + 99), 3), [2, 4, 3]);

    let (stale, _) = changed(&of(2, 10), ageing());
    write(store, |writing| writing.replace(&stale));
    let mut due = |moment| numbers(&ask(store, |writing| writing.due(moment, 9)));
    assert_eq!(due(at(week + 99)), [4, 3, 1]);
    assert_eq!(due(at(10 + EXPIRED_AFTER.as_secs())), [4, 3, 1, 2]);
}

/// Rows of two installations in two projects, with everything that hangs on them.
fn shared(store: &mut dyn Store) {
    let (one, two) = (keys(1), keys(2));
    let rows = [
        Sketch::new(1).in_log("web", "s-1").row_by(&one),
        Sketch::new(2).in_log("web", "s-1").gated().row_by(&one),
        Sketch::new(3).in_log("web", "t-1").row_by(&two),
        Sketch::new(4).in_log("api", "s-2").row_by(&one),
        // Adopted by the first installation, changed last by the second.
        Sketch::new(5).in_log("web", "s-1").row_by(&two),
    ];
    let histories = rows.iter().map(|row| changed(row, ageing()).1);
    let histories: Vec<_> = histories.collect();
    write(store, |writing| {
        writing.insert(&rows)?;
        histories
            .iter()
            .try_for_each(|row| writing.add_history(row))?;
        writing.add_contradictions(&[against(3, 2), against(3, 4), against(1, 3)])?;
        writing.advance(one.own_id().as_str(), &log("web", "s-1"), 4)?;
        writing.advance(one.own_id().as_str(), &log("api", "s-2"), 5)?;
        writing.advance(two.own_id().as_str(), &log("web", "t-1"), 6)
    });
}

pub(super) fn forgetting_takes_out_what_an_installation_gave(store: &mut dyn Store) {
    shared(store);
    write(store, |writing| {
        writing.forget(keys(1).own_id().as_str(), "web")
    });
    assert_eq!(numbers(&store.scan(None, 9).unwrap()), [3, 4]);
    assert_eq!(found(store, &["statement"]), [4, 3]);
    let histories = (1..=5).map(|n| store.history(&id(n)).unwrap().len());
    assert_eq!(histories.collect::<Vec<_>>(), [0, 0, 1, 1, 0]);
    let pairs = store.scan_contradictions(None, 9).unwrap();
    assert_eq!(pairs, [against(3, 4)]);
    let logs = store.logs().unwrap();
    let mut next: Vec<_> = logs.iter().map(|log| log.next).collect();
    next.sort_unstable();
    assert_eq!(next, [5, 6]);
    // Nothing that is left is touched by forgetting again, or by forgetting strangers.
    write(store, |writing| {
        writing.forget(keys(1).own_id().as_str(), "web")?;
        writing.forget("nobody", "web")
    });
    assert_eq!(numbers(&store.scan(None, 9).unwrap()), [3, 4]);
}

pub(super) fn forgetting_can_be_taken_back(store: &mut dyn Store) {
    shared(store);
    let before = store.scan(None, 9).unwrap();
    store
        .write(&mut |writing| {
            writing.forget(keys(1).own_id().as_str(), "web")?;
            assert_eq!(writing.row(&id(1))?, None);
            writing.insert(&[Sketch::new(1).row()])?;
            writing.forget(keys(2).own_id().as_str(), "web")?;
            Ok(Verdict::Rollback)
        })
        .unwrap();
    assert_eq!(store.scan(None, 9).unwrap(), before);
    assert_eq!(found(store, &["statement"]), [5, 4, 3, 1]);
    let histories: usize = (1..=5).map(|n| store.history(&id(n)).unwrap().len()).sum();
    assert_eq!(histories, 5);
    assert_eq!(store.scan_contradictions(None, 9).unwrap().len(), 3);
    assert_eq!(store.logs().unwrap().len(), 3);
}

pub(super) fn what_was_forgotten_can_come_again(store: &mut dyn Store) {
    let one = keys(1);
    let later = Sketch::new(2).row();
    write(store, |writing| {
        writing.advance(one.own_id().as_str(), &log("web", "s-1"), 1)?;
        writing.insert(&rows([1, 2, 3]))
    });
    write(store, |writing| {
        writing.forget(one.own_id().as_str(), "web")?;
        writing.insert(&rows([3]))?;
        writing.insert(std::slice::from_ref(&later))
    });
    assert_eq!(found(store, &["statement"]), [2, 3], "by the new arrival");
    assert_eq!(
        store.row(&id(2)).unwrap().unwrap().truth,
        Truth::Supported.as_str()
    );
    assert_eq!(number(&id(2)), 2);
}
