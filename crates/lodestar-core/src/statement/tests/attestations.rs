//! The in-toto form: how it is written, and that nothing about it can be altered.

use serde_json::json;

use super::devices::{account, device, runner};
use super::*;
use crate::id::{ContenderId, RunId};
use crate::name::SessionId;

const WINDOW: Duration = Duration::from_secs(300);

fn attestation() -> Attestation {
    Attestation {
        session: SessionId::new("s-1").unwrap(),
        root: sha256(b"root"),
        predicate: RunPredicate {
            account: account(),
            agent: ContenderId::from_parts(4, [4; 10]),
            bundle: sha256(b"bundle"),
            device: device(),
            issued_at: now(),
            key_id: key(1).public().key_id(),
            lens_hash: Some(sha256(b"lens")),
            nonce: Nonce::from_bytes([0xcd; 16]),
            policy: sha256(b"policy"),
            run: RunId::from_parts(5, [5; 10]),
            run_nonce: Nonce::from_bytes([0xef; 16]),
            runner: runner(1),
            size: 42,
            workflow_hash: Some(sha256(b"workflow")),
        },
    }
}

fn attestation_type() -> &'static str {
    StatementKind::Attestation.payload_type()
}

fn check(envelope: &Envelope) -> Result<Attestation, StatementError> {
    envelope
        .verify_attestation(&trusted(), now(), WINDOW)
        .map(|verified| verified.attestation().clone())
}

fn signed(payload: &Value) -> Result<Attestation, StatementError> {
    let payload = canonical::to_vec(payload).unwrap();
    check(&envelope(attestation_type(), &payload, &[key(1)]))
}

fn payload() -> Value {
    serde_json::to_value(attestation()).unwrap()
}

#[test]
fn an_attestation_verifies_after_a_round_trip() {
    let made = Envelope::attest(&attestation(), &key(1)).unwrap();
    let read = Envelope::from_json(&made.to_json()).unwrap();
    assert_eq!(read.kind(), Some(StatementKind::Attestation));
    assert_eq!(read.unverified_attestation(), Ok(attestation()));
    let verified = read.verify_attestation(&trusted(), now(), WINDOW).unwrap();
    assert_eq!(verified.attestation(), &attestation());
    assert_eq!(verified.predicate(), &attestation().predicate);
    assert_eq!(verified.key(), &key(1).public());
    assert_eq!(verified.digest(), made.digest());
    assert_eq!(verified.statement(), sha256(made.unverified_payload()));
}

#[test]
fn it_is_an_in_toto_statement_about_the_root_of_a_log() {
    let expected = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "predicate": {
            "account": account(),
            "agent": ContenderId::from_parts(4, [4; 10]),
            "bundle": sha256(b"bundle"),
            "device": device(),
            "issued_at": "2026-11-15T21:50:00.123456Z",
            "key_id": key(1).public().key_id(),
            "lens_hash": sha256(b"lens"),
            "nonce": "cd".repeat(16),
            "policy": sha256(b"policy"),
            "run": RunId::from_parts(5, [5; 10]),
            "run_nonce": "ef".repeat(16),
            "runner": runner(1),
            "size": 42,
            "workflow_hash": sha256(b"workflow"),
        },
        "predicateType": "https://lodestar.dev/attestation/run/v1",
        "subject": [{"digest": {"sha256": sha256(b"root")}, "name": "s-1"}],
    });
    let made = Envelope::attest(&attestation(), &key(1)).unwrap();
    assert_eq!(
        made.unverified_payload(),
        canonical::to_vec(&expected).unwrap()
    );
    assert_eq!(made.payload_type(), "application/vnd.in-toto+json");
    let mut bare = attestation();
    bare.predicate.workflow_hash = None;
    bare.predicate.lens_hash = None;
    let made = Envelope::attest(&bare, &key(1)).unwrap();
    let text = String::from_utf8_lossy(made.unverified_payload());
    assert!(!text.contains("hash") && !text.contains("null"), "{text}");
    assert_eq!(check(&made), Ok(bare));
}

#[test]
fn every_field_that_is_altered_after_signing_is_noticed() {
    let good = Envelope::attest(&attestation(), &key(1)).unwrap();
    let mut altered = 0;
    let mut alter = |pointer: &str| {
        let mut changed = payload();
        let value = changed.pointer_mut(pointer).unwrap();
        *value = match &*value {
            Value::Number(number) => json!(number.as_u64().unwrap() + 1),
            Value::String(text) => json!(format!("{}0", &text[..text.len() - 1])),
            other => panic!("{other}"),
        };
        if changed == payload() {
            *changed.pointer_mut(pointer).unwrap() = json!("1");
        }
        let tampered = Envelope {
            payload: canonical::to_vec(&changed).unwrap(),
            ..good.clone()
        };
        let bad = StatementError::BadSignature(key(1).public().key_id());
        assert_eq!(check(&tampered), Err(bad), "{pointer}");
        altered += 1;
    };
    for pointer in [
        "/_type",
        "/predicateType",
        "/subject/0/name",
        "/subject/0/digest/sha256",
    ] {
        alter(pointer);
    }
    for field in payload()["predicate"].as_object().unwrap().keys() {
        alter(&format!("/predicate/{field}"));
    }
    assert_eq!(altered, 4 + 14);
}

