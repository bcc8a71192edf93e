//! The envelope itself: its bytes, its signatures, its kind.

use lodestar_core::canonical;
use serde_json::{Value, json};

use super::*;
use crate::forging::{
    cut_and_doubled, every_byte_changed, signed_bytes, signed_raw, with_signatures_of,
};

#[test]
fn matrix_every_byte_of_the_envelope() {
    let (half_open, honest) = (half_open(), honest());
    let mut counts = Counts::default();
    every_byte_changed(&honest, |at, forged| {
        let refusal = refused(&half_open, forged, now());
        let name = name_of(&refusal);
        let of_form = ["malformed", "statement", "unknown_key", "bad_signature"];
        assert!(of_form.contains(&name.as_str()), "byte {at}: {refusal}");
        counts.note(name);
    });
    counts.print("resolutions, changed bytes");
}

#[test]
fn matrix_cut_doubled_and_dressed_up() {
    let (half_open, honest) = (half_open(), honest());
    let mut counts = Counts::default();
    let mut forged = cut_and_doubled(&honest);
    let text = String::from_utf8(honest.clone()).unwrap();
    for dressed in [
        format!("[{text}]"),
        format!("{{\"statement\":{text}}}"),
        format!(
            "{{\"name\":\"operator-confirmation-evidence\",\"display\":false,\"details\":{text}}}"
        ),
        format!("granted\n{text}"),
        format!("\u{feff}{text}"),
        text.replacen('{', "{\"payload\":\"\",", 1),
        text.replace("\"payload\"", "\"payload\\u0000\""),
        text.replace("keyid", "keyId"),
        json!(text).to_string(),
        r#"{"granted":true,"decision":"match"}"#.to_owned(),
        "decision=match".to_owned(),
    ] {
        forged.push(dressed.into_bytes());
    }
    for sent in &forged {
        let name = name_of(&refused(&half_open, sent, now()));
        assert_eq!(name, "malformed", "{}", String::from_utf8_lossy(sent));
        counts.note(name);
    }
    counts.print("resolutions, cut and dressed up");
}

/// Spaces that JSON allows change nothing: what is signed lies inside.
#[test]
fn the_same_envelope_with_other_spaces_is_the_same_word() {
    let value: Value = serde_json::from_slice(&honest()).unwrap();
    let spaced = serde_json::to_vec_pretty(&value).unwrap();
    let mut requests = half_open();
    let heard = hear(&mut requests, &spaced, now());
    assert_eq!(heard, Ok(Counted::Grant { missing: 0 }));
}

#[test]
fn matrix_a_statement_of_any_other_kind_is_no_resolution() {
    let half_open = half_open();
    let mut counts = Counts::default();
    let own = payload(&honest());
    for kind in StatementKind::ALL.into_iter().skip(1) {
        let other = signed_raw(kind.payload_type(), &own, &[&key(1)]);
        assert_eq!(name_of(&refused(&half_open, &other, now())), "statement");
        // The same bytes under the right type: nobody signed that.
        let mut typed: Value = serde_json::from_slice(&other).unwrap();
        typed["payloadType"] = json!(APPROVAL);
        let typed = serde_json::to_vec(&typed).unwrap();
        assert_eq!(
            name_of(&refused(&half_open, &typed, now())),
            "bad_signature"
        );
        counts.note("another kind");
        counts.note("another kind under the right name");
    }
    for kind in [
        "",
        "application/json",
        "application/vnd.lodestar.approval.v2+json",
    ] {
        let other = signed_raw(kind, &own, &[&key(1)]);
        assert_eq!(name_of(&refused(&half_open, &other, now())), "statement");
        counts.note("an unknown kind");
    }
    let spelt = canonical::to_vec(&own).unwrap();
    let spelt = String::from_utf8(spelt).unwrap();
    for payload in [
        format!("{spelt} "),
        format!(" {spelt}"),
        spelt.replace(':', ": "),
        spelt.replacen("grant", "gr\\u0061nt", 1),
        spelt.replacen('{', "{\"subject\":{},", 1),
        "decision=match".to_owned(),
        String::new(),
    ] {
        let signed = signed_bytes(APPROVAL, payload.as_bytes(), &[&key(1)]);
        assert_eq!(
            name_of(&refused(&half_open, &signed, now())),
            "statement",
            "{payload}"
        );
        counts.note("rightly signed, and not canonical");
    }
    counts.print("resolutions, kinds");
}

