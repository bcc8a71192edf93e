//! The forgery matrix of confirmations: 0 matches, and each forgery has its own reason.
//!
//! By default every field alone and in pairs, and a fixed sample of changed bytes; all of them with
//! `LODESTAR_MATRIX=full`.

use std::collections::BTreeMap;

use lodestar_core::digest::sha256;
use lodestar_core::statement::confirmation::{ConfirmationField, ConsumeLedger, MemoryLedger};
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Envelope, Issued,
};
use lodestar_policy::confirmation::{Distrust, Mode, Settled, Unmatched, settle};
use serde_json::{Value, json};

use super::{
    alices, card, confirmations, earlier, enforced, held, issued, key, later, now, reason, signed,
};
use crate::forging::{cut_and_doubled, every_byte_changed, with_signatures_of};

type Change = fn(&mut Issued<Confirmation>);

/// One change, and the check that finds it.
struct Forgery {
    name: &'static str,
    change: Change,
    found: Found,
}

/// In the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Origin,
    Operator,
    Consumed,
    Early,
    Expired,
    Overlong,
    Mismatch(usize),
    Declined,
}

impl Found {
    fn field(field: ConfirmationField) -> Self {
        let place = ConfirmationField::ALL.iter().position(|one| *one == field);
        Self::Mismatch(place.unwrap())
    }

    /// Where two changes touch one check.
    fn is_same_check(self, other: Self) -> bool {
        matches!((self, other), (Self::Mismatch(_), Self::Mismatch(_)))
    }
}

const SPENT: [u8; 16] = [0xEE; 16];

fn put(it: &mut Issued<Confirmation>, argument: &str, value: Value) {
    let arguments = &mut it.subject.act.arguments;
    arguments.insert(argument.to_owned(), value);
}

fn forgeries() -> Vec<Forgery> {
    use ConfirmationField as Field;
    let field = |name, field, change: Change| Forgery {
        name,
        change,
        found: Found::field(field),
    };
    let other = |name, found, change: Change| Forgery {
        name,
        change,
        found,
    };
    vec![
        other("origin", Found::Origin, |it| {
            it.subject.origin = ConfirmationOrigin::OperatorContractReview;
        }),
        other("operator", Found::Operator, |it| {
            it.subject.operator = "bob".parse().unwrap();
        }),
        other("spent id", Found::Consumed, |it| {
            it.subject.id = ConfirmationId::from_bytes(SPENT);
        }),
        other("issued in the future", Found::Early, |it| {
            it.issued_at = later(6);
        }),
        other("expired now", Found::Expired, |it| {
            it.expires_at = Some(now());
        }),
        other("expired long ago", Found::Expired, |it| {
            it.expires_at = Some(earlier(3600));
        }),
        other("issued long ago and lasting", Found::Overlong, |it| {
            it.issued_at = earlier(24 * 3600);
        }),
        other("without an end", Found::Overlong, |it| {
            it.expires_at = None;
        }),
        field("kind", Field::Kind, |it| {
            it.subject.act.kind = "destructive".parse().unwrap();
        }),
        field("tool", Field::Tool, |it| {
            it.subject.act.tool = "fs.delete".parse().unwrap();
        }),
        field("server", Field::Server, |it| {
            it.subject.act.server = "mail".parse().unwrap();
        }),
        field("definition", Field::Definition, |it| {
            it.subject.act.tool_definition = sha256(b"another definition");
        }),
        field("contract", Field::Contract, |it| {
            it.subject.act.contract = sha256(b"another contract");
        }),
        field("path", Field::Path, |it| {
            it.subject.act.paths = vec!["a/c".to_owned()];
        }),
        field("no path", Field::Path, |it| it.subject.act.paths.clear()),
        field("path outside", Field::Path, |it| {
            it.subject.act.paths = vec!["../a/b".to_owned()];
        }),
        field("path twice", Field::Path, |it| {
            it.subject.act.paths = vec!["a/b".to_owned(), "a/b".to_owned()];
        }),
        field("scope", Field::Scope, |it| {
            it.subject.act.scope = lodestar_core::scope::Scope::global();
        }),
        field("argument changed", Field::Payload, |it| {
            put(it, "content", json!("text "));
        }),
        field("argument added", Field::Payload, |it| {
            put(it, "force", Value::Null);
        }),
        field("argument removed", Field::Payload, |it| {
            it.subject.act.arguments.remove("n");
        }),
        field("argument of another type", Field::Payload, |it| {
            put(it, "n", json!("1"));
        }),
        field("argument path elsewhere", Field::Payload, |it| {
            put(it, "path", json!("a/c"));
        }),
        field("session", Field::Session, |it| {
            it.subject.session = "s-2".parse().unwrap();
        }),
        other("decision", Found::Declined, |it| {
            it.subject.decision = ConfirmationDecision::Decline;
        }),
    ]
}

fn found(reason: &Unmatched) -> Vec<Found> {
    match reason {
        Unmatched::Untrusted { why } => match why {
            Distrust::OtherOrigin { .. } => vec![Found::Origin],
            Distrust::OtherOperator { .. } => vec![Found::Operator],
            other => panic!("{other}"),
        },
        Unmatched::Consumed => vec![Found::Consumed],
        Unmatched::NotYetValid { .. } => vec![Found::Early],
        Unmatched::Expired { .. } => vec![Found::Expired],
        Unmatched::Overlong { .. } => vec![Found::Overlong],
        Unmatched::Mismatch { fields } => fields.iter().map(|one| Found::field(*one)).collect(),
        Unmatched::Declined { .. } => vec![Found::Declined],
        Unmatched::Missing => panic!("something was sent"),
    }
}

