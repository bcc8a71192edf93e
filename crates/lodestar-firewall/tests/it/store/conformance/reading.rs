//! Questions past the context policy.

use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::id::BeliefId;
use lodestar_firewall::event::Contradiction;
use lodestar_firewall::store::{ListQuery, Store, Tally};

use super::super::rows::{Sketch, WEB, against, at, id, log, rows};
use super::{NONE, ask, insert, numbers, query, write};

pub(super) fn an_empty_store_has_nothing(store: &mut dyn Store) {
    assert!(!store.describe().is_empty());
    assert_eq!(store.row(&id(1)).unwrap(), None);
    assert_eq!(store.rows_starting("", 9).unwrap(), []);
    assert_eq!(store.context(&query(&[])).unwrap(), []);
    assert_eq!(listed(store, |_| ()), NONE);
    assert_eq!(store.disputes(&[id(1)], 9).unwrap(), []);
    assert_eq!(store.disputes(&[], 9).unwrap(), []);
    assert_eq!(store.history(&id(1)).unwrap(), []);
    assert_eq!(store.scan(None, 9).unwrap(), []);
    assert_eq!(store.scan_contradictions(None, 9).unwrap(), []);
    assert_eq!(store.logs().unwrap(), []);
    assert_eq!(store.tally().unwrap(), []);
    write(store, |writing| {
        writing.insert(&[])?;
        writing.add_contradictions(&[])
    });
    assert_eq!(store.scan(None, 9).unwrap(), []);
}

fn listed(store: &mut dyn Store, narrow: impl FnOnce(&mut ListQuery)) -> Vec<u64> {
    let mut query = ListQuery {
        limit: 99,
        ..ListQuery::default()
    };
    narrow(&mut query);
    numbers(&store.list(&query).unwrap())
}

pub(super) fn one_row_is_found_by_its_id(store: &mut dyn Store) {
    insert(store, &rows([1, 2]));
    assert_eq!(store.row(&id(2)).unwrap().unwrap(), Sketch::new(2).row());
    assert_eq!(store.row(&id(3)).unwrap(), None);
}

pub(super) fn rows_are_found_by_the_beginning_of_their_id(store: &mut dyn Store) {
    insert(store, &rows([0x2_0000, 3, 1, 2]));
    let mut starting = |prefix: &str, limit| numbers(&store.rows_starting(prefix, limit).unwrap());
    let shared = &id(1).to_string()[..10];
    assert_eq!(starting(shared, 9), [1, 2, 3, 0x2_0000]);
    assert_eq!(starting(shared, 2), [1, 2]);
    assert_eq!(starting("", 9), [1, 2, 3, 0x2_0000]);
    assert_eq!(starting(&id(2).to_string(), 9), [2]);
    let millis = id(0x2_0000).to_string();
    let (own, _) = millis.rsplit_once('-').unwrap();
    assert_eq!(starting(own, 9), [0x2_0000]);
    assert_eq!(starting(&format!("{}_f", BeliefId::PREFIX), 9), NONE);
    assert_eq!(starting("a", 9), NONE);
    assert_eq!(starting("z", 9), NONE);
}

/// Four rows with one key: settled, unverified, contradicted, superseded; and a stranger.
fn of_one_key(store: &mut dyn Store) {
    let of = |n, truth| {
        let sketch = Sketch::new(n).about("file:shared");
        sketch.axes(|axes| axes.truth = truth).row()
    };
    let call = Sketch::new(6).about("call:inv-6").row();
    insert(
        store,
        &[
            of(1, Truth::Supported),
            of(2, Truth::Unverified),
            of(3, Truth::Contradicted),
            of(4, Truth::Superseded),
            Sketch::new(5).row(),
            call,
            of(7, Truth::Unverified),
            of(8, Truth::Supported),
        ],
    );
}

pub(super) fn settled_and_unverified_rows_are_told_apart(store: &mut dyn Store) {
    of_one_key(store);
    let key = Sketch::new(1).about("file:shared").key();
    let settled = ask(store, |writing| writing.settled(&key, 99));
    assert_eq!(numbers(&settled), [8, 3, 1]);
    let settled = ask(store, |writing| writing.settled(&key, 2));
    assert_eq!(numbers(&settled), [8, 3]);
    let unverified = ask(store, |writing| writing.unverified(&key, 99));
    assert_eq!(numbers(&unverified), [7, 2]);
    let unverified = ask(store, |writing| writing.unverified(&key, 1));
    assert_eq!(numbers(&unverified), [7]);
}

pub(super) fn a_colliding_key_hash_finds_nothing_else(store: &mut dyn Store) {
    let wanted = Sketch::new(1).key();
    let mut colliding = Sketch::new(2).row();
    colliding.key = Some(wanted.hash);
    let mut unverified = Sketch::new(3).gated().row();
    unverified.key = Some(wanted.hash);
    insert(store, &[Sketch::new(1).row(), colliding, unverified]);
    let settled = ask(store, |writing| writing.settled(&wanted, 9));
    assert_eq!(numbers(&settled), [1]);
    let unverified = ask(store, |writing| writing.unverified(&wanted, 9));
    assert_eq!(numbers(&unverified), NONE);
}

