//! Statements that more than one key has to sign.

use super::devices::{account, device, issued_now};
use super::*;

/// Issued by key 1, from key 2 to key 4.
fn rotation() -> Issued<KeyRotation> {
    issued_now(KeyRotation {
        account: account(),
        device: device(),
        new_key: key(4).public(),
        new_log_key: key(5).public(),
        old_key: key(2).public(),
    })
}

fn check(envelope: &Envelope) -> Result<Issued<KeyRotation>, StatementError> {
    let (owner, old) = (key(1).public(), key(2).public());
    KeyRotation::verify_undated(envelope, &owner, &old).map(|verified| verified.issued().clone())
}

fn missing(seed: u8) -> Result<Issued<KeyRotation>, StatementError> {
    Err(StatementError::MissingSignature(
        key(seed).public().key_id(),
    ))
}

#[test]
fn a_rotation_is_good_if_owner_old_and_new_key_signed() {
    let signed = Envelope::sign_all(&rotation(), &[&key(1), &key(2), &key(4)]).unwrap();
    assert_eq!(signed.signatures().len(), 3);
    assert_eq!(check(&signed), Ok(rotation()));
    let read = Envelope::from_json(&signed.to_json()).unwrap();
    assert_eq!(check(&read), Ok(rotation()));
    // The order does not matter, and a stranger's signature neither helps nor hurts.
    let payload = canonical::to_vec(&rotation()).unwrap();
    let kind = StatementKind::KeyRotation.payload_type();
    let more = envelope(kind, &payload, &[key(7), key(4), key(2), key(1)]);
    assert_eq!(check(&more), Ok(rotation()));
}

#[test]
fn a_rotation_that_one_of_them_did_not_sign_is_none() {
    let payload = canonical::to_vec(&rotation()).unwrap();
    let kind = StatementKind::KeyRotation.payload_type();
    let signed = |seeds: &[u8]| {
        let keys: Vec<_> = seeds.iter().map(|&seed| key(seed)).collect();
        check(&envelope(kind, &payload, &keys))
    };
    assert_eq!(signed(&[1, 2]), missing(4));
    assert_eq!(signed(&[1, 4]), missing(2));
    assert_eq!(signed(&[1]), missing(2));
    assert_eq!(signed(&[1, 7, 4]), missing(2));
    // Without the owner's, it is not by the key that it names.
    let not_the_owner = Err(StatementError::KeyMismatch(key(1).public().key_id()));
    assert_eq!(signed(&[2, 4]), not_the_owner);
    assert_eq!(signed(&[7]), Err(StatementError::Untrusted));
}

#[test]
fn a_wrong_signature_of_any_of_them_refuses_a_rotation() {
    let signed = Envelope::sign_all(&rotation(), &[&key(1), &key(2), &key(4)]).unwrap();
    for (at, seed) in [(0, 1), (1, 2), (2, 4)] {
        let mut bad = signed.clone();
        bad.signatures[at].bytes[3] ^= 1;
        let refused = StatementError::BadSignature(key(seed).public().key_id());
        assert_eq!(check(&bad), Err(refused));
    }
}

#[test]
fn only_the_owner_issues_a_rotation() {
    for seed in [2, 4] {
        let mut other = rotation();
        other.key_id = key(seed).public().key_id();
        let signed = Envelope::sign_all(&other, &[&key(1), &key(2), &key(4)]).unwrap();
        let refused = StatementError::KeyMismatch(other.key_id.clone());
        assert_eq!(check(&signed), Err(refused));
    }
}

#[test]
fn a_rotation_away_from_another_key_is_none() {
    let mut other = rotation();
    other.subject.old_key = key(6).public();
    let signed = Envelope::sign_all(&other, &[&key(1), &key(2), &key(4)]).unwrap();
    let refused = StatementError::KeyMismatch(key(6).public().key_id());
    assert_eq!(check(&signed), Err(refused));
}

#[test]
fn three_keys_have_to_be_three() {
    for (new, same) in [(1, 1), (2, 2)] {
        let mut narrow = rotation();
        narrow.subject.new_key = key(new).public();
        let signed = Envelope::sign_all(&narrow, &[&key(1), &key(2)]).unwrap();
        let refused = StatementError::SameKey(key(same).public().key_id());
        assert_eq!(check(&signed), Err(refused));
    }
    let signed = Envelope::sign_all(&rotation(), &[&key(1), &key(2), &key(4)]).unwrap();
    let owner = key(1).public();
    assert_eq!(
        KeyRotation::verify_undated(&signed, &owner, &owner).map(|_| ()),
        Err(StatementError::SameKey(owner.key_id()))
    );
}

#[test]
fn a_rotation_of_another_kind_or_form_is_none() {
    let other = Envelope::sign(&issued(), &key(1)).unwrap();
    assert!(matches!(
        check(&other),
        Err(StatementError::WrongKind { .. })
    ));
    let kind = StatementKind::KeyRotation.payload_type();
    let empty = envelope(kind, b"{}", &[key(1), key(2), key(4)]);
    assert!(matches!(
        check(&empty),
        Err(StatementError::WrongPayload { .. })
    ));
}

#[test]
fn signatures_are_added_one_after_another_by_whoever_read_it() {
    let first = Envelope::sign(&rotation(), &key(1)).unwrap();
    let read = first.unverified::<KeyRotation>().unwrap();
    let all = first
        .cosign(&read, &key(2))
        .and_then(|both| both.cosign(&read, &key(4)))
        .unwrap();
    let at_once = Envelope::sign_all(&rotation(), &[&key(1), &key(2), &key(4)]);
    assert_eq!(Ok(&all), at_once.as_ref());
    assert_eq!(all.payload_digest(), first.payload_digest());
    assert_ne!(all.digest(), first.digest());

    let again = StatementError::DuplicateSignature(key(2).public().key_id());
    assert_eq!(all.cosign(&read, &key(2)), Err(again));
    let mut other = rotation();
    other.subject.new_key = key(6).public();
    assert_eq!(
        first.cosign(&other, &key(2)),
        Err(StatementError::OtherPayload)
    );
    assert!(matches!(
        first.cosign(&issued(), &key(2)),
        Err(StatementError::WrongKind { .. })
    ));
}

#[test]
fn whoever_a_statement_names_has_to_be_among_its_signers() {
    let refused = Err(StatementError::KeyMismatch(key(1).public().key_id()));
    assert_eq!(
        Envelope::sign_all(&rotation(), &[&key(2), &key(4)]),
        refused
    );
    assert_eq!(Envelope::sign_all(&rotation(), &[]), refused);
    let twice = StatementError::DuplicateSignature(key(1).public().key_id());
    assert_eq!(
        Envelope::sign_all(&rotation(), &[&key(1), &key(1)]),
        Err(twice)
    );
}

#[test]
fn demanding_nobody_trusts_nobody() {
    let signed = Envelope::sign(&rotation(), &key(1)).unwrap();
    let demanded = |keys: &[PublicKey]| signed.verify_all_undated::<KeyRotation>(keys).map(|_| ());
    assert_eq!(demanded(&[]), Err(StatementError::Untrusted));
    assert_eq!(demanded(&[key(1).public()]), Ok(()));
}