#[test]
fn matrix_wrong_keys_no_signature_and_two() {
    let (half_open, honest) = (half_open(), honest());
    let mut counts = Counts::default();
    let own = payload(&honest);
    let mut check = |sent: &[u8], wanted: &str, kind: &str| {
        let name = name_of(&refused(&half_open, sent, now()));
        assert_eq!(name, wanted, "{kind}");
        counts.note(kind);
    };
    let envelope: Value = serde_json::from_slice(&honest).unwrap();
    let with = |signatures: Value| {
        let mut changed = envelope.clone();
        changed["signatures"] = signatures;
        serde_json::to_vec(&changed).unwrap()
    };
    let signature = envelope["signatures"][0].clone();
    check(&with(json!([])), "malformed", "unsigned");
    check(
        &with(json!([signature, signature])),
        "malformed",
        "signed twice",
    );
    for seed in 7..=255 {
        let stranger = key(seed);
        // In their own name, which nobody knows.
        let mut named = own.clone();
        named["key_id"] = json!(stranger.public().key_id());
        let sent = signed_raw(APPROVAL, &named, &[&stranger]);
        check(&sent, "unknown_key", "signed by a stranger");
        let sent = signed_raw(APPROVAL, &own, &[&stranger]);
        check(
            &sent,
            "unknown_key",
            "by a stranger, naming Alice's key inside",
        );
        // Under Alice's name.
        let mut posed = signature.clone();
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        posed["sig"] = sent["signatures"][0]["sig"].clone();
        check(
            &with(json!([posed])),
            "bad_signature",
            "by a stranger as Alice",
        );
        let beside = json!([posed, sent["signatures"][0]]);
        check(
            &with(beside),
            "bad_signature",
            "by a stranger as Alice and as themselves",
        );
    }
    // Somebody registered adds a signature that is wrong: it was tampered with.
    let other = signed_raw(APPROVAL, &json!({"other": 1}), &[&key(6)]);
    let other: Value = serde_json::from_slice(&other).unwrap();
    let both = json!([signature, other["signatures"][0]]);
    check(
        &with(both),
        "bad_signature",
        "with a wrong signature beside the right one",
    );
    let mut many = vec![signature.clone()];
    for seed in 7..23 {
        let sent = signed_raw(APPROVAL, &own, &[&key(seed)]);
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        many.push(sent["signatures"][0].clone());
    }
    check(&with(json!(many)), "malformed", "signed by very many");
    // Alice's signature of one thing does not sign another.
    let mut for_another = asked();
    for_another.id = lodestar_core::id::RequestId::from_parts(9, [9; 10]);
    let elsewhere = said(&for_another, "alice", 1, [2; 16]).to_json();
    let moved = with_signatures_of(&elsewhere, &honest);
    check(
        &moved,
        "bad_signature",
        "with Alice's signature of another request",
    );
    counts.print("resolutions, signatures");
}

/// Two right signatures under one payload are the word of the one it names, once.
#[test]
fn a_second_signature_is_not_a_second_person() {
    let mut requests = Requests::default();
    let mut asked = asked();
    asked.requirement.quorum = 3;
    requests.open(asked);
    let (own, all) = (payload(&honest()), [&key(1), &key(6), &key(99)]);
    let both = signed_raw(APPROVAL, &own, &all);
    let counted = hear(&mut requests, &both, now());
    assert_eq!(counted, Ok(Counted::Grant { missing: 2 }));
    for keys in [&all[..1], &all[..2], &[&key(6), &key(1)]] {
        let again = signed_raw(APPROVAL, &own, keys);
        assert_eq!(hear(&mut requests, &again, now()), Err(Refusal::Repeated));
    }
    let fred_alone = signed_raw(APPROVAL, &own, &all[1..]);
    let refusal = hear(&mut requests, &fred_alone, now()).unwrap_err();
    assert_eq!(name_of(&refusal), "statement", "it names the key of Alice");
}