pub(super) fn lists_come_newest_first(store: &mut dyn Store) {
    insert(store, &rows([2, 9, 1]));
    insert(store, &[Sketch::new(5).gated().row()]);
    assert_eq!(listed(store, |_| ()), [5, 1, 9, 2]);
    assert_eq!(listed(store, |query| query.limit = 2), [5, 1]);
}

pub(super) fn a_list_is_filtered_by_everything_it_names(store: &mut dyn Store) {
    let of = Sketch::new;
    insert(
        store,
        &[
            of(1).row(),
            of(2).axes(|axes| axes.truth = Truth::Contradicted).row(),
            of(3).axes(|axes| axes.retrieval = Retrieval::Blocked).row(),
            of(4).axes(|axes| axes.security = Security::Malicious).row(),
            of(5).axes(|axes| axes.freshness = Freshness::Expired).row(),
            of(6).within("global").row(),
            of(7).in_log("web", "s-7").row(),
        ],
    );
    let scopes = |scopes: &[&str]| Some(scopes.iter().map(|s| (*s).to_owned()).collect());
    assert_eq!(listed(store, |q| q.truth = Some(Truth::Contradicted)), [2]);
    assert_eq!(
        listed(store, |q| q.retrieval = Some(Retrieval::Blocked)),
        [3]
    );
    assert_eq!(
        listed(store, |q| q.security = Some(Security::Malicious)),
        [4]
    );
    assert_eq!(
        listed(store, |q| q.freshness = Some(Freshness::Expired)),
        [5]
    );
    assert_eq!(listed(store, |q| q.scopes = scopes(&["global"])), [6]);
    assert_eq!(listed(store, |q| q.scopes = scopes(&[])), NONE);
    assert_eq!(
        listed(store, |q| q.scopes = scopes(&["global", WEB])),
        [7, 6, 5, 4, 3, 2, 1]
    );
    assert_eq!(listed(store, |q| q.session = Some("s-7".to_owned())), [7]);
    assert_eq!(listed(store, |q| q.session = Some("s".to_owned())), NONE);
    let two = |q: &mut ListQuery| {
        q.truth = Some(Truth::Supported);
        q.freshness = Some(Freshness::Fresh);
        q.limit = 3;
    };
    assert_eq!(listed(store, two), [7, 6, 4]);
}

pub(super) fn a_list_finds_text_in_either_case(store: &mut dyn Store) {
    insert(
        store,
        &[
            Sketch::new(1).says("Die STRASSE nach Köln").row(),
            Sketch::new(2).says("ΟΔΟΣ 100%_done").row(),
            Sketch::new(3).about("file:Öde/\u{212A}elvin").row(),
            Sketch::new(4).says("nothing of the kind").gated().row(),
        ],
    );
    let mut containing =
        |text: &str| listed(store, |query| query.containing = Some(text.to_owned()));
    assert_eq!(containing("straße"), NONE);
    assert_eq!(containing("strasse NACH kÖLN"), [1]);
    assert_eq!(containing("οδο"), [2]);
    assert_eq!(containing("%_D"), [2]);
    assert_eq!(containing("_"), [2]);
    assert_eq!(containing("öDE"), [3]);
    assert_eq!(containing("kelvin"), [3], "the Kelvin sign is a k");
    assert_eq!(containing("OF THE"), [4]);
    assert_eq!(containing("number"), NONE, "objects are not searched");
    assert_eq!(containing(""), [4, 3, 2, 1]);
    let first = listed(store, |query| {
        query.containing = Some("n".to_owned());
        query.limit = 1;
    });
    assert_eq!(first, [4]);
}

pub(super) fn disputes_come_in_the_order_asked_for(store: &mut dyn Store) {
    write(store, |writing| {
        writing.add_contradictions(&[against(1, 7), against(1, 9), against(2, 8), against(1, 8)])
    });
    let found = store.disputes(&[id(2), id(3), id(1)], 9).unwrap();
    let beliefs: Vec<_> = found.iter().map(|dispute| dispute.belief).collect();
    assert_eq!(beliefs, [id(2), id(1)]);
    assert_eq!(found[0].against, [id(8)]);
    assert_eq!(found[1].against, [id(9), id(8), id(7)], "newest first");
    assert!(!found[0].more && !found[1].more);
}

