//! Whose signature counts.

use super::*;
use crate::key::KeyError;

#[test]
fn the_published_secret_key_makes_the_published_note() {
    let (name, secret) = parse_secret(NEUMANN_SECRET).unwrap();
    assert_eq!(name, "PeterNeumann");
    assert_eq!(*encode_secret(&name, &secret).unwrap(), NEUMANN_SECRET);
    let public = NoteKey::ed25519(&name, &secret.public()).unwrap();
    assert_eq!(public.to_string(), NEUMANN_KEY);
    let mut note = Note::new(NEUMANN_TEXT).unwrap();
    note.add_signature(NoteSignature {
        name,
        key_hash: public.key_hash(),
        bytes: secret.sign(NEUMANN_TEXT.as_bytes()).to_vec(),
    })
    .unwrap();
    assert_eq!(note.to_string(), neumann());
}

#[test]
fn no_signature_and_a_wrong_signature_are_told_apart() {
    let signed = checkpoint().sign(&secret(1));
    let other = NoteKey::ed25519(&checkpoint().origin, &secret(2).public()).unwrap();
    assert_eq!(
        other.verify(&signed),
        Err(NoteError::NotSigned(checkpoint().origin))
    );
    let renamed = NoteKey::ed25519("someone-else", &secret(1).public()).unwrap();
    assert_eq!(
        renamed.verify(&signed),
        Err(NoteError::NotSigned("someone-else".to_owned()))
    );
    // A witness's key is another key even if the bytes are the same.
    let witness = NoteKey::cosignature(&checkpoint().origin, &secret(1).public()).unwrap();
    assert_eq!(
        witness.verify(&signed),
        Err(NoteError::NotSigned(checkpoint().origin))
    );
    let mut wrong = Note::new(signed.text()).unwrap();
    wrong
        .add_signature(NoteSignature {
            key_hash: other.key_hash(),
            ..signed.signatures()[0].clone()
        })
        .unwrap();
    assert_eq!(
        other.verify(&wrong),
        Err(NoteError::BadSignature(checkpoint().origin))
    );
}

#[test]
fn keys_in_text_are_strict() {
    for (text, error) in [
        ("", NoteError::MalformedKey),
        ("PeterNeumann", NoteError::MalformedKey),
        ("PeterNeumann+c74f20a3", NoteError::MalformedKey),
        ("PeterNeumann+c74f20a3+", NoteError::MalformedKey),
        (
            "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWAAAA",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n",
            NoteError::MalformedKey,
        ),
        (
            "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::KeyHashMismatch("PeterNeumann".to_owned()),
        ),
        (
            "PeterNeuman+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::KeyHashMismatch("PeterNeuman".to_owned()),
        ),
        (
            "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::BadName(String::new()),
        ),
        (
            "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::BadName("Peter Neumann".to_owned()),
        ),
        (
            "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            NoteError::UnknownAlgorithm {
                name: "PeterNeumann".to_owned(),
                algorithm: 0x65,
            },
        ),
        (
            "weak+00000000+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            NoteError::Key {
                name: "weak".to_owned(),
                error: KeyError::LowOrder,
            },
        ),
    ] {
        assert_eq!(text.parse::<NoteKey>(), Err(error), "{text}");
    }
    let witness = NoteKey::cosignature("witness.example/w1", &secret(3).public()).unwrap();
    assert_eq!(witness.to_string().parse(), Ok(witness.clone()));
    assert_eq!(witness.algorithm(), NoteAlgorithm::Cosignature);
    let json = serde_json::to_string(&witness).unwrap();
    assert_eq!(serde_json::from_str::<NoteKey>(&json).unwrap(), witness);
}

#[test]
fn secret_keys_in_text_are_strict_and_never_repeated_in_errors() {
    let key = &NEUMANN_SECRET["PRIVATE+KEY+".len()..];
    for text in [
        "",
        key,
        &NEUMANN_SECRET.to_lowercase(),
        &NEUMANN_SECRET.replace("AYEK", "AoEK"),
        &NEUMANN_SECRET.replace("AYEK", "BIEK"),
        &NEUMANN_SECRET[..NEUMANN_SECRET.len() - 4],
        &format!("{NEUMANN_SECRET}AAAA"),
        &format!("{NEUMANN_SECRET}\n"),
    ] {
        let error = parse_secret(text).unwrap_err();
        assert_eq!(error, NoteError::MalformedSecret, "{text}");
        assert!(!error.to_string().contains("LVFG"));
    }
    assert_eq!(
        parse_secret(&NEUMANN_SECRET.replace("KDFz", "KDF0")).unwrap_err(),
        NoteError::KeyHashMismatch("PeterNeumann".to_owned())
    );
    let error = parse_secret(NEUMANN_KEY).unwrap_err();
    assert_eq!(error, NoteError::MalformedSecret);
}
