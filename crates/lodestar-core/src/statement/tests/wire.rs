//! Envelopes and payloads as bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use serde_json::json;

use super::*;

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
fn an_envelope_is_as_long_as_it_may_be_and_no_longer() {
    let signatures = envelope("t", b"", &[key(1)]).signatures;
    let made = |extra: usize| {
        let payload_type = "t".repeat(1 + extra);
        Envelope::new(payload_type, Vec::new(), signatures.clone())
    };
    let shortest = made(0).unwrap().to_json().len();
    let longest = made(MAX_ENVELOPE_LEN - shortest).unwrap();
    assert_eq!(longest.to_json().len(), MAX_ENVELOPE_LEN);
    assert_eq!(
        longest.payload_type().len(),
        1 + MAX_ENVELOPE_LEN - shortest
    );
    assert_eq!(Envelope::from_json(&longest.to_json()), Ok(longest));
    let longer = made(MAX_ENVELOPE_LEN - shortest + 1);
    assert_eq!(longer, Err(StatementError::TooLong(MAX_ENVELOPE_LEN + 1)));
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
