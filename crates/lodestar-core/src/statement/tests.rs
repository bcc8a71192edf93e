//! One test per reason to refuse a statement, and the forms on the wire.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::canonical;
use crate::digest::sha256;
use crate::key::{PublicKey, SecretKey};

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn now() -> Timestamp {
    "2026-11-15T21:50:00.123456Z".parse().unwrap()
}

fn issued() -> Issued<Redaction> {
    Issued {
        expires_at: now().checked_add(Duration::from_secs(60)),
        issued_at: now(),
        key_id: key(1).public().key_id(),
        nonce: Nonce::from_bytes([0xab; 16]),
        subject: Redaction {
            blobs: vec![sha256(b"blob")],
            events: vec![RedactedEvent {
                leaf_hash: sha256(b"leaf"),
                seq: 7,
            }],
            project: "demo".to_owned(),
            reason: "a password was pasted".to_owned(),
            session: "s-1".to_owned(),
        },
    }
}

fn trusted() -> Vec<PublicKey> {
    vec![key(9).public(), key(1).public()]
}

/// An envelope as anyone with a key could make it, with any payload under any type.
fn envelope(payload_type: &str, payload: &[u8], signers: &[SecretKey]) -> Envelope {
    let message = pae(payload_type, payload);
    let signatures = signers
        .iter()
        .map(|key| EnvelopeSignature {
            key_id: key.public().key_id(),
            bytes: key.sign(&message),
        })
        .collect();
    Envelope::new(payload_type.to_owned(), payload.to_vec(), signatures).unwrap()
}

fn redaction_type() -> &'static str {
    StatementKind::Redaction.payload_type()
}

fn payload_value() -> Value {
    serde_json::to_value(issued()).unwrap()
}

fn verify(envelope: &Envelope) -> Result<Verified<Redaction>, StatementError> {
    envelope.verify(&trusted(), now())
}

/// What verification says of a payload that the right key signed.
fn verdict(payload: &Value) -> Result<Verified<Redaction>, StatementError> {
    let payload = canonical::to_vec(payload).unwrap();
    verify(&envelope(redaction_type(), &payload, &[key(1)]))
}

#[test]
fn the_signed_bytes_are_those_of_the_dsse_specification() {
    assert_eq!(
        pae("http://example.com/HelloWorld", b"hello world"),
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    );
    assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
    // Lengths are of bytes, not characters.
    assert_eq!(pae("é", &[0xff, 0]), b"DSSEv1 2 \xc3\xa9 2 \xff\0");
}

#[test]
fn kinds_and_payload_types_correspond() {
    for (at, kind) in StatementKind::ALL.into_iter().enumerate() {
        assert_eq!(
            StatementKind::from_payload_type(kind.payload_type()),
            Some(kind)
        );
        assert!(!StatementKind::ALL[..at].contains(&kind));
        if kind != StatementKind::Attestation {
            assert_eq!(
                kind.payload_type(),
                format!("application/vnd.lodestar.{kind}.v1+json")
            );
        }
    }
    assert_eq!(StatementKind::ToolReview.name(), "tool-review");
    assert_eq!(StatementKind::Attestation.name(), "attestation");
    assert_eq!(
        StatementKind::Attestation.payload_type(),
        "application/vnd.in-toto+json"
    );
    assert_eq!(StatementKind::from_payload_type("text/plain"), None);
}

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
fn the_payload_and_the_envelope_have_their_documented_form() {
    let signed = Envelope::sign(&issued(), &key(1)).unwrap();
    let key_id = key(1).public().key_id();
    let payload = format!(
        r#"{{"expires_at":"2026-11-15T21:51:00.123456Z","issued_at":"2026-11-15T21:50:00.123456Z","key_id":"{key_id}","nonce":"abababababababababababababababab","subject":{{"blobs":["{}"],"events":[{{"leaf_hash":"{}","seq":7}}],"project":"demo","reason":"a password was pasted","session":"s-1"}}}}"#,
        sha256(b"blob"),
        sha256(b"leaf"),
    );
    assert_eq!(signed.unverified_payload(), payload.as_bytes());
    let signature = key(1).sign(&pae(redaction_type(), payload.as_bytes()));
    assert_eq!(
        String::from_utf8(signed.to_json()).unwrap(),
        format!(
            r#"{{"payload":"{}","payloadType":"application/vnd.lodestar.redaction.v1+json","signatures":[{{"keyid":"{key_id}","sig":"{}"}}]}}"#,
            BASE64.encode(&payload),
            BASE64.encode(signature),
        )
    );
}

#[test]
fn an_envelope_embeds_in_other_json() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Event {
        statement: Envelope,
    }
    let event = Event {
        statement: Envelope::sign(&issued(), &key(1)).unwrap(),
    };
    let json = canonical::to_vec(&event).unwrap();
    assert_eq!(serde_json::from_slice::<Event>(&json).unwrap(), event);
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

