//! Policies with, without and with the wrong signature; and what does not load at all.

use std::time::Duration;

use lodestar_core::key::SecretKey;
use lodestar_core::ladder::{Rung, Verdict};
use lodestar_core::statement::{Envelope, Nonce, StatementError};
use lodestar_core::time::Timestamp;
use lodestar_policy::{
    ArbiterRules, Gate, Policy, PolicyError, SignatureState, Unsigned, sign, signature_path,
};

use crate::world::{NOW, reading, requirement, tools};

const TEXT: &str = "permit (principal, action in Action::\"run\", resource);\n";

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

fn signed(bytes: &[u8], expires_at: Option<Timestamp>) -> Envelope {
    sign(bytes, &key(), Nonce::from_bytes([1; 16]), NOW, expires_at).unwrap()
}

fn load(
    bytes: &[u8],
    signature: Option<&Envelope>,
    unsigned: Unsigned,
) -> Result<Policy, PolicyError> {
    Policy::load(bytes, signature, &[key().public()], unsigned, NOW)
}

#[test]
fn a_signed_policy_loads_from_its_files_and_an_edited_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.cedar");
    std::fs::write(&path, TEXT).unwrap();
    assert_eq!(signature_path(&path), dir.path().join("policy.cedar.sig"));
    std::fs::write(
        signature_path(&path),
        signed(TEXT.as_bytes(), None).to_json(),
    )
    .unwrap();

    let envelope = Envelope::from_json(&std::fs::read(signature_path(&path)).unwrap()).unwrap();
    let policy = load(
        &std::fs::read(&path).unwrap(),
        Some(&envelope),
        Unsigned::Refused,
    )
    .unwrap();
    let state = SignatureState::Signed {
        key: key().public().key_id(),
    };
    assert_eq!(policy.signature(), &state);
    assert_eq!(policy.source(), TEXT);

    for edited in [
        format!("{TEXT} "),
        TEXT.replace("run", "ask"),
        String::new(),
    ] {
        // Not even where unsigned ones would load.
        for unsigned in [Unsigned::Allowed, Unsigned::Refused] {
            let error = load(edited.as_bytes(), Some(&envelope), unsigned).unwrap_err();
            assert!(matches!(error, PolicyError::Edited { .. }), "{error}");
        }
    }
}

#[test]
fn a_signature_by_another_key_or_out_of_date_does_not_count() {
    let stranger = SecretKey::from_seed([8; 32]);
    let by_stranger = sign(
        TEXT.as_bytes(),
        &stranger,
        Nonce::from_bytes([1; 16]),
        NOW,
        None,
    );
    let error = load(
        TEXT.as_bytes(),
        Some(&by_stranger.unwrap()),
        Unsigned::Allowed,
    )
    .unwrap_err();
    assert_eq!(error, PolicyError::Signature(StatementError::Untrusted));
    let end = NOW.checked_add(Duration::from_secs(10)).unwrap();
    let envelope = signed(TEXT.as_bytes(), Some(end));
    assert!(load(TEXT.as_bytes(), Some(&envelope), Unsigned::Refused).is_ok());
    let error = Policy::load(
        TEXT.as_bytes(),
        Some(&envelope),
        &[key().public()],
        Unsigned::Refused,
        end,
    );
    assert_eq!(
        error.unwrap_err(),
        PolicyError::Signature(StatementError::Expired(end))
    );
}

#[test]
fn an_unsigned_policy_loads_only_where_that_is_allowed() {
    let policy = load(TEXT.as_bytes(), None, true.into()).unwrap();
    assert_eq!(policy.signature(), &SignatureState::Unsigned);
    let error = load(TEXT.as_bytes(), None, false.into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the policy is not signed; sign it, or set `allow_unsigned = true`"
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let message = |bytes: &[u8]| {
        load(bytes, None, Unsigned::Allowed)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(b"// fine\n// \xc3\xa9\xff"),
        "the policy is not UTF-8 at 2:5; save it as UTF-8"
    );
    let cases: [(&str, &str); 5] = [
        (
            "permit (principal, action, resource)\n  when { context. };",
            "error at 2:19: unexpected token `}`",
        ),
        (
            "\npermit (principal == ?principal, action, resource);",
            "error at 2:22: templates are not taken",
        ),
        (
            "@id(\"a\")\npermit (principal, action, resource);\n@id(\"a\")\nforbid (principal, action, resource);",
            "error at 3:1 in policy `a`: the id `a` is taken already",
        ),
        (
            "@id(\"\")\npermit (principal, action, resource);",
            "error at 1:1: the policy id is empty",
        ),
        (
            "@id(\"policy1\") permit (principal, action, resource);\npermit (principal, action, resource);",
            "error at 2:1 in policy `policy1`",
        ),
    ];
    for (text, expected) in cases {
        let found = message(text.as_bytes());
        assert!(found.contains(expected), "{text}\n{found}");
    }
    let long = vec![b' '; lodestar_policy::MAX_POLICY_LEN + 1];
    assert!(message(&long).contains("at most 1048576 are taken"));
}

#[test]
fn the_preset_runs_up_to_its_ceiling_and_asks_above() {
    for ceiling in 0..=3 {
        let policy = Policy::preset(ceiling).unwrap();
        assert_eq!(policy.signature(), &SignatureState::Preset);
        let gate = Gate::new(policy, tools(), ArbiterRules::none(), requirement(1, 60)).unwrap();
        assert!(gate.warnings().is_empty(), "{:?}", gate.warnings());
        for rung in crate::world::RUNGS {
            let expected = match rung {
                Rung::L5 => Verdict::Deny,
                Rung::L4 => Verdict::Hold,
                rung if rung as u8 <= ceiling => Verdict::Allow,
                _ => Verdict::Hold,
            };
            assert_eq!(
                reading(rung).judge(&gate).verdict,
                expected,
                "{ceiling} {rung}"
            );
        }
    }
    for ceiling in [4, 5, 255] {
        assert_eq!(
            Policy::preset(ceiling).unwrap_err(),
            PolicyError::Ceiling(ceiling)
        );
    }
    insta::assert_snapshot!("preset_1", Policy::preset(1).unwrap().source());
}