/// What becomes of it where one confirmation was spent before.
fn weighed(sent: &[u8]) -> Settled {
    let (act, set) = (held(&card()), confirmations(Mode::Enforce));
    let mut ledger = MemoryLedger::default();
    let mut spent = issued(&card());
    spent.subject.id = ConfirmationId::from_bytes(SPENT);
    settle(Some(&signed(&spent)), &act, &set, &mut ledger, now()).unwrap();
    assert!(ledger.is_spent(spent.subject.id).unwrap());
    settle(Some(sent), &act, &set, &mut ledger, now()).unwrap()
}

fn with(changes: &[&Forgery]) -> Issued<Confirmation> {
    let mut changed = issued(&card());
    for forgery in changes {
        (forgery.change)(&mut changed);
    }
    changed
}

/// Somebody without the key: the payload is changed, the signature stays.
fn unsigned(changed: &Issued<Confirmation>) -> Vec<u8> {
    with_signatures_of(&signed(&issued(&card())), &signed(changed))
}

#[test]
fn matrix_every_field_alone_and_in_pairs() {
    let all = forgeries();
    let mut counts = BTreeMap::new();
    let mut note = |kind: &'static str| *counts.entry(kind).or_insert(0_u32) += 1;
    for one in &all {
        let reason = reason(weighed(&signed(&with(&[one]))));
        assert_eq!(found(&reason), [one.found], "{}: {reason}", one.name);
        note("one field, signed");
    }
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let changed = with(&[one, other]);
            let reason = reason(weighed(&signed(&changed)));
            let (first, second) = (one.found.min(other.found), one.found.max(other.found));
            let found = found(&reason);
            let names = (one.name, other.name);
            if first.is_same_check(second) {
                let mut wanted = vec![first, second];
                wanted.dedup();
                assert_eq!(found, wanted, "{names:?}: {reason}");
            } else if !is_about_dates(first) || !is_about_dates(second) {
                assert_eq!(found, [first], "{names:?}: {reason}");
            } else {
                // Two changed dates make another life, which is wrong in its own way.
                assert!(is_about_dates(found[0]), "{names:?}: {reason}");
            }
            note("two fields, signed");
        }
    }
    for (at, one) in all.iter().enumerate() {
        for other in &all[at..] {
            let refused = reason(weighed(&unsigned(&with(&[one, other]))));
            let bad = matches!(
                &refused,
                Unmatched::Untrusted {
                    why: Distrust::BadSignature { .. }
                }
            );
            assert!(bad, "{} {}: {refused}", one.name, other.name);
            note("one or two fields, not signed again");
        }
    }
    println!("confirmation forgeries: 0 matches among {counts:?}");
}

fn is_about_dates(found: Found) -> bool {
    matches!(found, Found::Early | Found::Expired | Found::Overlong)
}

#[test]
fn matrix_every_byte_of_the_envelope() {
    let honest = signed(&issued(&card()));
    assert!(matches!(
        enforced(&honest, &card(), now()),
        Settled::Confirmed(..)
    ));
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    every_byte_changed(&honest, |at, forged| {
        let refused = reason(enforced(forged, &card(), now()));
        let Unmatched::Untrusted { why } = &refused else {
            panic!("byte {at}: {refused}")
        };
        let why = serde_json::to_value(why).unwrap()["distrust"].to_string();
        *counts.entry(why).or_default() += 1;
    });
    let total: u32 = counts.values().sum();
    println!("changed bytes: 0 matches among {total} envelopes {counts:?}");
}

#[test]
fn matrix_cut_doubled_and_signed_by_others() {
    let honest = signed(&issued(&card()));
    let mut forged = cut_and_doubled(&honest);
    for seed in 3..64 {
        let mut issued = issued(&card());
        issued.key_id = key(seed).public().key_id();
        forged.push(Envelope::sign(&issued, &key(seed)).unwrap().to_json());
    }
    // Another's signature under Alice's name.
    let mut value: Value = serde_json::from_slice(&honest).unwrap();
    let other = Envelope::sign(&with_key(3), &key(3)).unwrap().to_json();
    let other: Value = serde_json::from_slice(&other).unwrap();
    value["signatures"][0]["sig"] = other["signatures"][0]["sig"].clone();
    forged.push(serde_json::to_vec(&value).unwrap());
    value["signatures"] = json!([]);
    forged.push(serde_json::to_vec(&value).unwrap());
    for sent in &forged {
        let refused = reason(enforced(sent, &card(), now()));
        assert!(matches!(refused, Unmatched::Untrusted { .. }), "{refused}");
    }
    println!(
        "cut, doubled, signed by others: 0 matches among {}",
        forged.len()
    );
}

fn with_key(seed: u8) -> Issued<Confirmation> {
    let mut issued = issued(&card());
    issued.key_id = key(seed).public().key_id();
    issued
}

/// A copy of an envelope, and the clock set back to when it was good: the ledger remembers.
#[test]
fn matrix_a_copy_never_counts_whatever_the_clock_says() {
    let (act, set) = (held(&card()), confirmations(Mode::Enforce));
    let mut ledger = MemoryLedger::default();
    let sent = signed(&issued(&card()));
    let first = settle(Some(&sent), &act, &set, &mut ledger, later(20)).unwrap();
    assert!(matches!(first, Settled::Confirmed(..)));
    let mut copies = 0;
    for second in -60_i64..=60 {
        let at = earlier(-second);
        let copy = settle(Some(&sent.clone()), &act, &set, &mut ledger, at).unwrap();
        assert_eq!(reason(copy), Unmatched::Consumed, "at {at}");
        copies += 1;
    }
    assert_eq!(alices().public(), key(1).public());
    println!("copies of a spent envelope: 0 matches among {copies}");
}