#[test]
fn envelopes_on_the_wire_are_strict() {
    let good = serde_json::to_value(Envelope::sign(&issued(), &key(1)).unwrap()).unwrap();
    let read = |value: &Value| Envelope::from_json(value.to_string().as_bytes());
    let change = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        read(&changed)
    };
    assert!(read(&good).is_ok());

    let malformed = |result: Result<Envelope, StatementError>| {
        assert!(
            matches!(result, Err(StatementError::Malformed(_))),
            "{result:?}"
        );
    };
    let payload = good["payload"].as_str().unwrap();
    let sig = good["signatures"][0]["sig"].as_str().unwrap();
    malformed(change("/payload", json!(1)));
    malformed(change("/payload", json!(format!("{payload}="))));
    malformed(change("/payload", json!(format!("{payload}\n"))));
    malformed(change("/payload", json!("AB==")));
    malformed(change("/payload", json!("A_-A")));
    malformed(change("/payloadType", Value::Null));
    malformed(change("/signatures", json!({})));
    malformed(change(
        "/signatures/0/sig",
        json!(sig.trim_end_matches('=')),
    ));
    malformed(change("/signatures/0/sig", json!("AAAA")));
    malformed(change("/signatures/0/keyid", json!("")));
    malformed(change("/signatures/0/keyid", json!("some-key")));
    for pointer in ["", "/signatures/0"] {
        let mut more = good.clone();
        more.pointer_mut(pointer).unwrap()["more"] = json!(1);
        malformed(read(&more));
    }
    for field in ["payload", "payloadType", "signatures"] {
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove(field);
        malformed(read(&less));
    }
    assert_eq!(
        change("/signatures", json!([])),
        Err(StatementError::NoSignatures)
    );
    let twice = vec![good["signatures"][0].clone(); 2];
    assert_eq!(
        change("/signatures", json!(twice)),
        Err(StatementError::DuplicateSignature(key(1).public().key_id()))
    );
    let text = good.to_string();
    for json in [
        text.replacen('{', "{\"payload\":\"\",", 1),
        text.replacen('{', "{\"p\\u0061yload\":\"\",", 1),
        format!("{text} x"),
        text[1..].to_owned(),
    ] {
        assert!(matches!(
            Envelope::from_json(json.as_bytes()),
            Err(StatementError::Json(_))
        ));
    }
}

#[test]
fn envelopes_are_limited_in_length_and_signatures() {
    let payload = canonical::to_vec(&issued()).unwrap();
    let signatures = |count: u8| {
        (0..count)
            .map(|seed| EnvelopeSignature {
                key_id: key(seed).public().key_id(),
                bytes: key(seed).sign(&pae(redaction_type(), &payload)),
            })
            .collect::<Vec<_>>()
    };
    let most = Envelope::new(redaction_type().to_owned(), payload.clone(), signatures(16)).unwrap();
    assert!(verify(&Envelope::from_json(&most.to_json()).unwrap()).is_ok());
    let more = Envelope {
        signatures: signatures(17),
        ..most
    };
    assert_eq!(
        Envelope::from_json(&more.to_json()),
        Err(StatementError::TooManySignatures)
    );
    assert_eq!(
        Envelope::new(more.payload_type, more.payload, more.signatures),
        Err(StatementError::TooManySignatures)
    );

    let mut long = issued();
    long.subject.reason = "x".repeat(MAX_ENVELOPE_LEN);
    assert!(matches!(
        Envelope::sign(&long, &key(1)),
        Err(StatementError::TooLong(_))
    ));
    let spaces = " ".repeat(MAX_ENVELOPE_LEN + 1);
    assert_eq!(
        Envelope::from_json(spaces.as_bytes()),
        Err(StatementError::TooLong(MAX_ENVELOPE_LEN + 1))
    );
}

#[test]
fn what_has_no_canonical_form_cannot_be_signed() {
    let mut unwritable = issued();
    unwritable.subject.events[0].seq = u64::MAX;
    assert_eq!(
        Envelope::sign(&unwritable, &key(1)),
        Err(StatementError::Unwritable(
            canonical::CanonicalError::UnsafeInteger
        ))
    );
}

#[test]
fn nonces_have_one_spelling() {
    let nonce = Nonce::from_bytes([0xab; 16]);
    assert_eq!(nonce.to_string(), "ab".repeat(16));
    assert_eq!(nonce.to_string().parse(), Ok(nonce));
    assert_eq!(nonce.as_bytes(), &[0xab; 16]);
    for wrong in ["", &"AB".repeat(16), &"ab".repeat(15), &"ab".repeat(17)] {
        assert_eq!(wrong.parse::<Nonce>(), Err(StatementError::MalformedNonce));
    }
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

    #[test]
    fn encodings_of_different_statements_differ(
        a in ("[ -~]{0,8}", prop::collection::vec(any::<u8>(), 0..8)),
        b in ("[ -~]{0,8}", prop::collection::vec(any::<u8>(), 0..8)),
    ) {
        prop_assert_eq!(pae(&a.0, &a.1) == pae(&b.0, &b.1), a == b);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
        let _ = Envelope::from_json(&bytes);
    }
}
