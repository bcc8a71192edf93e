//! What verification refuses, and in which order.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn a_signed_statement_verifies_after_a_round_trip() {
    let signed = Envelope::sign(&issued(), &key(1)).unwrap();
    let read = Envelope::from_json(&signed.to_json()).unwrap();
    assert_eq!(read, signed);
    assert_eq!(read.kind(), Some(StatementKind::Redaction));
    let verified = verify(&read).unwrap();
    assert_eq!(verified.issued(), &issued());
    assert_eq!(verified.subject(), &issued().subject);
    assert_eq!(verified.key(), &key(1).public());
    assert_eq!(verified.digest(), sha256(&signed.to_json()));
    assert_eq!(verified.digest(), read.digest());
}

#[test]
fn a_statement_of_one_kind_never_verifies_as_another() {
    let payload = canonical::to_vec(&issued()).unwrap();
    for kind in StatementKind::ALL {
        let other = envelope(kind.payload_type(), &payload, &[key(1)]);
        if kind == StatementKind::Redaction {
            assert!(verify(&other).is_ok());
            continue;
        }
        assert_eq!(
            verify(&other),
            Err(StatementError::WrongKind {
                expected: StatementKind::Redaction,
                found: kind.payload_type().to_owned(),
            })
        );
        // Relabelling it breaks the signature.
        let relabelled = Envelope {
            payload_type: redaction_type().to_owned(),
            ..other
        };
        assert_eq!(
            verify(&relabelled),
            Err(StatementError::BadSignature(key(1).public().key_id()))
        );
    }
}

#[test]
fn only_trusted_keys_count() {
    let signed = Envelope::sign(&issued(), &key(1)).unwrap();
    assert_eq!(
        signed.verify::<Redaction>(&[], now()),
        Err(StatementError::Untrusted)
    );
    assert_eq!(
        signed.verify::<Redaction>(&[key(2).public()], now()),
        Err(StatementError::Untrusted)
    );
}

#[test]
fn signatures_by_strangers_are_ignored_whatever_they_are() {
    let payload = canonical::to_vec(&issued()).unwrap();
    let mut both = envelope(redaction_type(), &payload, &[key(5), key(1)]);
    assert!(verify(&both).is_ok());
    both.signatures[0].bytes = [0; 64];
    assert!(verify(&both).is_ok());
}

#[test]
fn a_wrong_signature_in_a_trusted_name_refuses_the_statement() {
    let payload = canonical::to_vec(&issued()).unwrap();
    let good = envelope(redaction_type(), &payload, &[key(1), key(9)]);
    assert_eq!(verify(&good).unwrap().key(), &key(1).public());
    let bad_signature = |key: SecretKey| Err(StatementError::BadSignature(key.public().key_id()));
    for (at, signer) in [(0, key(1)), (1, key(9))] {
        let mut bad = good.clone();
        bad.signatures[at].bytes[40] ^= 1;
        assert_eq!(verify(&bad), bad_signature(signer));
    }
    // A signature by a stranger under a trusted key's id.
    let mut stolen = envelope(redaction_type(), &payload, &[key(5)]);
    stolen.signatures[0].key_id = key(1).public().key_id();
    assert_eq!(verify(&stolen), bad_signature(key(1)));
    // A changed payload.
    let mut changed = Envelope::sign(&issued(), &key(1)).unwrap();
    changed.payload = canonical::to_vec(&json!({})).unwrap();
    assert_eq!(verify(&changed), bad_signature(key(1)));
}

#[test]
fn the_payload_has_to_be_canonical() {
    let canonical = String::from_utf8(canonical::to_vec(&issued()).unwrap()).unwrap();
    for payload in [
        format!("{canonical}\n"),
        format!(" {canonical}"),
        canonical.replace(":7", ":7.0"),
        canonical.replace("\"seq\"", "\"se\\u0071\""),
        canonical.replace("\"seq\":7", "\"seq\":7,\"seq\":7"),
        serde_json::to_string_pretty(&issued()).unwrap(),
        String::new(),
        "not json".to_owned(),
    ] {
        let signed = envelope(redaction_type(), payload.as_bytes(), &[key(1)]);
        assert_eq!(
            verify(&signed),
            Err(StatementError::NotCanonical),
            "{payload}"
        );
    }
}

#[test]
fn every_field_has_to_be_there_and_no_other() {
    fn refused(payload: &Value) {
        assert!(
            matches!(
                verdict(payload),
                Err(StatementError::WrongPayload {
                    kind: StatementKind::Redaction,
                    ..
                })
            ),
            "{payload}"
        );
    }
    assert!(verdict(&payload_value()).is_ok());
    for path in ["", "/subject", "/subject/events/0"] {
        let fields = payload_value()
            .pointer(path)
            .and_then(Value::as_object)
            .unwrap()
            .clone();
        let change = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut payload = payload_value();
            change(
                payload
                    .pointer_mut(path)
                    .and_then(Value::as_object_mut)
                    .unwrap(),
            );
            payload
        };
        refused(&change(&|object| {
            object.insert("more".to_owned(), json!(1));
        }));
        for field in fields.keys().filter(|field| *field != "expires_at") {
            refused(&change(&|object| {
                object.remove(field);
            }));
            refused(&change(&|object| {
                object.insert(field.clone(), Value::Null);
            }));
            refused(&change(&|object| {
                object.insert(field.clone(), json!(-1));
            }));
        }
    }
    // An absent date is left out, not null.
    let mut payload = payload_value();
    payload["expires_at"] = Value::Null;
    refused(&payload);
    refused(&json!([]));
    refused(&json!("text"));
}