#[test]
fn a_payload_of_another_form_is_refused_even_if_it_is_signed() {
    assert_eq!(signed(&payload()), Ok(attestation()));
    let refused = |payload: &Value| {
        let verdict = signed(payload);
        let kind = StatementKind::Attestation;
        assert!(
            matches!(&verdict, Err(StatementError::WrongPayload { kind: k, .. }) if *k == kind),
            "{payload}: {verdict:?}"
        );
    };
    for path in ["", "/predicate", "/subject/0", "/subject/0/digest"] {
        let fields = payload()
            .pointer(path)
            .unwrap()
            .as_object()
            .unwrap()
            .clone();
        let mut more = payload();
        more.pointer_mut(path).unwrap()["more"] = json!(1);
        refused(&more);
        for field in fields.keys() {
            for value in [Value::Null, json!(-1), json!([])] {
                let mut wrong = payload();
                wrong.pointer_mut(path).unwrap()[field] = value;
                refused(&wrong);
            }
            if !["lens_hash", "workflow_hash"].contains(&field.as_str()) {
                let mut less = payload();
                let object = less.pointer_mut(path).unwrap().as_object_mut().unwrap();
                object.remove(field);
                refused(&less);
            }
        }
    }
    for (pointer, value) in [
        ("/_type", json!("https://in-toto.io/Statement/v0.1")),
        ("/predicateType", json!("https://slsa.dev/provenance/v1")),
        ("/subject", json!([])),
        (
            "/subject",
            json!([payload()["subject"][0], payload()["subject"][0]]),
        ),
        ("/subject/0/name", json!("../s-1")),
        ("/subject/0/digest", json!({"sha512": "00"})),
        ("/predicate/run", json!(device())),
        ("/predicate/size", json!(1.5)),
    ] {
        let mut wrong = payload();
        *wrong.pointer_mut(pointer).unwrap() = value;
        refused(&wrong);
    }
    let spaced = [canonical::to_vec(&payload()).unwrap().as_slice(), b" "].concat();
    let spaced = envelope(attestation_type(), &spaced, &[key(1)]);
    assert_eq!(check(&spaced), Err(StatementError::NotCanonical));
}

#[test]
fn an_attestation_and_another_statement_are_never_taken_for_each_other() {
    let made = canonical::to_vec(&attestation()).unwrap();
    for kind in StatementKind::ALL {
        let relabelled = envelope(kind.payload_type(), &made, &[key(1)]);
        if kind == StatementKind::Attestation {
            assert_eq!(check(&relabelled), Ok(attestation()));
            continue;
        }
        assert!(matches!(
            check(&relabelled),
            Err(StatementError::WrongKind { .. })
        ));
        assert!(relabelled.unverified_attestation().is_err());
    }
    // What a device says elsewhere does not become an attestation under its type.
    let issued = canonical::to_vec(&issued()).unwrap();
    let issued = envelope(attestation_type(), &issued, &[key(1)]);
    assert!(matches!(
        check(&issued),
        Err(StatementError::WrongPayload { .. })
    ));
}

#[test]
fn only_the_device_that_it_names_signs_an_attestation() {
    let made = Envelope::attest(&attestation(), &key(1)).unwrap();
    let by = |keys: &[PublicKey]| made.verify_attestation(keys, now(), WINDOW).map(|_| ());
    assert_eq!(by(&[key(2).public()]), Err(StatementError::Untrusted));
    assert_eq!(by(&[]), Err(StatementError::Untrusted));
    let named = key(1).public().key_id();
    let mismatch = || StatementError::KeyMismatch(named.clone());
    assert_eq!(Envelope::attest(&attestation(), &key(9)), Err(mismatch()));
    let other = envelope(attestation_type(), &made.payload, &[key(9)]);
    assert_eq!(check(&other), Err(mismatch()));
}

#[test]
fn an_attestation_is_of_this_moment_give_or_take_the_window() {
    let made = Envelope::attest(&attestation(), &key(1)).unwrap();
    let at = |micros: i64| {
        let now = Timestamp::from_unix_micros(now().unix_micros() + micros).unwrap();
        made.verify_attestation(&trusted(), now, WINDOW).map(|_| ())
    };
    let edge = 300_000_000;
    assert_eq!(at(edge), Ok(()));
    assert_eq!(at(-edge), Ok(()));
    assert_eq!(at(edge + 1), Err(StatementError::TooOld(now())));
    assert_eq!(at(-edge - 1), Err(StatementError::NotYetIssued(now())));
}