pub(super) fn disputes_say_when_there_are_more(store: &mut dyn Store) {
    write(store, |writing| {
        writing.add_contradictions(&[against(1, 7), against(1, 9), against(1, 8)])
    });
    for (limit, shown) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3)] {
        let found = store.disputes(&[id(1)], limit).unwrap();
        assert_eq!(found[0].against.len(), shown);
        assert_eq!(found[0].more, limit < 3);
    }
    let twice = store.disputes(&[id(1), id(1)], 1).unwrap();
    assert_eq!(twice.len(), 2);
    assert_eq!(twice[0], twice[1]);
}

pub(super) fn a_scan_goes_through_all_rows_once(store: &mut dyn Store) {
    let backwards: Vec<u64> = (0..25).rev().collect();
    insert(store, &rows(backwards));
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.scan(after.as_deref(), 7).unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 7);
        after = Some(last.id.clone());
        all.extend(numbers(&page));
    }
    assert_eq!(all, (0..25).collect::<Vec<_>>());
    assert_eq!(store.scan(Some("zzz"), 9).unwrap(), []);
    assert_eq!(store.scan(Some(""), 99).unwrap().len(), 25);
}

pub(super) fn a_scan_goes_through_all_contradictions_once(store: &mut dyn Store) {
    let mut wanted: Vec<Contradiction> = (0..20).map(|n| against(n % 3, n)).collect();
    write(store, |writing| writing.add_contradictions(&wanted));
    wanted.sort();
    let mut all = Vec::new();
    loop {
        let page = store.scan_contradictions(all.last().copied(), 6).unwrap();
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    assert_eq!(all, wanted);
}

pub(super) fn logs_come_in_order(store: &mut dyn Store) {
    let names = [
        ("b", "web", "s-1"),
        ("a", "web", "s-2"),
        ("a", "Web", "s-2"),
        ("a", "web", "S-1"),
        ("a", "web", "s-10"),
        ("B", "api", "s-1"),
        ("a", "we-b", "s-1"),
    ];
    write(store, |writing| {
        names.iter().try_for_each(|(signer, project, session)| {
            writing.advance(signer, &log(project, session), 1)
        })
    });
    let logs = store.logs().unwrap();
    assert_eq!(logs.len(), names.len());
    assert!(logs.is_sorted(), "{logs:?}");
}

pub(super) fn the_tally_counts_every_place(store: &mut dyn Store) {
    let gated = |n| Sketch::new(n).gated().row();
    insert(store, &[gated(1), gated(2), Sketch::new(3).row()]);
    let place = |truth: &str, retrieval: &str, rows| Tally {
        truth: truth.to_owned(),
        retrieval: retrieval.to_owned(),
        security: "clean".to_owned(),
        freshness: "fresh".to_owned(),
        rows,
    };
    let wanted = [
        place("supported", "normal", 1),
        place("unverified", "restricted", 2),
    ];
    assert_eq!(store.tally().unwrap(), wanted);
}

pub(super) fn a_limit_of_nothing_gives_nothing(store: &mut dyn Store) {
    of_one_key(store);
    let key = Sketch::new(1).about("file:shared").key();
    write(store, |w| w.add_contradictions(&[against(1, 2)]));
    let none = super::ContextQuery {
        limit: 0,
        ..query(&[])
    };
    assert_eq!(store.context(&none).unwrap(), []);
    assert_eq!(listed(store, |query| query.limit = 0), NONE);
    assert_eq!(store.rows_starting("", 0).unwrap(), []);
    assert_eq!(store.scan(None, 0).unwrap(), []);
    assert_eq!(store.scan_contradictions(None, 0).unwrap(), []);
    assert_eq!(ask(store, |w| w.settled(&key, 0)), []);
    assert_eq!(ask(store, |w| w.unverified(&key, 0)), []);
    assert_eq!(ask(store, |w| w.due(at(99_999_999), 0)), []);
}

pub(super) fn there_is_no_limit_too_large(store: &mut dyn Store) {
    of_one_key(store);
    let key = Sketch::new(1).about("file:shared").key();
    write(store, |w| w.add_contradictions(&[against(1, 2)]));
    let all = super::ContextQuery {
        limit: usize::MAX,
        ..query(&[])
    };
    assert_eq!(numbers(&store.context(&all).unwrap()), [8, 6, 5, 1]);
    assert_eq!(listed(store, |query| query.limit = usize::MAX).len(), 8);
    assert_eq!(store.rows_starting("", usize::MAX).unwrap().len(), 8);
    assert_eq!(store.scan(None, usize::MAX).unwrap().len(), 8);
    assert_eq!(store.disputes(&[id(1)], usize::MAX).unwrap().len(), 1);
    let pairs = store.scan_contradictions(None, usize::MAX).unwrap();
    assert_eq!(pairs.len(), 1);
    assert_eq!(ask(store, |w| w.settled(&key, usize::MAX)).len(), 3);
    assert_eq!(ask(store, |w| w.unverified(&key, usize::MAX)).len(), 2);
    let due = ask(store, |w| w.due(at(99_999_999), usize::MAX));
    assert_eq!(due.len(), 8);
}