#[test]
fn types_that_ignore_unknown_fields_are_held_to_their_own_form() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Lax {
        #[serde(default)]
        count: u32,
    }
    impl Statement for Lax {
        const KIND: StatementKind = StatementKind::Assertion;
    }
    let verify = |subject: Value| {
        let mut payload = payload_value();
        payload["subject"] = subject;
        let payload = canonical::to_vec(&payload).unwrap();
        envelope(Lax::KIND.payload_type(), &payload, &[key(1)])
            .verify::<Lax>(&trusted(), now())
            .map(|verified| verified.subject().count)
    };
    assert_eq!(verify(json!({"count": 3})), Ok(3));
    for subject in [json!({"count": 3, "unknown": true}), json!({})] {
        assert_eq!(
            verify(subject),
            Err(StatementError::WrongPayload {
                kind: StatementKind::Assertion,
                problem: "it has a field too many or too few".to_owned(),
            })
        );
    }
}

#[test]
fn the_payload_names_the_key_that_signed() {
    let other = key(9).public().key_id();
    let mut payload = issued();
    payload.key_id = other.clone();
    assert_eq!(
        verdict(&serde_json::to_value(&payload).unwrap()),
        Err(StatementError::KeyMismatch(other.clone()))
    );
    assert_eq!(
        Envelope::sign(&payload, &key(1)),
        Err(StatementError::KeyMismatch(other))
    );
}

#[test]
fn a_statement_holds_from_its_date_until_it_expires() {
    let signed = Envelope::sign(&issued(), &key(1)).unwrap();
    let at = |micros: i64| {
        let now = Timestamp::from_unix_micros(now().unix_micros() + micros).unwrap();
        signed.verify::<Redaction>(&trusted(), now).map(|_| ())
    };
    let skew = CLOCK_SKEW.as_micros() as i64;
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(-skew), Ok(()));
    assert_eq!(at(-skew - 1), Err(StatementError::NotYetIssued(now())));
    assert_eq!(at(59_999_999), Ok(()));
    let end = issued().expires_at.unwrap();
    assert_eq!(at(60_000_000), Err(StatementError::Expired(end)));
    assert_eq!(at(i64::MAX / 64), Err(StatementError::Expired(end)));

    let forever = Issued {
        expires_at: None,
        ..issued()
    };
    let signed = Envelope::sign(&forever, &key(1)).unwrap();
    assert!(!String::from_utf8_lossy(signed.unverified_payload()).contains("expires_at"));
    assert!(
        signed
            .verify::<Redaction>(&trusted(), Timestamp::MAX)
            .is_ok()
    );
}

#[test]
fn the_reasons_are_checked_in_the_documented_order() {
    // Wrong in every way at once: each repair uncovers the next reason.
    let mut wrong = issued();
    wrong.key_id = key(9).public().key_id();
    wrong.issued_at = Timestamp::MAX;
    wrong.expires_at = Some(Timestamp::MIN);
    let payload = canonical::to_vec(&wrong).unwrap();
    let spaced = [payload.as_slice(), b" "].concat();
    let reason = |envelope: &Envelope| verify(envelope).unwrap_err();

    let mut statement = envelope("text/plain", &spaced, &[key(2)]);
    statement.signatures[0].bytes = [0; 64];
    assert!(matches!(
        reason(&statement),
        StatementError::WrongKind { .. }
    ));
    statement.payload_type = redaction_type().to_owned();
    assert_eq!(reason(&statement), StatementError::Untrusted);
    statement.signatures[0].key_id = key(1).public().key_id();
    assert!(matches!(
        reason(&statement),
        StatementError::BadSignature(_)
    ));
    let statement = envelope(redaction_type(), &spaced, &[key(1)]);
    assert_eq!(reason(&statement), StatementError::NotCanonical);
    let mut unknown = serde_json::to_value(&wrong).unwrap();
    unknown["subject"]["more"] = json!(1);
    assert!(matches!(
        verdict(&unknown),
        Err(StatementError::WrongPayload { .. })
    ));
    let statement = envelope(redaction_type(), &payload, &[key(1)]);
    assert!(matches!(reason(&statement), StatementError::KeyMismatch(_)));
    wrong.key_id = key(1).public().key_id();
    let statement = Envelope::sign(&wrong, &key(1)).unwrap();
    assert!(matches!(
        reason(&statement),
        StatementError::NotYetIssued(_)
    ));
    wrong.issued_at = now();
    let statement = Envelope::sign(&wrong, &key(1)).unwrap();
    assert!(matches!(reason(&statement), StatementError::Expired(_)));
}

proptest! {
    #[test]
    fn no_altered_byte_goes_unnoticed(at: prop::sample::Index, byte: u8) {
        let good = Envelope::sign(&issued(), &key(1)).unwrap().to_json();
        let at = at.index(good.len());
        prop_assume!(good[at] != byte);
        let mut altered = good;
        altered[at] = byte;
        let refused = match Envelope::from_json(&altered) {
            Ok(envelope) => verify(&envelope).is_err(),
            Err(_) => true,
        };
        prop_assert!(refused);
    }
}
