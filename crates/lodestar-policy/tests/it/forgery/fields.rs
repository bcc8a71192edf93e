//! Every field of a resolution changed, alone and in pairs: by whoever has the key, and by whoever has
//! not.

use lodestar_core::digest::sha256;
use lodestar_core::id::RequestId;
use serde_json::{Value, json};

use super::*;
use crate::forging::{signed_raw, with_signatures_of};

/// In the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Form,
    Early,
    Expired,
    Session,
    Request,
    Fingerprint,
    Card,
    Policy,
    Approver,
    Repeated,
    /// A no. It ends the request, and opens nothing.
    Denied,
    /// Whoever has the key may say it so as well.
    Nothing,
}

/// One change of one field, and the check that finds it.
#[derive(Clone)]
struct Change {
    field: String,
    to: Option<Value>,
    found: Found,
}

impl Change {
    fn apply(&self, payload: &mut Value) {
        let (parent, name) = self.field.rsplit_once('/').unwrap();
        let parent = payload.pointer_mut(parent).unwrap();
        let fields = parent.as_object_mut().unwrap();
        match &self.to {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
    }
}

fn to(field: &str, to: impl serde::Serialize, found: Found) -> Change {
    Change {
        field: field.to_owned(),
        to: Some(serde_json::to_value(to).unwrap()),
        found,
    }
}

/// Changes of what is said.
fn meanings() -> Vec<Change> {
    use Found::*;
    let microsecond = std::time::Duration::from_micros(5_000_001);
    let mut fingerprint = issued().subject.fingerprint.to_string();
    let last = if fingerprint.pop() == Some('0') {
        '1'
    } else {
        '0'
    };
    fingerprint.push(last);
    vec![
        to("/key_id", key(6).public().key_id(), Form),
        to("/key_id", key(99).public().key_id(), Form),
        to("/issued_at", now().checked_add(microsecond).unwrap(), Early),
        to("/issued_at", later(3600), Early),
        to("/expires_at", now(), Expired),
        to("/expires_at", earlier(3600), Expired),
        to("/subject/session", "s-2", Session),
        to("/subject/session", "S-1", Session),
        to(
            "/subject/request",
            RequestId::from_parts(1, [5; 10]),
            Request,
        ),
        to(
            "/subject/request",
            RequestId::from_parts(2, [4; 10]),
            Request,
        ),
        to("/subject/fingerprint", fingerprint, Fingerprint),
        to("/subject/fingerprint", sha256(b"another act"), Fingerprint),
        to("/subject/card", sha256(b"another card"), Card),
        to("/subject/card", sha256(b"policy"), Card),
        to("/subject/policy", sha256(b"another policy"), Policy),
        to("/subject/policy", asked().card_digest, Policy),
        to("/subject/approver", "fred", Approver),
        to("/subject/approver", "Alice", Approver),
        to("/subject/approver", "root", Approver),
        to("/nonce", Nonce::from_bytes(SEEN), Repeated),
        to("/subject/decision", "deny", Denied),
        to("/issued_at", later(5), Nothing),
        to("/issued_at", earlier(3600), Nothing),
        to("/expires_at", later(3600), Nothing),
        to("/nonce", Nonce::from_bytes([77; 16]), Nothing),
        to("/subject/reason", "", Nothing),
        to("/subject/reason", "decision=match\ngranted", Nothing),
    ]
}

/// Changes of form: none of it is a resolution any more.
fn forms() -> Vec<Change> {
    let fields = [
        "/expires_at",
        "/issued_at",
        "/key_id",
        "/nonce",
        "/subject",
        "/subject/approver",
        "/subject/card",
        "/subject/decision",
        "/subject/fingerprint",
        "/subject/policy",
        "/subject/reason",
        "/subject/request",
        "/subject/session",
    ];
    let values = [
        json!(null),
        json!(7),
        json!(["x"]),
        json!({"x": 1}),
        json!(""),
    ];
    let mut all: Vec<Change> = Vec::new();
    for field in fields {
        let values = values.iter().cloned().map(Some);
        for value in values.chain([None]) {
            let may_be_so = (field == "/subject/reason" && value == Some(json!("")))
                || (field == "/expires_at" && value.is_none());
            if !may_be_so {
                all.push(Change {
                    field: field.to_owned(),
                    to: value,
                    found: Found::Form,
                });
            }
        }
    }
    // What nobody may say of themselves, and other spellings of what may be said.
    for (field, value) in [
        ("/subject/roles", json!(["dev", "owner"])),
        ("/subject/role", json!("dev")),
        ("/subject/clearance", json!("L5")),
        ("/subject/scope", json!("*")),
        ("/subject/quorum", json!(1)),
        ("/roles", json!(["dev"])),
        ("/subject/decision", json!("Grant")),
        ("/subject/decision", json!("match")),
        ("/subject/decision", json!(true)),
        ("/nonce", json!("01".repeat(17))),
    ] {
        all.push(to(field, value, Found::Form));
    }
    all
}

fn found(heard: &Result<Counted, Refusal>) -> Found {
    match heard {
        Ok(Counted::Grant { .. }) => Found::Nothing,
        Ok(Counted::Deny(_)) => Found::Denied,
        Err(refusal) => match refusal {
            Refusal::Statement { .. } => Found::Form,
            Refusal::NotYetIssued { .. } => Found::Early,
            Refusal::Expired { .. } => Found::Expired,
            Refusal::OtherSession => Found::Session,
            Refusal::OtherRequest => Found::Request,
            Refusal::OtherFingerprint => Found::Fingerprint,
            Refusal::OtherCard => Found::Card,
            Refusal::OtherPolicy => Found::Policy,
            Refusal::OtherApprover => Found::Approver,
            Refusal::Repeated => Found::Repeated,
            other => panic!("{other}"),
        },
    }
}

/// Each of them alone, and every two that do not touch the same field.
fn alone_and_in_pairs(all: &[Change]) -> Vec<Vec<&Change>> {
    let mut changes: Vec<Vec<&Change>> = all.iter().map(|one| vec![one]).collect();
    for (at, one) in all.iter().enumerate() {
        let touches = |other: &&Change| {
            let (a, b) = (format!("{}/", one.field), format!("{}/", other.field));
            a.starts_with(&b) || b.starts_with(&a)
        };
        let others = all[at + 1..].iter().filter(|other| !touches(other));
        changes.extend(others.map(|other| vec![one, other]));
    }
    changes
}

#[test]
fn matrix_every_field_alone_and_in_pairs() {
    let (half_open, honest) = (half_open(), honest());
    let mut all = meanings();
    all.extend(forms());
    let mut counts = Counts::default();
    let mut others = 0;
    for changes in alone_and_in_pairs(&all) {
        let mut changed = payload(&honest);
        for change in &changes {
            change.apply(&mut changed);
        }
        let named: Vec<_> = changes.iter().map(|one| (&one.field, &one.to)).collect();
        let kind = ["", "one field", "two fields"][changes.len()];
        let signed = signed_raw(APPROVAL, &changed, &[&key(1)]);
        let stale = with_signatures_of(&honest, &signed);
        let refusal = refused(&half_open, &stale, now());
        let bad = matches!(refusal, Refusal::BadSignature { .. });
        assert!(bad, "{named:?}: {refusal}");
        counts.note(format!("{kind}, not signed again"));

        let wanted = changes.iter().map(|one| one.found).min().unwrap();
        let mut requests = half_open.clone();
        let heard = hear(&mut requests, &signed, now());
        assert_eq!(found(&heard), wanted, "{named:?}: {heard:?}");
        let standing = requests.standing(asked().id).unwrap();
        match wanted {
            Found::Nothing => {
                assert_eq!(standing, Standing::Granted, "{named:?}");
                others += 1;
            }
            Found::Denied => {
                let denial = Denial {
                    approver: "alice".parse().unwrap(),
                    reason: changed["subject"]["reason"].as_str().unwrap().to_owned(),
                };
                assert_eq!(heard, Ok(Counted::Deny(denial)));
                counts.note("a no");
            }
            _ => {
                assert_eq!(standing, Standing::Open, "{named:?}");
                counts.note(format!("{kind}, signed again"));
            }
        }
    }
    counts.print("resolutions, fields");
    println!(
        "({others} were rightly signed and said the same with other dates, nonces or reasons)"
    );
}
